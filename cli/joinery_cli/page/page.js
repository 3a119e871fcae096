// The page is whole without this: it filters, highlights a workload, explains a segment, and changes the bars' scale.
(() => {
  "use strict";
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const money = (dollars) => `$${dollars.toLocaleString("en", dollars < 100
    ? { minimumFractionDigits: 4, maximumFractionDigits: 4 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  // What a filter looks at is what the plan has: names, types, zones, reasons; not the other types that a request allows.
  const rows = all("[data-row]").map((element) => {
    const section = element.closest("section");
    const homes = all(".home", element).map((home) => ({ name: lower(...said(home, "b")), pods: names(home) }));
    const workloads = homes.length ? [] : said(element, ".inside td:first-child");
    const row = {
      element,
      section,
      about: lower(section.dataset.about, ...said(element, ".kind"), ...workloads),
      homes,
      nodes: Number(element.dataset.nodes || 0),
      pods: Number(element.dataset.pods || 0),
      price: Number(element.dataset.price || 0),
    };
    if (element.matches(".reason")) {
      row.about = lower(section.dataset.about, ...said(element, "li, .wish p"));
      // Pods that have no place for one reason; or nodes that one rule keeps.
      const isOfNodes = element.matches(".staying");
      row.homes = isOfNodes ? names(element).map((name) => ({ name, pods: [] })) : [{ name: "", pods: names(element) }];
    }
    return row;
  });
  const sums = all("section .sum").map((element) => ({ element, whole: element.textContent }));
  const filter = one("filter");

  function lower(...texts) { return texts.join(" ").toLowerCase(); }
  function said(element, selector) { return all(selector, element).map((part) => part.textContent); }
  function names(element) { return said(element, ".names").flatMap((text) => text.toLowerCase().split(", ")).filter(Boolean); }

  // The part of a row that has all the words: the pods that do, on their nodes; or nodes that do with all their pods.
  function part(row, words) {
    const has = (text) => words.every((word) => text.includes(word));
    if (has(row.about)) return { nodes: row.nodes, pods: row.pods, fits: true };
    let nodes = 0, pods = 0;
    for (const home of row.homes) {
      const before = `${row.about} ${home.name} `;
      const fits = has(before + home.pods.join(" "));
      const some = home.pods.filter((pod) => has(before + pod)).length;
      nodes += some > 0 || fits ? 1 : 0;
      pods += some || (fits ? home.pods.length : 0);
    }
    return { nodes: Math.min(nodes, row.nodes), pods, fits: nodes > 0 };
  }

  function sum({ nodes, pods, price }) {
    const parts = [nodes && plural(nodes, "node"), pods && plural(pods, "pod"), price && `${money(price)}/h`];
    return parts.filter(Boolean).join(" · ");
  }

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const none = () => ({ nodes: 0, pods: 0, price: 0 });
    const whole = none(), bySection = new Map();
    for (const row of rows) {
      const shown = part(row, words);
      row.element.hidden = !shown.fits;
      if (!bySection.has(row.section)) bySection.set(row.section, none());
      for (const total of [whole, bySection.get(row.section)]) {
        total.nodes += shown.nodes;
        total.pods += shown.pods;
        total.price += shown.nodes * row.price;
      }
    }
    const isFiltered = words.length > 0;
    for (const fold of all(".rest, .part")) {
      if (isFiltered) fold.open = true;
      else if (fold.matches(".rest")) fold.open = false;
    }
    for (const place of all(".rest, main section")) {
      place.hidden = isFiltered && !all("[data-row]", place).some((row) => !row.hidden);
    }
    for (const { element, whole: unfiltered } of sums) {
      const total = bySection.get(element.closest("section"));
      element.textContent = isFiltered && total ? sum(total) : unfiltered;
    }
    one("nothing").hidden = !isFiltered || rows.some((row) => !row.element.hidden);
    one("found").value = isFiltered ? sum(whole) || "nothing" : "";
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
  press(one("unfold"), (pressed) => { for (const fold of all("main details:not(.part)")) fold.open = pressed; });

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
