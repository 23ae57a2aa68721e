// The tables, ours beside the paper's: sortable, and as CSV.

function tables(all) {
  const body = el("div");
  const fill = () => body.replaceChildren(...tablesShown(all));
  onView(["all-rows", "sort"], fill);
  fill();
  const unmeasured = all.some((table) => table.rows.some((row) => !row.measured));
  const more = el("input", {
    type: "checkbox", id: "all-rows", checked: view.get("all-rows") === "1",
    onchange: () => view.set("all-rows", more.checked ? "1" : ""),
  });
  return [unmeasured && el("div", { class: "controls unprinted" }, el("label", {}, more, "also the rows of the paper that have not been run here")), body];
}

function tablesShown(all) {
  const everything = view.get("all-rows") === "1";
  return all.flatMap((table, number) => {
    const rows = table.rows.filter((row) => everything || row.measured);
    return rows.length ? [sortableTable(table, rows, number)] : [];
  });
}

function sortableTable(table, rows, number) {
  const name = fileName(table.title);
  const [sortedTable, sortedColumn, direction] = view.get("sort").split(".");
  const column = Number(sortedTable) === number && sortedTable !== "" ? Number(sortedColumn) : null;
  const sorted = column === null ? rows : sortedRows(rows, column, direction === "down");
  // The last of the columns of words at the beginning, which is the method's.
  const names = table.columns.findIndex((head) => !head.text) - 1;
  const { same, shown } = columnsShown(table, rows, names);
  const heads = shown.map((index) => {
    const head = table.columns[index];
    const order = index === column ? (direction === "down" ? "descending" : "ascending") : null;
    const next = order === "ascending" ? `${number}.${index}.down` : order === "descending" ? "" : `${number}.${index}.up`;
    const button = el("button", { type: "button", id: `sort-${number}-${index}`, onclick: () => sortBy(next, button.id) }, head.title);
    return el("th", { scope: "col", class: head.text && "text", "aria-sort": order ?? "none" }, button);
  });
  return el(
    "div",
    { class: "table", id: `table-${number}` },
    el("h3", {}, table.title),
    same.length > 0 && el("p", { class: "about" }, same.map((index) => rows[0].texts[index]).join(", ")),
    el(
      "div",
      { class: "scroll whole", tabindex: 0, role: "region", "aria-label": table.title },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, heads)),
        el(
          "tbody",
          {},
          sorted.map((row) =>
            el(
              "tr",
              { class: !row.measured && "empty" },
              shown.map((index) => bodyCell(index === names, table.columns[index].text, row.texts[index])),
            ),
          ),
        ),
      ),
    ),
    downloadButton(name, () => {
      const columns = Object.keys(table.rows[0].values);
      return { columns, rows: sorted.map((row) => columns.map((key) => row.values[key])) };
    }),
    el("p", { class: "note" }, table.note),
  );
}

function columnsShown(table, rows, names) {
  // What all rows have in common is said once, above them; a column without a single value is left out.
  const indices = table.columns.map((_, index) => index);
  const same = indices.filter((index) => index < names && rows.every((row) => row.texts[index] === rows[0].texts[index]));
  const empty = indices.filter((index) => index > names && rows.every((row) => row.order[index] === null));
  return { same, shown: indices.filter((index) => !same.includes(index) && !empty.includes(index)) };
}

function sortBy(value, focus) {
  view.set("sort", value);
  document.getElementById(focus)?.focus();
}

function sortedRows(rows, column, down) {
  // What is missing stays at the end, whichever way the rest is sorted.
  const known = rows.filter((row) => row.order[column] !== null);
  const by = (row) => row.order[column];
  known.sort((a, b) => (typeof by(a) === "number" && typeof by(b) === "number" ? by(a) - by(b) : String(by(a)).localeCompare(String(by(b)))));
  if (down) known.reverse();
  return [...known, ...rows.filter((row) => row.order[column] === null)];
}
