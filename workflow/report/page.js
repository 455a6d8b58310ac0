// Sorts and filters the ledger. The page is complete without this script.
"use strict";
(() => {
  document.documentElement.classList.add("js");

  // on a phone, the contents start closed
  if (matchMedia("(max-width: 40rem)").matches) document.getElementById("toc").open = false;

  const table = document.getElementById("ledger");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells];
  const form = document.getElementById("choose");
  const shown = document.getElementById("shown");
  const collator = new Intl.Collator("en", { numeric: true });
  let order = "";

  const filter = () => {
    const choice = new FormData(form);
    const words = choice.get("words").toLowerCase().split(/\s+/);
    const isChosen = (name, value) => !choice.has(name) || choice.getAll(name).includes(value);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(
        words.every((word) => text.includes(word)) &&
        isChosen("verdict", row.dataset.verdict) &&
        isChosen("document", row.dataset.document)
      );
    }
    const count = rows.filter((row) => !row.hidden).length;
    shown.textContent = `${count} of ${rows.length} statements shown${order}`;
  };

  const number = (text) => parseFloat(text.replace("−", "-").replace(/[<≤≥, ]/g, ""));

  const sort = (column, direction) => {
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? direction : "none"));
    order = column < 0 ? "" : `, by ${heads[column].textContent}, ${direction}`;
    const sign = direction === "descending" ? -1 : 1;
    const isNumber = heads[column]?.classList.contains("number");
    const compare = (a, b) => {
      const [one, other] = [a, b].map((row) => row.cells[column].textContent.trim());
      // dashes sort last in both directions
      if (one === "–" || other === "–") return (one === "–") - (other === "–");
      return sign * (isNumber ? number(one) - number(other) : collator.compare(one, other));
    };
    table.tBodies[0].append(...(column < 0 ? rows : rows.toSorted(compare)));
    filter();
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      sort(column, head.ariaSort === "ascending" ? "descending" : "ascending");
    });
  });

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  // after the fields have been cleared
  form.addEventListener("reset", () => setTimeout(() => sort(-1, "none")));
  form.hidden = false;
  sort(-1, "none");
})();
