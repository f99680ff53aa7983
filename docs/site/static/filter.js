// The filter of the operators' index: hides the rows that lack a chosen value. Its state is in the address, so that a
// choice can be linked to.
"use strict";

(() => {
  const filter = document.querySelector(".operators-filter");
  if (filter === null) return;
  const fields = [...filter.querySelectorAll("[data-facet]")];
  const rows = [...document.querySelectorAll("table.operators tbody tr")];

  const fits = (row, field) => {
    const wanted = field.value.trim().toLowerCase();
    const given = row.dataset[field.dataset.facet].toLowerCase();
    if (wanted === "") return true;
    return field.dataset.facet === "name" ? given.includes(wanted) : given.split(" ").includes(wanted);
  };

  const show = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !fields.every((field) => fits(row, field));
      shown += row.hidden ? 0 : 1;
    }
    filter.querySelector("output").value = `${shown} of ${rows.length}`;
    const chosen = fields.filter((field) => field.value !== "");
    const words = chosen.map((field) => `${field.dataset.facet}=${encodeURIComponent(field.value)}`);
    history.replaceState(null, "", words.length === 0 ? location.pathname : `#${words.join("&")}`);
  };

  for (const [facet, value] of new URLSearchParams(location.hash.slice(1))) {
    const field = fields.find((one) => one.dataset.facet === facet);
    if (field !== undefined) field.value = value;
  }
  for (const field of fields) field.addEventListener("input", show);
  filter.hidden = false;
  show();
})();
