"use strict";
(() => {
  const given = JSON.parse(document.getElementById("data").textContent);
  const ways = given.ways.map((row, number) => {
    const way = { number };
    given.columns.forEach((name, i) => { way[name] = row[i]; });
    return way;
  });
  const front = given.front.map((i) => ways[i]);
  const onFront = new Set(given.front);
  const at = (id) => document.getElementById(id);

  // -- words ------------------------------------------------------------------------------------

  function money(micros) {
    const digits = micros >= 1e8 ? 0 : micros > 0 && micros < 1e5 ? 4 : 2;
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return "$" + (micros / 1e6).toLocaleString("en-US", options);
  }

  function span(hours) {
    const exact = hours * 3600;
    const unit = exact >= 86400 ? 3600 : exact >= 60 ? 60 : 1;
    let seconds = Math.floor(exact / unit + 0.5) * unit;
    const parts = [];
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
      const amount = Math.floor(seconds / size);
      seconds -= amount * size;
      if (amount) parts.push(amount.toLocaleString("en-US") + unit);
    }
    return parts.slice(0, 2).join(" ") || "0s";
  }

  function share(chance) {
    // as units.format_chance has it: never more than it is
    if (chance > 0.99) return "over 99%";
    return chance < 0.01 ? "under 1%" : Math.floor(chance * 100 + 1e-9) + "%";
  }

  function bytes(size) {
    const units = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
    const [step, unit] = units.find(([step]) => size >= step) || [1, "B"];
    return Number((size / step).toPrecision(3)) + " " + unit;
  }

  const NAMES = {
    on_demand: "on-demand", spot: "spot", reserved: "reserved", egress: "egress", storage: "storage",
  };
  const named = (key) => NAMES[key] || key.replace(/_/g, "-");

  // -- elements; text only ever goes in as text -------------------------------------------------

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function drawn(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function place(shape, attributes) {
    for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
  }

  // -- chances at another deadline --------------------------------------------------------------
  // The planner knows each way's chance at the deadline it was asked for. Hours are log-normal
  // around the estimate, with its 80 % band, so that chance can be carried to another deadline:
  // where it is less than the band alone says, the rest is the chance of not fitting in memory.

  const normal = (z) => 0.5 * (1 + Math.tanh(0.7978845608 * (z + 0.044715 * z ** 3)));

  function inverse(share) {
    let low = -6, high = 6;
    for (let i = 0; i < 40; i++) {
      const middle = (low + high) / 2;
      if (normal(middle) < share) low = middle; else high = middle;
    }
    return low;
  }

  for (const way of ways) {
    way.spread = Math.max(Math.log(way.hours / way.hoursLow) / 1.2816, 1e-3) || 1e-3;
    const alone = given.deadline === null ? 1 : normal(Math.log(given.deadline / way.hours) / way.spread);
    way.fits = way.chance <= alone ? way.chance / alone : null;
  }

  function chanceOf(way, deadline) {
    if (deadline === given.deadline) return way.chance;
    if (deadline === null) return way.fits === null ? way.chance : way.fits;
    if (way.fits !== null) return way.fits * normal(Math.log(deadline / way.hours) / way.spread);
    const shift = Math.log(deadline / given.deadline) / way.spread;
    return normal(inverse(way.chance) + shift);
  }

  // -- limits -----------------------------------------------------------------------------------

  const asked = { deadline: given.deadline, budget: given.budget, confidence: given.confidence };
  const limits = { ...asked };
  let picked = null; // a way that was chosen by hand

  const moved = () => Object.keys(asked).some((key) => limits[key] !== asked[key]);

  function keeps(way) {
    if (limits.budget !== null && !affords(way, limits.budget)) return false;
    if (limits.deadline === null) return true;
    return way.hours <= limits.deadline && chanceOf(way, limits.deadline) >= limits.confidence;
  }

  /** As surely as is wanted: what machines cost is as uncertain as their hours are. */
  function affords(way, budget) {
    if (way.cost > budget) return false;
    const known = (way.costs.egress || 0) + (way.costs.storage || 0);
    const spread = Math.max(Math.log((way.costHigh - known) / (way.cost - known)) / 1.2816, 1e-6) || 1e-6;
    return normal(Math.log((budget - known) / (way.cost - known)) / spread) >= limits.confidence;
  }

  /** The cheapest that keeps the limits, with what refusals are worth counted in. */
  function cheapest() {
    if (!moved()) return given.best === null ? null : ways[given.best];
    return ways.filter(keeps).reduce((a, b) => (a === null || b.weighed < a.weighed ? b : a), null);
  }

  // A slider goes from the least that anything needs to the most that the front does, by ratios;
  // its last step is no limit at all.
  const LAST = 1000;
  function rail(values, limit) {
    const known = values.concat(limit === null ? [] : [limit]).filter((v) => v > 0);
    const low = Math.min(...known), high = Math.max(...known, low * 2) * 1.25;
    return {
      value: (step) => (step >= LAST ? null : low * (high / low) ** (step / (LAST - 1))),
      step: (value) => value === null ? LAST
        : Math.max(0, Math.min(LAST - 1, Math.round((Math.log(value / low) / Math.log(high / low)) * (LAST - 1)))),
    };
  }

  function roundHours(hours) {
    const step = hours < 2 ? 1 / 60 : hours < 12 ? 0.25 : hours < 96 ? 1 : 6;
    return Math.ceil(hours / step) * step;
  }

  function roundMoney(micros) {
    const step = 10 ** (Math.floor(Math.log10(micros)) - 2);
    return Math.ceil(micros / step) * step;
  }

  const rails = ways.length ? {
    deadline: rail(front.map((way) => way.hours), given.deadline),
    budget: rail(front.map((way) => way.cost), given.budget),
  } : null;

  function showLimits() {
    const words = {
      deadline: limits.deadline === null ? "none" : span(limits.deadline),
      budget: limits.budget === null ? "none" : money(limits.budget),
      confidence: limits.deadline === null ? "–" : Math.round(limits.confidence * 1000) / 10 + "%",
    };
    for (const key of Object.keys(words)) {
      at(key + "-out").textContent = words[key];
      at(key).setAttribute("aria-valuetext", words[key]);
    }
  }

  function setSliders() {
    at("deadline").value = rails.deadline.step(limits.deadline);
    at("budget").value = rails.budget.step(limits.budget);
    at("confidence").value = Math.round(limits.confidence * 100);
  }

  // -- the chart --------------------------------------------------------------------------------

  const svg = at("chart"), tip = at("tip");
  const NARROW = 560;
  let chart = null;

  function axis(values, from, to, ticksOf) {
    const positive = values.filter((v) => v > 0);
    const least = Math.min(...positive), most = Math.max(...positive);
    const log = most / least > 6;
    const low = log ? least / (most / least) ** 0.04 : Math.max(0, least - (most - least) * 0.1);
    const high = log ? most * (most / least) ** 0.04 : most + (most - least) * 0.1 || most * 1.2;
    const part = (v) => log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low);
    const where = (v) => from + Math.max(0, Math.min(1, part(v))) * (to - from);
    return { where, ticks: ticksOf(low, high, log).filter((v) => v >= low && v <= high), low, high };
  }

  const TIMES = [1 / 60, 2 / 60, 5 / 60, 10 / 60, 0.5, 1, 2, 4, 8, 12, 24, 48, 96, 168, 336, 720, 2160, 8760, 87600];
  function timeTicks(low, high, log) {
    const inside = TIMES.filter((t) => t >= low && t <= high);
    if (log && inside.length >= 3) return inside;
    const rough = (high - low) / 6;
    return multiples(low, high, TIMES.find((t) => t >= rough) || rough);
  }

  function multiples(low, high, step) {
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
    return found;
  }

  function even(low, high) {
    const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
    return multiples(low, high, [1, 2, 5, 10].find((s) => s * power >= rough) * power);
  }

  function moneyTicks(low, high, log) {
    if (!log) return even(low, high);
    const found = [];
    for (let power = Math.floor(Math.log10(low || 1)); power <= Math.log10(high); power++) {
      for (const step of [1, 2, 5]) found.push(step * 10 ** power);
    }
    const inside = found.filter((v) => v >= low && v <= high);
    return inside.length >= 3 ? inside : even(low, high);
  }

  const tickMoney = (micros) => "$" + (micros / 1e6).toLocaleString("en-US", { maximumFractionDigits: 4 });

  /** Ticks that are at least so many pixels apart. */
  function thinned(ticks, where, gap) {
    const kept = [];
    for (const tick of ticks) {
      if (!kept.length || Math.abs(where(tick) - where(kept[kept.length - 1])) >= gap) kept.push(tick);
    }
    return kept;
  }

  function draw() {
    const width = svg.parentNode.clientWidth, narrow = width < NARROW;
    const height = narrow ? 330 : 430;
    const box = { left: 62, right: width - 12, top: 28, bottom: height - 44 };
    const x = axis(ways.map((w) => w.hours).concat(given.deadline || []), box.left, box.right, timeTicks);
    const y = axis(ways.map((w) => w.cost).concat(given.budget || []), box.bottom, box.top, moneyTicks);
    svg.replaceChildren();
    place(svg, { viewBox: `0 0 ${width} ${height}`, height });
    const add = (name, attributes, text) => svg.appendChild(drawn(name, attributes, text));

    const late = add("rect", { class: "over", y: box.top, height: box.bottom - box.top });
    const dear = add("rect", { class: "over", x: box.left, width: box.right - box.left, y: box.top });
    for (const v of thinned(y.ticks, y.where, 30)) {
      add("line", { class: "grid", x1: box.left, x2: box.right, y1: y.where(v), y2: y.where(v) });
      add("text", { x: box.left - 8, y: y.where(v) + 4, "text-anchor": "end" }, tickMoney(v));
    }
    for (const v of thinned(x.ticks, x.where, 46)) {
      add("line", { class: "grid", x1: x.where(v), x2: x.where(v), y1: box.bottom, y2: box.bottom + 5 });
      add("text", { x: x.where(v), y: box.bottom + 20, "text-anchor": "middle" }, span(v));
    }
    add("text", { x: box.left - 8, y: box.top - 10, "text-anchor": "end" }, "cost");
    add("text", { x: box.right, y: box.bottom + 38, "text-anchor": "end" }, "time until done →");

    const steps = front.map((w, i) =>
      i ? `H${x.where(w.hours)}V${y.where(w.cost)}` : `M${x.where(w.hours)} ${y.where(w.cost)}`);
    const line = drawn("path", { class: "front", d: steps.join("") || "M0 0" });

    const deadline = add("line", { class: "limit", y1: box.top, y2: box.bottom });
    const budget = add("line", { class: "limit", x1: box.left, x2: box.right });
    const dots = add("g", { role: "listbox", "aria-label": "Ways to finish, by time and cost" });
    const order = [...ways].sort((a, b) => onFront.has(a.number) - onFront.has(b.number));
    for (const way of order) {
      if (onFront.has(way.number) && !line.parentNode) dots.append(line);
      const sure = onFront.has(way.number);
      way.x = x.where(way.hours);
      way.y = y.where(way.cost);
      way.dot = drawn("circle", {
        class: `dot${sure ? " on-front" : ""}${way.own ? " own" : ""}`, cx: way.x, cy: way.y, r: sure || way.own ? 4 : 3,
        role: "option", tabindex: -1, "aria-label": spoken(way), "data-way": way.number,
      });
      dots.append(way.dot);
    }
    const deadlineName = add("text", { class: "limit-name", y: box.top - 10 });
    const budgetName = add("text", { class: "limit-name", "text-anchor": "end", x: box.right - 4 });
    const own = ways.find((way) => way.own); // the cheapest of one's own, by name
    if (own && own.number !== given.best) {
      const anchor = own.x > box.right - 40 ? "end" : "middle";
      add("text", { class: "halo", x: own.x, y: own.y - 9, "text-anchor": anchor }, "your own");
    }
    const hover = add("circle", { class: "hover", r: 8, visibility: "hidden" });
    const chosen = add("circle", { class: "chosen", r: 7.5 });
    const chosenName = add("text", { class: "halo chosen-name" });
    chart = { box, x, y, late, dear, deadline, budget, deadlineName, budgetName, hover, chosen, chosenName, width };
  }

  const where = (way) => (way.own ? way.place : `${way.place}, ${way.markets}`);
  const spoken = (way) =>
    `${way.machines}, ${way.chips}, ${where(way)}: ${money(way.cost)} in ${span(way.hours)}`;

  function showChart(way) {
    const { box, x, y } = chart;
    const deadlineX = limits.deadline === null ? box.right : x.where(limits.deadline);
    const budgetY = limits.budget === null ? box.top : y.where(limits.budget);
    place(chart.late, { x: deadlineX, width: Math.max(0, box.right - deadlineX) });
    place(chart.dear, { height: Math.max(0, budgetY - box.top) });
    place(chart.deadline, { x1: deadlineX, x2: deadlineX, visibility: limits.deadline === null ? "hidden" : "visible" });
    place(chart.budget, { y1: budgetY, y2: budgetY, visibility: limits.budget === null ? "hidden" : "visible" });
    chart.deadlineName.textContent = limits.deadline === null ? "" : "deadline " + span(limits.deadline);
    const right = deadlineX > box.right - 60, left = deadlineX < box.left + 60;
    place(chart.deadlineName, {
      x: right ? box.right : left ? box.left : deadlineX,
      "text-anchor": right ? "end" : left ? "start" : "middle",
    });
    chart.budgetName.textContent = limits.budget === null ? "" : "budget " + money(limits.budget);
    place(chart.budgetName, { y: budgetY + (budgetY - box.top < 40 ? 16 : -6) });

    for (const one of ways) {
      one.dot.classList.toggle("out", !keeps(one));
      one.dot.setAttribute("aria-selected", one === way);
      one.dot.tabIndex = -1;
    }
    const first = way || front[0] || ways[0];
    if (first) first.dot.tabIndex = 0;
    const here = way !== null;
    place(chart.chosen, { visibility: here ? "visible" : "hidden" });
    chart.chosenName.textContent = "";
    if (!here) return;
    place(chart.chosen, { cx: way.x, cy: way.y });
    chart.chosenName.textContent = `${way.chips}, ${money(way.cost)}`;
    // Left of a dot of the front and below it is always room; where that is too narrow, the name
    // goes to the right, below whatever the front does there.
    const long = chart.chosenName.getComputedTextLength();
    const leftwards = way.x - long > box.left;
    const beside = leftwards ? [] : front.filter((w) => w.x >= way.x && w.x < way.x + long + 16);
    place(chart.chosenName, {
      x: leftwards ? way.x - 8 : way.x + 8,
      y: Math.min(Math.max(way.y, ...beside.map((w) => w.y)) + 22, box.bottom - 6),
      "text-anchor": leftwards ? "end" : "start",
    });
  }

  // -- a closer look at a dot -------------------------------------------------------------------

  function look(way) {
    tip.hidden = way === null;
    chart.hover.setAttribute("visibility", way ? "visible" : "hidden");
    if (!way) return;
    place(chart.hover, { cx: way.x, cy: way.y });
    const likely = limits.deadline === null ? "" : `, ${share(chanceOf(way, limits.deadline))} in time`;
    tip.replaceChildren(
      element("b", {}, `${money(way.cost)} in ${span(way.hours)}`),
      `${way.machines} (${way.chips})`,
      element("span", {}, where(way) + likely),
    );
    const box = tip.getBoundingClientRect();
    const left = way.x + 14 + box.width > chart.width ? way.x - 14 - box.width : way.x + 14;
    tip.style.left = Math.max(0, Math.min(left, chart.width - box.width)) + "px";
    tip.style.top = Math.max(0, way.y - box.height - 12) + "px";
  }

  function nearest(event) {
    const box = svg.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let found = null, least = 24 ** 2;
    for (const way of ways) {
      const far = (way.x - x) ** 2 + (way.y - y) ** 2 - (onFront.has(way.number) ? 16 : 0);
      if (far < least) { found = way; least = far; }
    }
    return found;
  }

  function pick(way) {
    picked = way === cheapest() ? null : way;
    show();
  }

  svg.addEventListener("pointermove", (event) => look(nearest(event)));
  svg.addEventListener("pointerleave", () => look(null));
  svg.addEventListener("click", (event) => { const way = nearest(event); if (way) pick(way); });
  svg.addEventListener("focusin", (event) => look(ways[event.target.dataset.way] || null));
  svg.addEventListener("focusout", () => look(null));
  svg.addEventListener("keydown", (event) => {
    const way = ways[event.target.dataset.way];
    if (!way) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(way);
      way.dot.focus();
      return;
    }
    // Left and right along the front, up and down through all by cost.
    let next = null;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) {
      const beyond = front.filter((w) => step * (w.hours - way.hours) > 0);
      next = step > 0 ? beyond[0] : beyond[beyond.length - 1];
    } else if (event.key === "ArrowUp") next = ways[way.number + 1];
    else if (event.key === "ArrowDown") next = ways[way.number - 1];
    else if (event.key === "Home") next = front[0];
    else if (event.key === "End") next = front[front.length - 1];
    else if (event.key === "Escape") { look(null); return; } else return;
    event.preventDefault();
    if (next) next.dot.focus();
  });

  // -- the plan below the chart -----------------------------------------------------------------

  const fact = (name, text) => element("div", {}, element("dt", {}, name), element("dd", {}, text));

  function showPlan(way) {
    at("reset").hidden = !(moved() || picked);
    at("detail").hidden = at("figures").hidden = way === null;
    if (way === null) {
      at("plan-eyebrow").textContent = "No plan";
      at("plan-title").textContent = "Nothing computed keeps these limits";
      at("plan-where").textContent = "Give it more time or money, or ask for less certainty.";
      return;
    }
    const likely = chanceOf(way, limits.deadline);
    at("plan-eyebrow").textContent = picked ? "The plan that you chose"
      : moved() ? "The cheapest within these limits" : "The recommended plan";
    at("plan-title").textContent = `${way.machines}, ${way.chips}`;
    at("plan-where").textContent = where(way);
    const figure = (name, text, range) => element("div", {},
      element("dt", {}, name), element("dd", {}, text), element("dd", { class: "range" }, range));
    at("figures").replaceChildren(
      figure("Cost", money(way.cost), `${money(way.costLow)} – ${money(way.costHigh)}`),
      figure("Time", span(way.hours), `${span(way.hoursLow)} – ${span(way.hoursHigh)}`),
      limits.deadline === null
        ? figure("Chance", share(likely), "that it fits")
        : figure("Chance", share(likely), `to be done within ${span(limits.deadline)}`),
      figure("To be had", share(way.had), way.hadBy),
    );
    showCosts(way);
    showHours(way);
    const prices = Object.entries(way.prices)
      .map(([name, micros]) => (way.own ? money(micros) : `${money(micros)} ${named(name)}`)).join(", ");
    const rows = [
      ["Price an hour", `${prices} a machine`],
      ["Price of", [way.asOf, way.source].filter(Boolean).join(", ")],
      ["Network", way.network],
      ["Layout", way.layout],
      ["Software", way.software],
      ["Memory", way.memory ? `${Number(way.memory.toPrecision(3))} of ${way.capacity} GB an accelerator` : ""],
      ["Checkpoints", way.checkpoint ? `every ${span(way.checkpoint / 3600)}, ${bytes(way.checkpointBytes)}` : ""],
      ["Interruptions", way.interruptions >= 0.05 ? `about ${Number(way.interruptions.toPrecision(2))}` : "hardly any"],
      ["Range", way.band],
    ];
    at("facts").replaceChildren(...rows.filter(([, text]) => text).map(([name, text]) => fact(name, text)));
  }

  function showCosts(way) {
    const parts = Object.entries(way.costs).sort((a, b) => b[1] - a[1]);
    const most = Math.max(...parts.map(([, micros]) => micros), 1);
    at("costs").replaceChildren(...parts.map(([name, micros]) => {
      const bar = element("div", { class: "bar" });
      bar.style.width = (100 * micros) / most + "%";
      return element("div", {}, element("dt", {}, way.own && name === "on_demand" ? "machines" : named(name)), bar, element("dd", {}, money(micros)));
    }));
    if (!parts.length) at("costs").replaceChildren(element("div", {}, element("dt", {}, "nothing")));
  }

  function showHours(way) {
    // Machine hours hold one start; what is left of the wall clock is waiting for spot capacity.
    const startup = Math.min(way.startup, way.hours);
    const spot = Math.max(0, way.spot - (way.spot > 0 ? startup : 0));
    const firm = Math.max(0, way.onDemand - (way.spot > 0 ? 0 : startup));
    const waiting = Math.max(0, way.hours - startup - spot - firm);
    const parts = [
      ["startup", "starting", startup],
      ["spot", "on spot", spot],
      ["waiting", "waiting for spot", way.spot > 0 ? waiting : 0],
      [way.held ? "reserved" : "on-demand", way.held ? "on reserved" : way.own ? "at work" : "on-demand", firm],
    ].filter(([, , hours]) => hours > 0);
    const bar = element("div", { class: "hours-bar", "aria-hidden": "true" });
    for (const [kind, , hours] of parts) {
      const piece = element("i", { class: kind });
      piece.style.width = (100 * hours) / way.hours + "%";
      bar.append(piece);
    }
    const keys = element("ul", { class: "keys" });
    for (const [kind, name, hours] of parts) {
      keys.append(element("li", {}, element("i", { class: kind }), `${name} `, element("b", {}, span(hours))));
    }
    at("hours").replaceChildren(bar, keys);
  }

  function show() {
    const way = picked || cheapest();
    showLimits();
    showChart(way);
    showPlan(way);
    for (const button of document.querySelectorAll("button.pick")) {
      button.setAttribute("aria-current", way !== null && button.dataset.way === String(way.number));
    }
  }

  // -- the rejected -----------------------------------------------------------------------------

  const FEW = 20;
  let kind = null, all = false;

  function showLosers() {
    const wanted = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = given.losers.filter((row) => {
      if (kind !== null && row[0] !== kind) return false;
      const text = `${row[1]} ${row[2]} ${row[3]} ${row[4]}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    const shown = all ? found : found.slice(0, FEW);
    at("losers").replaceChildren(...shown.map(([, provider, type, chips, why, hours, cost]) => element("tr", {},
      element("th", { scope: "row" }, type, " ", element("span", { class: "by" }, provider)),
      element("td", {}, chips),
      element("td", {}, why),
      element("td", { class: "n" }, hours === null ? "" : span(hours)),
      element("td", { class: "n" }, cost === null ? "" : money(cost)))));
    const of = found.length === given.losers.length ? "" : ` that match, of ${given.losers.length.toLocaleString("en-US")}`;
    at("lost-count").textContent = shown.length < found.length
      ? `${shown.length} of ${found.length.toLocaleString("en-US")}${of && " that match"}.`
      : `${found.length.toLocaleString("en-US")}${of}.`;
    at("more").hidden = shown.length === found.length;
  }

  function setUpLosers() {
    at("lost").hidden = !given.losers.length;
    for (const [name, words, count] of given.kinds) {
      const button = element("button", { type: "button", "aria-pressed": "false", "data-kind": name },
        `${words} ${count.toLocaleString("en-US")}`);
      button.addEventListener("click", () => {
        kind = kind === name ? null : name;
        for (const one of at("kinds").children) one.setAttribute("aria-pressed", one.dataset.kind === kind);
        all = false;
        showLosers();
      });
      at("kinds").append(button);
    }
    at("search").addEventListener("input", () => { all = false; showLosers(); });
    at("more").addEventListener("click", () => { all = true; showLosers(); });
    showLosers();
  }

  // -- start ------------------------------------------------------------------------------------

  setUpLosers();
  if (!ways.length) {
    document.querySelector(".play").hidden = at("plan").hidden = true;
    return;
  }
  at("limits").addEventListener("input", (event) => {
    const step = Number(event.target.value), name = event.target.id;
    if (name === "confidence") limits.confidence = step / 100;
    else {
      const value = rails[name].value(step);
      limits[name] = value === null ? null : name === "deadline" ? roundHours(value) : roundMoney(value);
    }
    picked = null;
    show();
  });
  at("limits").addEventListener("submit", (event) => event.preventDefault());
  at("reset").addEventListener("click", () => {
    Object.assign(limits, asked);
    picked = null;
    setSliders();
    show();
  });
  for (const button of document.querySelectorAll("button.pick")) {
    button.addEventListener("click", () => {
      pick(ways[button.dataset.way]);
      at("plan").scrollIntoView({ block: "nearest" });
    });
  }
  setSliders();
  // It reports once at the start, as soon as there is a width.
  new ResizeObserver(() => {
    const width = svg.parentNode.clientWidth;
    if (!width || (chart && chart.width === width)) return;
    draw();
    show();
  }).observe(svg.parentNode);
})();
