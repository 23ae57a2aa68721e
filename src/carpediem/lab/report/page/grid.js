// Figure 7 and Tables 6 and 7 as heat maps: the darker, the better.

function grid(grids, ablations) {
  if (!grids.length && !ablations.length) {
    return [
      missing(
        "No setting here has finished runs with several windows, pressures or schedules; carpediem reproduce grid-search, " +
        "carpediem reproduce pressure-ablation, or carpediem compare with other values of --window, --pressure and --schedule and " +
        "the same --out train some.",
      ),
    ];
  }
  return [
    el(
      "div",
      { class: "figures" },
      grids.map((one, number) =>
        heatMap(`grid-${number}`, `Best test error (%): ${one.title}`, one.points, {
          x: "Pressure s₀", y: "Window q", columns: one.pressures, rows: one.windows, random: one.random,
        }),
      ),
      ablations.map((one, number) =>
        heatMap(`ablation-${number}`, `Best test error (%) by pressure: ${one.title}`, one.points, {
          x: "Pressure", y: "Method", columns: one.pressures, rows: [...new Set(one.points.map((p) => p[1]))], random: one.random,
        }),
      ),
    ),
    el("p", { class: "note" }, "The stronger the colour, the lower the error; from the weakest to the strongest in each map. Mean over the finished seeds."),
  ];
}

function heatMap(id, title, points, { x, y, columns, rows, random }) {
  const cells = points.map(([column, row, mean, error, count]) => ({ column, row, mean, error, count }));
  const [least, most] = d3.extent(cells, (cell) => cell.mean);
  const strength = (cell) => (most > least ? (most - cell.mean) / (most - least) : 1);
  const isText = rows.some((row) => typeof row === "string");
  const label = (cell) => cell.mean.toFixed(2); // as in the tables
  return figure({
    id, title, keys: [],
    draw: (width) => {
      const left = isText ? (width < 420 ? 96 : 150) : 44;
      const fitted = Math.min(width, 760);
      // Words stand upright where they would run into each other.
      const isUpright = typeof columns[0] === "string" && (fitted - left) / columns.length < 76;
      const below = isUpright ? 96 : typeof columns[0] === "string" ? 58 : 42;
      return Plot.plot({
        width: fitted, height: 24 + below + 46 * rows.length, marginLeft: left, marginTop: 12, marginBottom: below, padding: 0.04,
        x: { type: "band", domain: columns, label: x },
        y: { type: "band", domain: rows, label: isText ? null : y },
        marks: [
          isText ? Plot.axisY(rows, { lineWidth: (left - 16) / 12, label: null }) : null,
          Plot.axisX(columns, { text: (v) => (typeof v === "number" ? number(v) : v.replace(", ", "\n")), label: x, labelOffset: below - 6, tickRotate: isUpright ? -90 : 0 }),
          Plot.cell(cells, { x: "column", y: "row", fill: (cell) => `color-mix(in oklab, var(--good) ${Math.round(100 * strength(cell))}%, var(--weak))`, title: (cell) => heatTip(cell, x, y) }),
          Plot.text(cells, { x: "column", y: "row", text: label, fill: "var(--ink)", fontSize: 13 }),
        ],
        color: { type: "identity" },
      });
    },
    numbers: () => ({
      columns: [x, y, "mean best test error (%)", "standard error", "seeds", "Random Batch (%)"],
      rows: cells.map((cell) => [cell.column, cell.row, cell.mean, cell.error, cell.count, random ?? null]),
    }),
  });
}

function heatTip(cell, x, y) {
  return `${x} ${cell.column}, ${y} ${cell.row}: ${number(cell.mean)}%${cell.error === null ? "" : ` ± ${number(cell.error, 2)}`}, ${cell.count} ${cell.count === 1 ? "seed" : "seeds"}`;
}
