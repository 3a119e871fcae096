// How the site's search orders pages: as Sphinx does by default, but pages for users before those for authors.
const FOR_AUTHORS = /^(README|CONTRIBUTING|CHANGELOG|docs\/(decisions\/|architecture|rooms|glossary|building|stand-in|critiques|packing|performance|benchmarks|scheduling|disruption-rules))/;
// Long tables of names: found by a name in them, and not by every word.
const TABLES = /^docs\/(fields|reference|instance-types|karpenter|compatibility|runbook)/;

var Scorer = {
  // A heading that is what was searched for comes before a page that has one of its words in any heading.
  score: ([page, title, anchor, description, score, file, kind]) =>
    score + (kind === "title" ? 10 : 0) - (FOR_AUTHORS.test(page) ? 200 : TABLES.test(page) ? 100 : 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
