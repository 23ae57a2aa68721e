// Elements are made here alone, and text goes into them as text: nothing in the data can become markup.

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") node[name] = value;
    else if (name === "colour") node.style.background = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function missing(sentence) {
  return el("p", { class: "missing" }, sentence);
}

function choice(label, key, options, fallback) {
  // One of a few, as radio buttons: options are [value, text] pairs.
  const chosen = view.oneOf(key, options.map(([value]) => value), fallback);
  return el(
    "fieldset",
    {},
    el("legend", {}, label),
    options.map(([value, text]) =>
      el(
        "label",
        {},
        el("input", {
          type: "radio", name: key, value, id: `${key}-${value}`, checked: value === chosen,
          onchange: () => view.set(key, value, fallback),
        }),
        text,
      ),
    ),
  );
}

function menu(label, key, options, fallback) {
  // One of many: options are [value, text] pairs.
  const chosen = view.oneOf(key, options.map(([value]) => value), fallback);
  const select = el(
    "select",
    { id: `menu-${key}`, onchange: (event) => view.set(key, event.target.value, fallback) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
  return el("label", {}, label, select);
}

function runMenu(key, runs) {
  // A menu of runs, Recency Bias where nothing is chosen; and a function that gives the chosen one.
  const usual = runs.find((run) => run.key.startsWith("recency")) ?? runs[0];
  const chosen = () => runs.find((run) => run.key === view.get(key)) ?? usual;
  return [menu("Run", key, runs.map((run) => [run.key, `${run.name}, seed ${run.seed}`]), usual.key), chosen];
}

function slider(label, key, count, start, describe, others = []) {
  // A position among `count`, at `start` until one is chosen; described anew when one of the `others` changes too.
  const output = el("output", { for: `slider-${key}` });
  const at = () => sliderAt(key, count, start);
  const input = el("input", {
    type: "range", id: `slider-${key}`, min: 0, max: count - 1, step: 1,
    oninput: () => view.set(key, String(input.value), String(start)),
  });
  const show = () => {
    input.value = at();
    output.textContent = describe(at());
    input.setAttribute("aria-valuetext", describe(at()));
  };
  onView([key, ...others], show);
  show();
  return el("div", { class: "slider" }, el("label", { for: `slider-${key}` }, label), input, output);
}

function sliderAt(key, count, start) {
  const chosen = Number.parseInt(view.get(key, String(start)), 10);
  return Math.min(Math.max(Number.isNaN(chosen) ? start : chosen, 0), count - 1);
}

function afterWarmUp(count, warmUp) {
  // An epoch in which the pressure is high: a tenth of the way from the warm-up to the end.
  const first = Math.min(warmUp?.epochs ?? 0, count - 1);
  return Math.round(first + 0.1 * (count - 1 - first));
}
