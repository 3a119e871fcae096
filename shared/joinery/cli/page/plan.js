// The page is whole without this: it filters, highlights a workload, explains a segment, and changes the bars' scale.
(() => {
  "use strict";
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  const rows = all("[data-row]").map((element) => {
    const section = element.closest("section");
    return {
      element,
      section,
      nodes: Number(element.dataset.nodes || 0),
      pods: Number(element.dataset.pods || 0),
      text: `${section.dataset.about || ""} ${element.textContent}`.toLowerCase(),
    };
  });
  const filter = one("filter");

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let nodes = 0, pods = 0, found = 0;
    for (const row of rows) {
      const fits = words.every((word) => row.text.includes(word));
      row.element.hidden = !fits;
      if (fits) { nodes += row.nodes; pods += row.pods; found += 1; }
    }
    for (const part of all(".rest, main section")) {
      part.hidden = words.length > 0 && !all("[data-row]", part).some((row) => !row.hidden);
    }
    for (const rest of all(".rest")) rest.open = words.length > 0;
    one("nothing").hidden = found > 0 || rows.length === 0;
    one("found").value = words.length ? `${plural(nodes, "node")}, ${plural(pods, "pod")}` : "";
  }
  filter.addEventListener("input", show);

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      filter.focus();
    }
    if (event.key === "Escape") {
      if (typing) { filter.value = ""; show(); } else { mark(null); }
      tip.hidden = true;
    }
  });

  function press(button, action) {
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(pressed));
      action(pressed);
    });
  }
  press(one("scale"), (pressed) => document.body.classList.toggle("equal", pressed));
  press(one("unfold"), (pressed) => { for (const fold of all("main details")) fold.open = pressed; });

  function mark(button) {
    const again = !button || button.classList.contains("mark");
    for (const marked of all(".mark")) marked.classList.remove("mark");
    for (const other of all(".workload")) other.setAttribute("aria-pressed", "false");
    document.body.classList.toggle("marked", !again);
    if (again) return;
    button.setAttribute("aria-pressed", "true");
    for (const same of all(`.${button.dataset.workload}`)) same.classList.add("mark");
    button.classList.add("mark");
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".workload");
    if (button) mark(button);
  });

  const tip = one("tip");
  const known = new Map(all(".workload").map((button) => [button.dataset.workload, button]));

  function explain(segment) {
    const bar = segment.closest(".bar").getAttribute("aria-label");
    if (segment.classList.contains("before")) return `${segment.closest("section").dataset.before}\n${bar}`;
    const button = known.get([...segment.classList].find((name) => known.has(name)));
    const pods = plural(Number(segment.dataset.n || 1), "pod");
    return `${button.querySelector(".who").textContent} × ${pods}\n${button.querySelector("small").textContent} each\n${bar}`;
  }
  document.addEventListener("pointermove", (event) => {
    const segment = event.target.closest(".track i");
    tip.hidden = !segment;
    if (!segment) return;
    tip.textContent = explain(segment);
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10}px`;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
})();
