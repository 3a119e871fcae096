// On a telephone a table of words that is wider than the screen, or has a word or two a line to fit, shows each row as a
// block (pages.css). A table of figures stays one, and scrolls: its columns are there to be compared.
const NARROW = matchMedia("(max-width: 46em)");
const WORDS = 25;
const LINES = 6;

function isOfWords(table) {
  const rows = [...table.tBodies[0]?.rows ?? []];
  return rows.filter(row => [...row.cells].some(cell => cell.textContent.length > WORDS)).length > rows.length / 3;
}

function isSqueezed(table) {
  const line = parseFloat(getComputedStyle(table).lineHeight);
  return [...table.tBodies[0]?.rows ?? []].some(row => row.offsetHeight > (LINES + 1) * line);
}

function stack() {
  for (const table of document.querySelectorAll("table.docutils")) {
    table.classList.remove("stacked");
    const isTooWide = table.scrollWidth > table.parentElement.clientWidth;
    if (!NARROW.matches || !(isTooWide || isSqueezed(table)) || !isOfWords(table)) continue;
    const names = [...table.tHead?.rows[0]?.cells ?? []].map(cell => cell.textContent.trim());
    for (const row of table.tBodies[0].rows)
      [...row.cells].forEach((cell, at) => {
        if (names[at]) cell.dataset.column = names[at];
        cell.classList.toggle("bare", !cell.textContent.trim());
      });
    table.classList.add("stacked");
  }
}

document.addEventListener("DOMContentLoaded", stack);
NARROW.addEventListener("change", stack);
