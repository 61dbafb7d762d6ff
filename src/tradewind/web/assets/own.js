"use strict";
(() => {
  // The model of economics/owning.py and waiting.py; a test holds the two together.
  const given = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const { levels, shares, jobs, each, growth, lease, residuals, staff_exponent: people } = given;
  const YEAR_H = 8760, MONTH_H = 730;
  const values = { ...given.values };
  let years = given.years;

  // -- the model --------------------------------------------------------------------------------

  function months(v, year) {
    let worth = 0, moved = 0;
    for (let month = 0; month < 12; month++) {
      const when = year + (month + 0.5) / 12, today = (1 + v.discount) ** -when;
      worth += today / 12;
      moved += today * (1 + v.rent_trend) ** when / 12;
    }
    return [worth, moved];
  }

  function covered(able, factor) {
    let done = 0, wanted = 0;
    levels.forEach((level, i) => {
      done += Math.min(level * factor, able) * shares[i];
      wanted += level * factor * shares[i];
    });
    return [YEAR_H * done, YEAR_H * wanted];
  }

  function left(age) {
    for (let i = 1; i < residuals.length; i++) {
      const [a, x] = residuals[i - 1], [b, y] = residuals[i];
      if (age <= b) return x + (y - x) * (age - a) / (b - a);
    }
    return residuals[residuals.length - 1][1];
  }

  function bought(v, price, resold) {
    let paid = price, age = years;
    for (let again = 1; again <= years; again++) {
      const due = v.life_years * again;
      if (due < years) {
        paid += price * (1 + v.discount) ** -due;
        age = years - due;
      }
    }
    const share = Math.min(Math.max(left(age) * v.residual_factor, 0), 1);
    return paid - resold * share * (1 + v.discount) ** -years;
  }

  function instalment(v) {
    const monthly = Math.max(v.lease_rate, 1e-9) / 12;
    return monthly / (1 - (1 + monthly) ** (-12 * v.life_years));
  }

  function cost(v, n, rent, queued) {
    const able = n * each * v.availability;
    const price = v.server_usd * (1 + v.spares_share + (n > 1 ? v.fabric_share : 0));
    let total = 0, hours = 0;
    for (let year = 0; year < years; year++) {
      const [worth, moved] = months(v, year);
      let [done, wanted] = covered(able, v.use_factor * (1 + growth) ** year);
      if (queued) done = Math.min(wanted, able * YEAR_H);
      const load = n ? done / (YEAR_H * n * each) : 0;
      const kilowatts = n * v.watts / 1000, drawn = v.idle_draw + (1 - v.idle_draw) * load;
      let yearly = n * v.server_usd * v.support_share + 12 * kilowatts * v.colo_usd_kw_month
        + YEAR_H * kilowatts * drawn * v.pue * v.usd_per_kwh
        + (n ? (n / 4) ** people : 0) * v.staff_factor * v.staff_usd_year;
      if (lease) yearly += n * price * 12 * instalment(v);
      total += worth * yearly + moved * (wanted - done) * rent;
      hours += wanted;
    }
    if (!lease) total += bought(v, n * price, n * v.server_usd);
    return { total, hours };
  }

  function reserved(v, n, price) {
    let total = 0;
    for (let year = 0; year < years; year++) {
      const [worth, moved] = months(v, year);
      const [done, wanted] = covered(n * each, v.use_factor * (1 + growth) ** year);
      total += worth * n * each * YEAR_H * price + moved * (wanted - done) * v.rent_usd_hour;
    }
    return total;
  }

  function waiting(factor, accelerators, share) {
    const rates = jobs.map((job) => job.per_month * factor);
    const work = jobs.map((job, i) => job.accelerators * job.hours * rates[i]);
    const sum = (parts) => parts.reduce((a, b) => a + b, 0);
    const all = sum(work), busy = all / MONTH_H, able = accelerators * share;
    if (!jobs.length || busy <= 0) return 0;
    if (busy >= able || accelerators < Math.max(...jobs.map((job) => job.accelerators))) return Infinity;
    const size = sum(jobs.map((job, i) => job.accelerators * work[i])) / all;
    const rate = sum(jobs.map((job, i) => rates[i] * job.accelerators / size));
    const mean = all / size / rate;
    const square = sum(jobs.map((job, i) => rates[i] * job.accelerators / size * job.hours ** 2)) / rate;
    const varied = (1 + (square / mean ** 2 - 1)) / 2, servers = able / size, rho = busy / able;
    return varied * mean * rho ** (Math.sqrt(2 * (servers + 1)) - 1) / (servers * (1 - rho));
  }

  function enough(factor) {
    const peak = Math.max(...levels), up = values.availability;
    if (!jobs.length) return Math.ceil(peak * factor / (each * up) - 1e-9);
    const busy = jobs.reduce((sum, job) => sum + job.accelerators * job.hours * job.per_month, 0) * factor / MONTH_H;
    const largest = Math.max(...jobs.map((job) => job.accelerators));
    let n = Math.max(Math.ceil(largest / each), Math.ceil(busy / each / up), 1);
    while (waiting(factor, n * each, up) > given.wait_h && n < given.most) n++;
    return n;
  }

  function some(least, most) {
    const found = new Set();
    if (most - least < 120) for (let n = least; n <= most; n++) found.add(n);
    else for (let k = 0; k < 120; k++) found.add(Math.round(least * (most / least) ** (k / 119)));
    found.add(most);
    return [...found].sort((a, b) => a - b);
  }

  function answer() {
    const v = values, last = Math.max((1 + growth) ** (years - 1), 1) * v.use_factor;
    const peak = Math.max(...levels) * last, options = [];
    const rent = cost(v, 0, v.rent_usd_hour, false);
    options.push({ name: "rent", machines: 0, total: rent.total, words: "rent all on demand" });
    if (given.markets.includes("spot") && v.spot_usd_hour !== undefined)
      options.push({ name: "spot", machines: 0, words: "rent all on spot, where work resumes",
        total: cost(v, 0, v.spot_usd_hour * v.spot_overhead, false).total });
    for (const term of ["1y", "3y"]) {
      const price = v[`reserved_${term}_usd_hour`];
      if (price === undefined || !given.markets.includes("reserved") || (term === "3y" && years < 3)) continue;
      const most = Math.min(Math.ceil(peak / each), given.most);
      const best = some(1, most).map((n) => [reserved(v, n, price), n]).sort((a, b) => a[0] - b[0] || a[1] - b[1])[0];
      options.push({ name: `reserve-${term}`, machines: best[1], total: best[0],
        words: `reserve ${best[1]} for ${term[0]} year${term === "3y" ? "s" : ""} at a time, the rest on demand` });
    }
    const most = Math.min(Math.ceil(peak / (each * v.availability)), given.most);
    const curve = [0, ...some(1, Math.max(most, given.machines || 1))]
      .map((n) => [n, cost(v, n, v.rent_usd_hour, false).total]);
    const hybrid = given.machines || curve.filter(([n]) => n).reduce((a, b) => (b[1] < a[1] ? b : a))[0];
    const plural = (n) => `${n} machine${n > 1 ? "s" : ""}`;
    options.push({ name: "hybrid", machines: hybrid, total: cost(v, hybrid, v.rent_usd_hour, false).total,
      words: `own ${plural(hybrid)}, rent what ${hybrid > 1 ? "they do" : "it does"} not cover` });
    const alone = enough(last);
    if (alone <= given.most && (!given.machines || given.machines >= alone)) {
      const n = given.machines || alone;
      options.push({ name: "own", machines: n, total: cost(v, n, v.rent_usd_hour, true).total,
        words: `own ${plural(n)}, work waits its turn`,
        wait: jobs.length ? waiting(v.use_factor, n * each, v.availability) : 0 });
    }
    options.sort((a, b) => a.total - b.total);
    return { options, curve, hours: rent.hours };
  }

  // -- what is shown ----------------------------------------------------------------------------

  const money = (dollars) => (dollars < 0 ? "-$" : "$") + Math.abs(Math.round(dollars)).toLocaleString("en-US");
  const short = (dollars) => dollars >= 1e6 ? `$${(dollars / 1e6).toPrecision(3)}M` : `$${Math.round(dollars / 1e3)}k`;
  const SVG = "http://www.w3.org/2000/svg";

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function drawn(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function wait(hours) {
    if (hours === undefined) return "";
    return hours < 1 ? `${Math.round(60 * hours)} min` : `${hours.toFixed(1)} h`;
  }

  function showOptions({ options, hours }) {
    at("options").replaceChildren(...options.map((one, i) => element("tr", i ? {} : { class: "best" },
      element("th", { scope: "row" }, one.words),
      element("td", { class: "n", "data-total": one.total, "data-name": one.name }, money(one.total)),
      element("td", { class: "n wide" }, `$${(one.total / hours).toFixed(2)}`),
      element("td", { class: "n" }, wait(one.wait)))));
    const best = options[0];
    const owns = best.name === "own" || best.name === "hybrid";
    const other = options.find((one) => (one.name === "own" || one.name === "hybrid") !== owns);
    at("sentence").textContent = `${best.words[0].toUpperCase()}${best.words.slice(1)}: ${money(best.total)}`
      + ` over ${years} year${years > 1 ? "s" : ""}`
      + (other ? `, ${money(other.total - best.total)} less than to ${other.words}.` : ".");
  }

  function showCurve({ options, curve: whole }) {
    const least = Math.min(...whole.map(([, total]) => total));
    const curve = whole.filter(([n, total]) => n < 5 || total < 3 * least);
    const svg = at("chart"), width = svg.parentNode.clientWidth || 900, height = 300, foot = 34, head = 24;
    const rent = options.filter((one) => !["own", "hybrid"].includes(one.name))[0];
    const top = Math.max(...curve.map(([, total]) => total), Math.min(rent.total, 4 * least)) * 1.05;
    const most = Math.max(...curve.map(([n]) => n), 1);
    const x = (n) => 8 + n / most * (width - 24), y = (t) => head + (1 - t / top) * (height - foot - head);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const parts = [], marks = [];  // figures stand above lines
    const step = 10 ** Math.floor(Math.log10(top)) / (top / 10 ** Math.floor(Math.log10(top)) < 3 ? 2 : 1);
    for (let mark = 0; mark <= top; mark += step) {
      parts.push(drawn("line", { class: "grid", x1: 0, x2: width, y1: y(mark), y2: y(mark) }));
      if (mark) marks.push(drawn("text", { class: "halo", x: 0, y: y(mark) - 4 }, short(mark)));
    }
    const every = Math.max(1, Math.ceil(most / (width < 500 ? 5 : 12)));
    for (let n = 0; n <= most; n += every)
      parts.push(drawn("text", { x: x(n), y: height - 16, "text-anchor": n ? "middle" : "start" }, n));
    parts.push(drawn("text", { x: width, y: height - 1, "text-anchor": "end" }, "machines owned"));
    parts.push(drawn("line", { class: "renting", x1: 0, x2: width, y1: y(rent.total), y2: y(rent.total) }));
    parts.push(drawn("text", { class: "halo", x: width, y: y(rent.total) - 6, "text-anchor": "end" },
      `${rent.words.replace(/,.*/, "")}: ${short(rent.total)}`));
    parts.push(drawn("path", { class: "total", d: "M" + curve.map(([n, t]) => `${x(n).toFixed(1)} ${y(t).toFixed(1)}`).join("L") }));
    const low = curve.reduce((a, b) => (b[1] < a[1] ? b : a));
    parts.push(drawn("circle", { class: "chosen", cx: x(low[0]), cy: y(low[1]), r: 6 }));
    const side = low[0] > most / 2 ? "end" : "start";
    parts.push(drawn("text", { class: "chosen-name halo", x: x(low[0]) + (side === "end" ? -10 : 10),
      y: Math.min(y(low[1]) + 22, height - foot - 4), "text-anchor": side }, `least with ${low[0]}: ${short(low[1])}`));
    svg.replaceChildren(...parts, ...marks);
  }

  const sliders = {
    use: { get: () => 100 * values.use_factor, set: (x) => { values.use_factor = x / 100; }, words: () => `${Math.round(100 * values.use_factor)} %` },
    power: { get: () => 1000 * values.usd_per_kwh, set: (x) => { values.usd_per_kwh = x / 1000; }, words: () => `$${values.usd_per_kwh.toFixed(3)}` },
    years: { get: () => years, set: (x) => { years = x; }, words: () => String(years) },
    discount: { get: () => 100 * values.discount, set: (x) => { values.discount = x / 100; }, words: () => `${Math.round(100 * values.discount)} %` },
  };

  function show() {
    const found = answer();
    showOptions(found);
    showCurve(found);
    for (const [name, slider] of Object.entries(sliders)) at(`${name}-out`).textContent = slider.words();
    const settings = ["use_factor", "usd_per_kwh", "discount"].filter((name) => values[name] !== given.values[name])
      .map((name) => ` --set ${name}=${Number(values[name].toPrecision(6))}`).join("");
    const changed = settings + (years !== given.years ? ` --years ${years}` : "");
    at("again").textContent = changed ? `The same figures from the command: add${changed} to what made this page.` : "";
  }

  at("sliders").addEventListener("input", (event) => {
    sliders[event.target.id].set(Number(event.target.value));
    show();
  });
  at("sliders").addEventListener("submit", (event) => event.preventDefault());
  for (const [name, slider] of Object.entries(sliders)) at(name).value = slider.get();
  let width = 0;
  new ResizeObserver(() => {
    const now = at("chart").parentNode.clientWidth;
    if (!now || now === width) return;
    width = now;
    show();
  }).observe(at("chart").parentNode);
})();
