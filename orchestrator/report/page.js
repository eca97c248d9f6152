"use strict";
(() => {
  const root = document.documentElement;
  const steps = [...document.querySelectorAll("details.step")];
  const byId = (id) => document.getElementById(id);

  const theme = byId("theme");
  const dark = () => (root.dataset.theme ||
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });

  const visible = () => steps.filter((step) => !step.hidden);
  const go = (step, open) => {
    if (!step) return;
    if (open) step.open = true;
    const line = step.querySelector("summary");
    line.focus({ preventScroll: true });
    line.scrollIntoView({ block: open ? "start" : "nearest" });
  };
  const current = () => visible().indexOf(document.activeElement.closest("details.step"));
  const nearest = (wanted) => visible().reduce((best, step) =>
    Math.abs(step.dataset.step - wanted) < Math.abs((best || step).dataset.step - wanted)
      ? step : best || step, null);
  const move = (by) => {
    const list = visible();
    const at = current();
    go(list[at < 0 ? (by > 0 ? 0 : list.length - 1)
                   : Math.min(Math.max(at + by, 0), list.length - 1)], false);
  };
  const notable = (by) => {
    const list = visible();
    for (let at = current() + by; at >= 0 && at < list.length; at += by) {
      if (list[at].dataset.flags) { go(list[at], false); return; }
    }
  };

  const filters = [...document.querySelectorAll("button[data-filter]")];
  filters.forEach((button) => {
    const flag = button.dataset.filter;
    const count = flag ? steps.filter((s) => s.dataset.flags.split(" ").includes(flag)).length
                       : steps.length;
    button.textContent += " " + count;
    button.disabled = count === 0;
    button.addEventListener("click", () => {
      filters.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      steps.forEach((s) => { s.hidden = Boolean(flag) && !s.dataset.flags.split(" ").includes(flag); });
      document.querySelectorAll(".gap").forEach((gap) => { gap.hidden = Boolean(flag); });
    });
  });
  const all = byId("all");
  if (all) all.addEventListener("click", () => {
    const open = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(open));
    visible().forEach((step) => { step.open = open; });
  });
  document.querySelectorAll(".bar[hidden]").forEach((bar) => { bar.hidden = false; });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      j: () => move(1), k: () => move(-1), n: () => notable(1), p: () => notable(-1),
      t: () => theme.click(), e: () => all && all.click(),
      o: () => { const s = visible()[current()]; if (s) s.open = !s.open; },
    };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
  });

  const fromHash = () => {
    const step = byId(location.hash.slice(1));
    if (step && step.matches("details.step")) go(step, true);
  };
  addEventListener("hashchange", fromHash);
  addEventListener("load", () => setTimeout(fromHash, 0)); // after the browser has moved the focus

  document.querySelectorAll("figure.steps").forEach((figure) => {
    const readout = document.createElement("p");
    readout.className = "readout";
    readout.setAttribute("aria-hidden", "true");
    figure.insertBefore(readout, figure.querySelector("figcaption"));
    const at = (event) => {
      const svg = event.target.closest("svg");
      if (!svg || !svg.dataset.last) return null;
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      const share = (x - svg.dataset.left) / (svg.dataset.right - svg.dataset.left);
      return share < -0.02 || share > 1.02 ? null
        : Math.min(Math.max(Math.round(share * svg.dataset.last), 1), Math.floor(svg.dataset.last));
    };
    figure.addEventListener("pointermove", (event) => {
      const wanted = at(event);
      const step = wanted === null ? null : nearest(wanted);
      readout.textContent = !step ? "" : "step " + step.dataset.step + ": " +
        step.querySelector(".what").textContent + ", reward " + step.querySelector(".rw").textContent;
    });
    figure.addEventListener("pointerleave", () => { readout.textContent = ""; });
    figure.addEventListener("click", (event) => {
      const wanted = at(event);
      if (wanted !== null) go(nearest(wanted), true);
    });
  });
})();
