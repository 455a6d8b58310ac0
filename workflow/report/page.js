// Sorts and filters the ledger, and switches the colour scheme. The page is complete without this script.
"use strict";
(() => {
  const root = document.documentElement;
  const all = (query, from = document) => [...from.querySelectorAll(query)];
  root.classList.add("js");
  for (const control of all(".controls")) control.hidden = false;

  // the system sets the colour scheme until the reader chooses one
  const scheme = document.getElementById("scheme");
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.scheme ? root.dataset.scheme === "dark" : prefers.matches);
  const say = () => (scheme.textContent = isDark() ? "Light colours" : "Dark colours");
  scheme.addEventListener("click", () => {
    root.dataset.scheme = isDark() ? "light" : "dark";
    say();
  });
  prefers.addEventListener("change", say);
  say();

  // on a phone, the contents start closed
  if (matchMedia("(max-width: 40rem)").matches) document.getElementById("toc").open = false;

  // the keyboard skips boxes that do not scroll
  const stops = () => {
    for (const box of all(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", stops);
  addEventListener("load", stops);
  document.addEventListener("toggle", stops, true);

  // touch screens have no hover: show the tooltip of a tapped mark below its figure
  for (const drawing of all(".drawing")) {
    const words = drawing.closest("figure").querySelector(".pointed");
    drawing.addEventListener("click", (event) => {
      const mark = event.target.closest(":has(> title)");
      words.textContent = mark ? mark.querySelector(":scope > title").textContent : "";
    });
  }

  const table = document.getElementById("ledger");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const form = document.getElementById("choose");
  const words = document.getElementById("words");
  const shown = document.getElementById("shown");
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const collator = new Intl.Collator("en", { numeric: true });
  let order = "";

  const tell = () => {
    const count = rows.filter((row) => !row.hidden).length;
    shown.textContent = `${count} of ${rows.length} statements shown${order}`;
  };

  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = (name) => all(`input[name="${name}"]:checked`, form).map((box) => box.value);
    const verdicts = chosen("verdict");
    const documents = chosen("document");
    for (const row of rows) {
      row.hidden = !(
        wanted.every((word) => texts.get(row).includes(word)) &&
        (!verdicts.length || verdicts.includes(row.dataset.verdict)) &&
        (!documents.length || documents.includes(row.dataset.document))
      );
    }
    tell();
  };

  const text = (row, column) => row.cells[column].textContent.trim();
  const number = (row, column) =>
    parseFloat(text(row, column).replace("−", "-").replace(/[<≤≥, ]/g, ""));

  // dashes sort last in both directions
  const compare = (column, sign) => {
    const isNumber = heads[column].classList.contains("number");
    return (a, b) => {
      const [one, other] = [text(a, column), text(b, column)];
      if (one === "–" || other === "–") return (one === "–") - (other === "–");
      if (isNumber) return sign * (number(a, column) - number(b, column));
      return sign * collator.compare(one, other);
    };
  };

  const sort = (column, direction) => {
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? direction : "none"));
    const sign = direction === "descending" ? -1 : 1;
    const sorted = direction === "none" ? rows : [...rows].sort(compare(column, sign));
    order = direction === "none" ? "" : `, by ${heads[column].textContent}, ${direction}`;
    body.append(...sorted);
    tell();
  };

  const next = { none: "ascending", ascending: "descending", descending: "none" };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(column, next[head.getAttribute("aria-sort")]));
  });

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    sort(0, "none");
    setTimeout(filter); // after the fields have been cleared
  });
  filter();
})();
