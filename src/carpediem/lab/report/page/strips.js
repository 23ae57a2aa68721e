// Figure 2: samples through the epochs, with what a growing and a sliding window make of them.

function classColour(number, count) {
  if (number < 0) return "var(--blank)";
  return count <= 10 ? d3.schemeTableau10[number] : d3.interpolateRainbow(number / count);
}

function strips(data, pictures) {
  if (data.missing) return [missing(data.missing)];
  const [menuOfRuns, run] = runMenu("strips-run", data.runs);
  const chosen = () => {
    const asked = view.get("strips");
    return asked ? run().samples.filter((one) => view.list("strips").includes(String(one.index))) : run().chosen.map((column) => run().samples[column]);
  };
  const body = el("div", { class: "figures small" });
  const chips = el("fieldset", { class: "chips" });
  const swatches = el("ul", { class: "swatches", "aria-label": "Colours of the classes" });
  const fill = () => {
    const samples = chosen();
    const ids = samples.map((one) => one.index);
    chips.replaceChildren(
      el("legend", { class: "unseen" }, "Samples"),
      ...run().samples.map((one) => stripChip(one, ids, data.classes, pictures.images?.[one.index])),
    );
    const seen = [...new Set(samples.flatMap((one) => [one.label, ...one.prediction]))].filter((c) => c >= 0).sort((a, b) => a - b);
    swatches.replaceChildren(...seen.map((c) => el("li", {}, el("i", { colour: classColour(c, data.classes.length) }), data.classes[c])));
    const waiting = later.length;
    body.replaceChildren(...samples.map((one) => stripFigure(one, data.classes, run().epochs)));
    if (body.isConnected) for (const draw of later.splice(waiting)) draw();
  };
  onView(["strips", "strips-run"], () => {
    const focused = document.activeElement?.id;
    keepingUnfolded(fill);
    document.getElementById(focused)?.focus({ preventScroll: true });
  });
  fill();
  return [
    el("div", { class: "controls" }, menuOfRuns),
    el("details", { id: "strips-choice" }, el("summary", {}, "Choose the samples"), chips),
    el(
      "ul",
      { class: "swatches", "aria-label": "Lines" },
      lineKey(RECENCY, "Recency Bias: uncertainty of the last q predictions"),
      lineKey(ACTIVE, "Active Bias: deviation of the true label's probability over all draws so far, doubled"),
    ),
    swatches,
    body,
    el(
      "p",
      { class: "note" },
      "Strip: the last prediction of each epoch, at full height where it is not the label; blank where the sample was not drawn. ",
      "The deviation is at most 0.5, and is doubled to fill the same range as the uncertainty.",
    ),
  ];
}

function stripChip(sample, chosen, classes, picture) {
  const box = el("input", {
    type: "checkbox", id: `strip-${sample.index}`, checked: chosen.includes(sample.index),
    onchange: () => {
      const now = box.checked ? [...chosen, sample.index] : chosen.filter((index) => index !== sample.index);
      view.set("strips", now.length ? now.join("~") : "none");
    },
  });
  return el("label", {}, box, picture && el("img", { src: picture, alt: "", width: 24, height: 24 }), `${sample.index}: ${classes[sample.label]}`);
}

function stripFigure(sample, classes, epochs) {
  return figure({
    id: `strip-of-${sample.index}`, title: `Sample ${sample.index}, label ${classes[sample.label]}`, keys: [],
    draw: (width) => stripDrawing(sample, classes, epochs, width),
    numbers: () => ({
      columns: ["epoch", "prediction", "times drawn", "uncertainty (Recency Bias)", "deviation (Active Bias)"],
      rows: sample.prediction.map((c, epoch) => [epoch + 1, c < 0 ? DASH : classes[c], sample.drawn[epoch], sample.uncertainty[epoch], sample.deviation[epoch]]),
    }),
  });
}

function stripDrawing(sample, classes, epochs, width) {
  const rows = sample.prediction.map((prediction, epoch) => ({ prediction, epoch, uncertainty: sample.uncertainty[epoch], deviation: sample.deviation[epoch] }));
  const drawn = rows.filter((row) => row.prediction >= 0);
  const shared = { width, marginLeft: 36, marginRight: 12, x: { domain: [0, epochs] } };
  const tip = (row) =>
    `epoch ${row.epoch + 1}: ${row.prediction < 0 ? "not drawn" : classes[row.prediction]}\nuncertainty ${number(row.uncertainty, 3)}, deviation ${number(row.deviation, 3)}`;
  const strip = Plot.plot({
    ...shared, height: 30, marginTop: 2, marginBottom: 2, y: { domain: [0, 1], axis: null }, x: { ...shared.x, axis: null },
    marks: [
      Plot.rect(drawn, {
        x1: "epoch", x2: (row) => row.epoch + 1, y1: 0, y2: (row) => (row.prediction === sample.label ? 0.5 : 1), insetLeft: 0.5, insetRight: 0.5,
        fill: (row) => classColour(row.prediction, classes.length),
      }),
    ],
    color: { type: "identity" },
  });
  const lines = Plot.plot({
    ...shared, height: 120, marginTop: 8, marginBottom: 34,
    x: { ...shared.x, label: "Epoch", ticks: width < 420 ? 4 : 7, tickFormat: (v) => number(v) },
    y: { domain: [0, 1], ticks: [0, 0.5, 1], grid: true, label: null },
    marks: [
      Plot.line(rows, { x: (row) => row.epoch + 0.5, y: (row) => (row.deviation === null ? NaN : 2 * row.deviation), stroke: styleOf(ACTIVE).colour, strokeDasharray: styleOf(ACTIVE).dash, strokeWidth: 2 }),
      Plot.line(rows, { x: (row) => row.epoch + 0.5, y: "uncertainty", stroke: styleOf(RECENCY).colour, strokeDasharray: styleOf(RECENCY).dash, strokeWidth: 2 }),
      Plot.tip(rows, Plot.pointerX({ x: (row) => row.epoch + 0.5, y: "uncertainty", title: tip })),
    ],
  });
  return el("div", {}, strip, lines);
}
