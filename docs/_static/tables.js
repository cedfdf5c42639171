"use strict";

// On a narrow screen a row is a block, in which each cell says of which column it is.
for (const table of document.querySelectorAll("article table")) {
  const heads = [...table.querySelectorAll("thead th")].map(head => head.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, column) => { cell.dataset.head = heads[column] ?? ""; });
}
