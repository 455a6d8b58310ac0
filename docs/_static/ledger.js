// Filters of the open ledger. The fragment of the address has the choice, so that a link shares it. Without this script
// the page shows every statement.
"use strict";
{
  const form = document.querySelector(".ledger-filters");
  const rows = [...document.querySelectorAll("table.ledger tbody tr")];
  const controls = [...form.elements].filter((control) => control.name);
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

  const agrees = (row, control) =>
    control.name === "words"
      ? control.value.toLowerCase().split(/\s+/).every((word) => texts.get(row).includes(word))
      : !control.value || row.dataset[control.name].split("|").includes(control.value);

  const show = () => {
    for (const row of rows) row.hidden = !controls.every((control) => agrees(row, control));
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector("output").value = `${shown} of ${rows.length} statements`;
  };

  const choose = () => {
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const control of controls) {
      control.value = chosen.get(control.name) ?? "";
      if (control.selectedIndex === -1) control.value = ""; // a value that the ledger lacks
    }
    show();
  };

  const share = () => {
    const chosen = new URLSearchParams();
    for (const { name, value } of controls) if (value) chosen.set(name, value);
    history.replaceState(null, "", `#${chosen}`);
    show();
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", share);
  form.addEventListener("reset", () => setTimeout(share)); // after the browser has emptied the controls
  addEventListener("hashchange", choose);
  form.hidden = false;
  choose();
}
