"use strict";

// On a narrow screen a row is a block, in which each cell says of which column it is. Many columns
// are set in small type.
for (const table of document.querySelectorAll("article table")) {
  const heads = [...table.querySelectorAll("thead th")].map(head => head.textContent.trim());
  if (heads.length > 7) table.classList.add("wide");
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, column) => { cell.dataset.head = heads[column] ?? ""; });
}
