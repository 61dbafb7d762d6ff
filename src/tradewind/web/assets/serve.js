"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const play = document.getElementById("play");
  if (!play) return;
  const costs = new Map(data.costs.map(([at, cost, machines]) => [at.join(), { cost, machines }]));
  const money = (value) => "$" + Math.round(value).toLocaleString("en-US");
  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en-US");
  const knobs = [
    {
      key: "traffic", steps: data.traffic,
      words: (times) => `${digits(times * data.rate)} requests a second`,
    },
    ...data.targets.map((one) => ({
      key: one.name, steps: one.steps, words: (times) => `${digits(times * one.ms)} ms`,
    })),
  ];
  const asked = costs.get(knobs.map(() => 1).join());

  function show() {
    const at = knobs.map((one) => one.steps[Number(one.input.value)]);
    knobs.forEach((one, n) => {
      one.output.textContent = one.words(at[n]);
      one.input.setAttribute("aria-valuetext", one.words(at[n]));
    });
    const found = costs.get(at.join());
    const result = document.getElementById("result");
    if (!found || found.cost === null) {
      result.textContent = "Nothing meets these targets within the limits.";
      return;
    }
    const more = found.cost - asked.cost;
    let than = "";
    if (Math.abs(more) >= 0.5) than = `, ${money(Math.abs(more))} ${more > 0 ? "more" : "less"}`;
    result.textContent = `${money(found.cost)} a month${than}: up to ${found.machines}`;
  }

  for (const one of knobs) {
    one.input = document.getElementById(`s-${one.key}`);
    one.output = document.getElementById(`o-${one.key}`);
    one.input.max = one.steps.length - 1;
    one.input.value = one.steps.indexOf(1);
    one.input.addEventListener("input", show);
  }
  play.hidden = false;
  show();
})();
