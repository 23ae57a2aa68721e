// A figure: what it shows, the drawing, and its numbers behind it.

function keepingUnfolded(rebuild) {
  // What the reader has unfolded or folded stays so while elements are made anew.
  const were = new Map([...document.querySelectorAll("details[id]")].map(({ id, open }) => [id, open]));
  rebuild();
  for (const details of document.querySelectorAll("details[id]")) details.open = were.get(details.id) ?? details.open;
}

let isPrinting = false;

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (!isPrinting && target.isConnected && Math.abs(target.clientWidth - target.drawnAt) > 1) target.redraw();
  }
});

// A figure is drawn anew for paper: enlarging or shrinking what fits the window would do the same to its text.
window.addEventListener("beforeprint", () => {
  isPrinting = true;
  for (const holder of document.querySelectorAll(".drawing")) holder.redraw(holder.closest(".figures") ? 340 : 700);
});
window.addEventListener("afterprint", () => {
  isPrinting = false;
  for (const holder of document.querySelectorAll(".drawing")) holder.redraw();
});

function figure({ id, title, keys, draw, numbers }) {
  // draw(width) gives an element; numbers() gives {columns, rows}. Both are asked again when one of `keys` changes.
  const holder = el("div", { class: "drawing", id: `${id}-drawing` });
  const body = el("div");
  const caption = el("figcaption");
  const details = el("details", { id: `${id}-numbers` }, el("summary", {}, "Numbers"), body);
  const text = () => (typeof title === "function" ? title() : title);
  const fill = () => {
    if (!details.open) return;
    const content = numbers();
    body.replaceChildren(plainTable(text(), content.columns, content.rows), downloadButton(fileName(id), numbers));
  };
  details.addEventListener("toggle", fill);
  holder.redraw = (width = holder.clientWidth) => {
    holder.drawnAt = width;
    caption.textContent = text();
    const drawing = draw(Math.max(240, width));
    if (!drawing.classList.contains("missing")) {
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", `${text()}; its numbers follow`);
    }
    holder.replaceChildren(drawing);
  };
  onView(keys, () => {
    holder.redraw();
    fill();
  });
  later.push(() => {
    holder.redraw();
    widths.observe(holder);
  });
  return el("figure", { id }, caption, holder, details);
}

const later = []; // what waits for its element to be in the page, where it has a width

const DASHES = [null, "6,2.5", "2,2.5", "9,2.5,2,2.5"];
const ACTIVE = ["active", 2], RECENCY = ["recency", 3]; // these methods' own colours and dashes

function styleOf([colour, dashes]) {
  return { colour: `var(--${colour})`, dash: DASHES[dashes] };
}

function isOn(line) {
  return !view.list("off").includes(line.key);
}

function lineSwatch(style) {
  const { colour, dash } = styleOf(style);
  const swatch = Plot.plot({
    width: 30, height: 10, margin: 0, axis: null, x: { domain: [0, 1] }, y: { domain: [0, 1] },
    marks: [Plot.line([[0, 0.5], [1, 0.5]], { stroke: colour, strokeDasharray: dash, strokeWidth: 2.5 })],
  });
  swatch.setAttribute("aria-hidden", "true");
  return swatch;
}

function lineKey(style, text) {
  return el("li", { class: "line-key" }, lineSwatch(style), text);
}

function methodLegend(id, lines) {
  const list = el("ul", { class: "legend", "aria-label": "Methods: press to switch on and off" });
  for (const line of lines) {
    const button = el(
      "button",
      { type: "button", id: `${id}-${line.key}`, onclick: () => view.toggle("off", line.key) },
      lineSwatch(line.style),
      line.name,
    );
    const show = () => button.setAttribute("aria-pressed", String(isOn(line)));
    show();
    onView(["off"], show);
    list.append(el("li", {}, button));
  }
  return list;
}

function logTicks(low, high) {
  // As many as can be read: few multiples of each power of ten where there are many powers.
  const steps = [[5, [1, 1.5, 2, 3, 4, 5, 6, 8]], [30, [1, 2, 3, 5, 7]], [1000, [1, 2, 5]], [Infinity, [1]]];
  const [, chosen] = steps.find(([most]) => high / low <= most);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const step of chosen) {
      const tick = step * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  if (ticks.length < 3) return d3.ticks(low, high, 4);
  return ticks.length > 12 ? ticks.filter((_, index) => index % Math.ceil(ticks.length / 8) === 0) : ticks;
}

function logAxis(axis, ticks) {
  // Plot's own labels of a logarithmic axis leave some ticks bare.
  return axis(ticks, { text: (tick) => (tick < 0.0005 && Math.abs(Math.log10(tick) % 1) < 1e-9 ? `10${superscript(Math.round(Math.log10(tick)))}` : number(tick, 3)) });
}

function superscript(power) {
  return String(power).replace("-", "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
}
