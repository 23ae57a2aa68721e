// Figure 3: the indices that an uncertainty is given by rank and by quantisation.

function indexComparison(data, warmUp) {
  if (data.missing) return [missing(data.missing)];
  const [menuOfRuns, run] = runMenu("index-run", data.runs);
  const count = d3.max(data.runs, (one) => one.epochs.length);
  const start = afterWarmUp(count, warmUp);
  const at = () => {
    const { epochs } = run();
    return epochs[Math.min(sliderAt("index-epoch", count, start), epochs.length - 1)];
  };
  const text = () => {
    const { epoch, pressure } = at();
    return `Index of each uncertainty after epoch ${epoch + 1}${pressure === null ? ", in the warm-up" : `, pressure ${number(pressure, 3)}`}`;
  };
  const note = el("p", { class: "note" });
  const fill = () => (note.textContent = `Seed ${run().seed}, ${number(run().samples)} samples. A low index is drawn more often.`);
  onView(["index-run"], fill);
  fill();
  return [
    el(
      "div",
      { class: "controls" },
      data.runs.length > 1 && menuOfRuns,
      slider("Epoch", "index-epoch", count, start, (position) => `${run().epochs[Math.min(position, run().epochs.length - 1)].epoch + 1} of ${run().epochs.at(-1).epoch + 1}`, ["index-run"]),
    ),
    figure({
      id: "index-comparison", title: text, keys: ["index-run", "index-epoch"],
      draw: (width) => indexDrawing(at().points, run().samples, width),
      numbers: () => ({
        columns: ["uncertainty", "samples", "quantised index", "first rank", "last rank"],
        rows: at().points,
      }),
    }),
    el(
      "ul",
      { class: "swatches" },
      el("li", {}, el("i", { colour: "var(--recency)" }), "quantised: equal uncertainty, equal index"),
      el("li", {}, el("i", { colour: "var(--online)" }), "rank-based: equal uncertainty is spread over all these indices"),
    ),
    note,
  ];
}

function indexDrawing(points, samples, width) {
  const rows = points.map(([u, count, quantised, first, last]) => ({ u, count, quantised, first, last }));
  return Plot.plot({
    width, height: Math.min(380, Math.max(270, width * 0.42)), marginLeft: 56, marginRight: 16, marginTop: 28, marginBottom: 42,
    x: { domain: [-0.02, 1.02], ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], label: "Uncertainty" },
    y: { domain: [0, samples], label: "Index", grid: true, ticks: 5, tickFormat: (v) => number(v) },
    marks: [
      Plot.ruleX(rows, { x: "u", y1: (p) => p.first - 1, y2: "last", stroke: "var(--online)", strokeWidth: 5, strokeOpacity: 0.75 }),
      Plot.dot(rows, { x: "u", y: (p) => (p.first + p.last) / 2, r: 2.5, fill: "var(--online)" }),
      Plot.line(rows, { x: "u", y: "quantised", stroke: "var(--recency)", strokeOpacity: 0.5 }),
      Plot.dot(rows, { x: "u", y: "quantised", r: 3.5, fill: "var(--recency)", stroke: "var(--paper)", strokeWidth: 1 }),
      Plot.tip(rows, Plot.pointerX({
        x: "u", y: "quantised",
        title: (p) => `uncertainty ${number(p.u, 3)}: ${number(p.count)} ${p.count === 1 ? "sample" : "samples"}\nquantised index ${number(p.quantised)}\nranks ${number(p.first)} to ${number(p.last)}`,
      })),
    ],
  });
}
