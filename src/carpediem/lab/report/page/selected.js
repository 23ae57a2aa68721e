// Figure 4: the losses of the samples that each method drew, epoch by epoch.

function selected(data, warmUp) {
  if (data.missing) return [missing(data.missing)];
  const { lines, edges } = data;
  const count = d3.max(lines, (line) => line.shares.length);
  const start = afterWarmUp(count, warmUp);
  const at = () => sliderAt("epoch", count, start);
  const table = el("div");
  const fill = () => {
    const content = selectedSummary(lines.filter(isOn), at());
    table.replaceChildren(plainTable("The epoch by method", content.columns, content.rows, true));
  };
  onView(["epoch", "off"], fill);
  fill();
  return [
    el("div", { class: "controls" }, slider("Epoch", "epoch", count, start, (epoch) => `${epoch + 1} of ${count}`)),
    methodLegend("selected", lines),
    figure({
      id: "selected-losses",
      title: () => `Loss of the samples drawn in epoch ${at() + 1}`,
      keys: ["epoch", "off"],
      draw: (width) => selectedDrawing(lines.filter(isOn), edges, at(), width),
      numbers: () => selectedNumbers(lines.filter(isOn), edges, at()),
    }),
    table,
    el("p", { class: "note" }, "Mean over the seeds of a method. Loss: in training, before the step that the sample took part in."),
  ];
}

function selectedDrawing(lines, edges, epoch, width) {
  const drawn = lines.filter((line) => line.shares[epoch]);
  if (!drawn.length) return missing(lines.length ? "No method has come to this epoch." : "No method is switched on.");
  // The axis of losses stays as it is while the epoch changes.
  const bins = d3.range(edges.length - 1).filter((bin) => lines.some((line) => line.shares.some((row) => row[bin] > 0.05)));
  const [first, last] = d3.extent(bins);
  const domain = [10 ** edges[first], 10 ** edges[last + 1]];
  const most = d3.max(drawn, (line) => d3.max(line.shares[epoch]));
  const steps = drawn.map((line) => ({
    line,
    points: d3.range(first, last + 1).flatMap((bin) => [edges[bin], edges[bin + 1]].map((edge) => ({ x: 10 ** edge, y: line.shares[epoch][bin] }))),
  }));
  const middles = drawn.flatMap((line) =>
    d3.range(first, last + 1).map((bin) => ({
      line, share: line.shares[epoch][bin], x: 10 ** ((edges[bin] + edges[bin + 1]) / 2), low: 10 ** edges[bin], high: 10 ** edges[bin + 1],
    })),
  );
  const style = (line) => styleOf(line.style);
  const ticks = logTicks(...domain);
  return Plot.plot({
    width, height: Math.min(340, Math.max(250, width * 0.4)), marginLeft: 40, marginRight: 16, marginTop: 28, marginBottom: 42,
    x: { type: "log", domain, label: "Loss" },
    y: { domain: [0, Math.max(5, Math.ceil(most / 5) * 5)], label: "Share of the samples drawn (%)", grid: true, ticks: 5 },
    marks: [
      logAxis(Plot.axisX, ticks),
      steps.map(({ line, points }) => Plot.areaY(points, { x: "x", y1: 0, y2: "y", fill: style(line).colour, fillOpacity: Math.min(0.08, 0.4 / drawn.length) })),
      steps.map(({ line, points }) =>
        Plot.line(points, { x: "x", y: "y", stroke: style(line).colour, strokeDasharray: style(line).dash, strokeWidth: 2 }),
      ),
      Plot.ruleY([0]),
      Plot.tip(middles, Plot.pointer({
        x: "x", y: "share", maxRadius: 60,
        title: (p) => `${p.line.name}\nloss ${number(p.low, 2)} to ${number(p.high, 2)}: ${number(p.share, 3)}%`,
      })),
    ],
  });
}

function selectedSummary(lines, epoch) {
  const quantiles = Object.keys(lines.find((line) => line.quantiles[epoch])?.quantiles[epoch] ?? {});
  const columns = ["Method", ...quantiles.map((q) => (q === "0.5" ? "median loss" : `${number(100 * q)}% quantile`)), "distinct samples (%)", "pressure"];
  const rows = lines.map((line) => [
    line.name,
    ...quantiles.map((q) => line.quantiles[epoch]?.[q]),
    line.distinct[epoch] === null || line.distinct[epoch] === undefined ? null : 100 * line.distinct[epoch],
    line.pressure[epoch],
  ]);
  return { columns, rows };
}

function selectedNumbers(lines, edges, epoch) {
  const columns = ["method", "epoch", "loss from", "loss to", "share (%)"];
  const rows = lines.flatMap((line) =>
    (line.shares[epoch] ?? []).map((share, bin) => [line.name, epoch + 1, 10 ** edges[bin], 10 ** edges[bin + 1], share]),
  );
  return { columns, rows };
}
