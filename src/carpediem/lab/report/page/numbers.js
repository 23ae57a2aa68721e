// Numbers as text, as tables, and as CSV.

const DASH = "—";

function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e6) return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8 });
  return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e");
}

function csvText(columns, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",") + "\n").join("");
}

function downloadButton(name, content) {
  return el(
    "button",
    {
      type: "button", class: "download", "aria-label": `Download ${name}.csv`,
      onclick: () => {
        const { columns, rows } = content();
        const address = URL.createObjectURL(new Blob([csvText(columns, rows)], { type: "text/csv" }));
        el("a", { href: address, download: `${name}.csv` }).click();
        setTimeout(() => URL.revokeObjectURL(address), 10_000);
      },
    },
    "Download CSV",
  );
}

function fileName(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 80) || "table";
}

function bodyCell(namesRow, isText, text) {
  return namesRow ? el("th", { scope: "row", class: isText && "text" }, text) : el("td", { class: isText && "text" }, text);
}

function plainTable(caption, columns, rows, whole = false) {
  // Of {columns, rows}: the first column names the row.
  const isText = columns.map((_, index) => rows.some((row) => typeof row[index] === "string"));
  return el(
    "div",
    { class: whole ? "scroll whole" : "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, columns.map((title, index) => el("th", { scope: "col", class: isText[index] && "text" }, title)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, index) => bodyCell(index === 0, isText[index], number(value)))))),
    ),
  );
}
