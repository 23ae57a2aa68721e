// Training losses and test error by iteration or by time, a line a method.

const OF_TRAINING_SET = "training_set_loss";
const QUANTITIES = [
  [OF_TRAINING_SET, "Training loss (whole training set)"],
  ["test_error", "Test error (%)"],
  ["train_loss", "Loss of the drawn samples"],
];

const ALONG = [["iterations", "iterations"], ["seconds", "wall-clock time"]];
const SCALES = [["log", "logarithmic"], ["linear", "linear"]];

function convergence(data) {
  const { lines } = data;
  if (!lines.some((line) => line.iterations.length || line.unfinished.length)) {
    return [missing("No epoch has been finished yet; the curves begin with the first.")];
  }
  // Not every run, nor every epoch of one, was evaluated on the whole training set.
  const isEvaluated = lines.some((line) => [line, ...line.unfinished].some((one) => one.evaluated.length));
  const shown = isEvaluated ? QUANTITIES : [QUANTITIES[2], QUANTITIES[1]];
  const figures = shown.map(([field, title]) =>
    figure({
      id: `convergence-${field}`,
      title: () => title + (isAskedLog() && lowestDrawn(lines.filter(isOn), field) <= 0 ? ", on a linear scale: 0 has no logarithm" : ""),
      keys: ["x", "scale", "off"],
      draw: (width) => convergenceDrawing(data, field, title, width),
      numbers: () => convergenceNumbers(lines.filter(isOn), field),
    }),
  );
  const counts = [...new Set(d3.extent(lines.map((line) => line.seeds.length).filter(Boolean)))].filter(Boolean);
  const diverged = lines.filter((line) => shown.some(([field]) => line[field].mean.includes(null))).map((line) => line.name);
  const unfinished = lines.some((line) => line.unfinished.length);
  return [
    el(
      "div",
      { class: "controls" },
      choice("Along", "x", ALONG, "iterations"),
      choice("Scale", "scale", SCALES, "log"),
    ),
    methodLegend("convergence", lines),
    el("div", { class: "figures" }, figures),
    el(
      "p",
      { class: "note" },
      counts.length ? `Line: mean of ${counts.join(" to ")} finished ${counts.at(-1) === 1 ? "seed" : "seeds"}. ` : "",
      counts.at(-1) > 1 ? "Band: lowest to highest. " : "",
      diverged.length ? `A seed of ${diverged.join(" and of ")} has a loss that is no number: there the line has a gap. ` : "",
      unfinished ? "Thin lines: single runs that have not finished. " : "",
      isEvaluated ? "The whole training set is evaluated as tests are made, without augmentation. " : "",
      "Time is that of training alone, without evaluation.",
    ),
  ];
}

function isAskedLog() {
  return view.get("scale", "log") !== "linear";
}

function lowestDrawn(lines, field) {
  return d3.min(lines.flatMap((line) => [...line[field].low, ...line.unfinished.flatMap((run) => run[field])]));
}

function epochsOf(one, field) {
  return field === OF_TRAINING_SET ? one.evaluated : d3.range(one.iterations.length);
}

function convergenceDrawing(data, field, title, width) {
  const x = view.oneOf("x", ALONG.map(([value]) => value), "iterations");
  const lines = data.lines.filter(isOn);
  const isLog = isAskedLog() && !(lowestDrawn(lines, field) <= 0);
  const thick = lines.map((line) => ({
    line,
    points: epochsOf(line, field).map((epoch, i) => ({
      x: line[x][epoch], y: line[field].mean[i], low: line[field].low[i], high: line[field].high[i], epoch, line,
    })),
  }));
  const thin = lines.flatMap((line) =>
    line.unfinished.map((run) => ({
      line,
      points: epochsOf(run, field).map((epoch, i) => ({ x: run[x][epoch], y: run[field][i], epoch, line, seed: run.seed })),
    })),
  );
  const all = [...thick, ...thin].flatMap((one) => one.points);
  const values = all.flatMap(({ y, low, high }) => [y, low, high]).filter(Number.isFinite);
  if (!values.length) return missing(lines.length ? "No value to draw." : "No method is switched on.");
  const [least, most] = d3.extent(values);
  const domain = isLog ? [least / 1.06, most * 1.06] : [Math.min(0, least), most * 1.03 || 1];
  const kept = (value) => (Number.isFinite(value) ? value : NaN);
  const end = d3.max(all, (point) => point.x);
  const warmUp = data.warm_up?.[x];
  const hasWarmUp = warmUp && warmUp < end;
  const ticks = isLog ? logTicks(...domain) : d3.ticks(...domain, 6);
  return Plot.plot({
    width, height: Math.min(380, Math.max(270, width * 0.6)), marginLeft: 48, marginRight: 16, marginTop: 22, marginBottom: 42,
    x: { domain: [0, end], label: x === "seconds" ? "Seconds of training" : "Iteration", ticks: width < 420 ? 4 : 6, tickFormat: (v) => number(v) },
    y: { type: isLog ? "log" : "linear", domain, label: null },
    marks: [
      Plot.gridY(ticks),
      isLog ? logAxis(Plot.axisY, ticks) : Plot.axisY(ticks),
      hasWarmUp ? Plot.rect([0], { x1: 0, x2: warmUp, y1: domain[0], y2: domain[1], fill: "currentColor", fillOpacity: 0.05 }) : null,
      // Above the frame: within it, some line would run through the word.
      hasWarmUp ? Plot.text(["warm-up"], { x: 0, y: domain[1], textAnchor: "start", lineAnchor: "bottom", dy: -5, fill: "var(--quiet)" }) : null,
      thick.map(({ line, points }) =>
        Plot.areaY(points, { x: "x", y1: (p) => kept(p.low), y2: (p) => kept(p.high), fill: styleOf(line.style).colour, fillOpacity: Math.min(0.11, 0.8 / thick.length) }),
      ),
      thin.map(({ line, points }) =>
        Plot.line(points, { x: "x", y: (p) => kept(p.y), stroke: styleOf(line.style).colour, strokeWidth: 1, strokeOpacity: 0.75 }),
      ),
      thick.map(({ line, points }) =>
        Plot.line(points, {
          x: "x", y: (p) => kept(p.y), stroke: styleOf(line.style).colour, strokeDasharray: styleOf(line.style).dash, strokeWidth: 2,
        }),
      ),
      Plot.tip(all, Plot.pointer({ x: "x", y: (p) => kept(p.y), title: (p) => convergenceTip(p, x, title), maxRadius: 60 })),
    ],
  });
}

function convergenceTip(point, x, title) {
  const spread = point.low !== point.high && point.low !== undefined ? ` (${number(point.low)} to ${number(point.high)})` : "";
  return [
    point.line.name + (point.seed === undefined ? "" : `, seed ${point.seed}, unfinished`),
    `${title}: ${number(point.y)}${spread}`,
    x === "seconds" ? `${number(point.x)} s, epoch ${point.epoch + 1}` : `iteration ${number(point.x)}, epoch ${point.epoch + 1}`,
  ].join("\n");
}

function convergenceNumbers(lines, field) {
  const columns = ["method", "seeds", "epoch", "iteration", "seconds", "mean", "lowest", "highest"];
  const rows = lines.flatMap((line) => [
    ...epochsOf(line, field).map((epoch, i) => [
      line.name, line.seeds.length, epoch + 1, line.iterations[epoch], line.seconds[epoch],
      line[field].mean[i], line[field].low[i], line[field].high[i],
    ]),
    ...line.unfinished.flatMap((run) =>
      epochsOf(run, field).map((epoch, i) => [
        `${line.name}, seed ${run.seed}, unfinished`, 1, epoch + 1, run.iterations[epoch], run.seconds[epoch],
        run[field][i], run[field][i], run[field][i],
      ]),
    ),
  ]);
  return { columns, rows };
}
