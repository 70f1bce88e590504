"use strict";
// Two conveniences for the table of sites: sort by a column, and show only names that contain what is typed.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const number = (cell) => {
    const found = Number.parseFloat(cell.textContent);
    return Number.isNaN(found) ? Infinity : found;
  };
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (a, b) =>
        column === 0
          ? a.cells[0].textContent.localeCompare(b.cells[0].textContent, undefined, { numeric: true })
          : number(a.cells[column]) - number(b.cells[column]) || 0;
      body.append(...rows.sort((a, b) => (up ? order(a, b) : order(b, a))));
    });
  });
  const input = document.getElementById(table.dataset.sortable);
  const count = document.getElementById(`${table.dataset.sortable}-count`);
  input?.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    count.textContent = `${rows.filter((row) => !row.hidden).length} shown`;
  });
}
