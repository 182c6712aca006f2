"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("explorer-data").textContent);
  const slider = byId("epsilon");
  const rows = byId("ladder-table").tBodies[0].rows;
  const last = Number(slider.max);
  const show = (at) => {
    for (const [id, values] of Object.entries(data.texts)) byId(id).textContent = values[at];
    for (const [id, changing] of Object.entries(data.attributes))
      for (const [name, values] of Object.entries(changing)) byId(id).setAttribute(name, values[at]);
    slider.setAttribute("aria-valuetext", data.spoken[at]);
    for (let i = 0; i < rows.length; i += 1) {
      if (i === at) rows[i].setAttribute("aria-current", "true");
      else rows[i].removeAttribute("aria-current");
    }
    byId("safer").disabled = at === 0;
    byId("exact").disabled = at === last;
  };
  const move = (to) => {
    slider.value = String(Math.min(Math.max(to, 0), last));
    show(Number(slider.value));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  byId("safer").addEventListener("click", () => move(Number(slider.value) - 1));
  byId("exact").addEventListener("click", () => move(Number(slider.value) + 1));
  byId("control").hidden = false;
  move(data.start);
})();
