// On a telephone a table of words that is wider than the screen shows each row as a block (pages.css). A table of
// figures stays one, and scrolls: its columns are there to be compared.
const NARROW = matchMedia("(max-width: 46em)");
const WORDS = 25;

function isOfWords(table) {
  const rows = [...table.tBodies[0]?.rows ?? []];
  return rows.filter(row => [...row.cells].some(cell => cell.textContent.length > WORDS)).length > rows.length / 3;
}

function stack() {
  for (const table of document.querySelectorAll("table.docutils")) {
    table.classList.remove("stacked");
    const isTooWide = table.scrollWidth > table.parentElement.clientWidth;
    if (!NARROW.matches || !isTooWide || !isOfWords(table)) continue;
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
