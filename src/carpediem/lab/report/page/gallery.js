// Samples worth a look: image, label, last predictions, how often drawn.

const CARDS = 24;

function gallery(data) {
  if (data.missing) return [missing(data.missing)];
  const kinds = Object.keys(data.runs[0].kinds);
  const [menuOfRuns, run] = runMenu("gallery-run", data.runs);
  const kind = () => view.oneOf("kind", kinds, kinds[0]);
  const numbers = data.classes.map((_, number) => String(number));
  const found = () => {
    const label = view.oneOf("class", numbers, "");
    return run().kinds[kind()].map((row) => run().samples[row]).filter((sample) => label === "" || sample.label === Number(label));
  };
  const cards = el("ul", { class: "cards", id: "cards" });
  const status = el("p", { class: "note", role: "status" });
  const more = el("button", { type: "button", id: "more-cards", onclick: () => view.set("cards", String(shown() + CARDS), String(CARDS)) }, "Show more");
  const shown = () => Math.max(CARDS, Number.parseInt(view.get("cards", CARDS), 10) || 0);
  const fill = () => {
    const samples = found();
    const part = samples.slice(0, shown());
    cards.replaceChildren(...part.map((sample) => card(sample, data)));
    more.hidden = part.length === samples.length;
    status.textContent = samples.length
      ? `${part.length} of ${samples.length} samples that are kept, after ${run().epochs} epochs of ${run().name}, seed ${run().seed}.`
      : `No such sample after ${run().epochs} epochs of ${run().name}, seed ${run().seed}.`;
  };
  onView(["kind", "class", "gallery-run", "cards"], fill);
  fill();
  return [
    el(
      "div",
      { class: "controls" },
      choice("Show the", "kind", kinds.map((one) => [one, one]), kinds[0]),
      menu("Class", "class", [["", "all"], ...data.classes.map((name, number) => [String(number), name])], ""),
      menuOfRuns,
    ),
    status,
    cards,
    el("div", { class: "controls" }, more, downloadButton("samples", () => galleryRows(found(), data.classes))),
  ];
}

function card(sample, { classes, images }) {
  const name = (number) => (number < 0 ? DASH : classes[number]);
  const picture = images[sample.index];
  const window = sample.window.filter((prediction) => prediction >= 0);
  const spoken = window.map(name).join(", ");
  return el(
    "li",
    { class: "card" },
    picture ? el("img", { src: picture, alt: `Sample ${sample.index}`, width: 64, height: 64 }) : el("span", { class: "blank" }),
    el(
      "div",
      {},
      el("p", {}, "Label ", el("strong", {}, name(sample.label))),
      el("p", {}, "Mostly predicted ", el("strong", {}, name(sample.majority))),
    ),
    el(
      "div",
      { class: "window" },
      el(
        "div",
        { class: "strip", role: "img", "aria-label": `Last predictions, the newest last: ${spoken || "none"}`, title: spoken },
        sample.window.map((prediction) => el("span", { colour: classColour(prediction, classes.length) })),
      ),
      el("p", {}, shortRuns(window.map(name)) || "never drawn"),
    ),
    el(
      "p",
      { class: "facts" },
      `no. ${sample.index} · uncertainty ${number(sample.uncertainty, 2)} · drawn ${sample.drawn}×`,
      sample.changed >= 0 ? ` · changed in epoch ${sample.changed + 1}` : "",
      sample.loss === null ? "" : ` · loss ${number(sample.loss, 2)}`,
    ),
  );
}

function shortRuns(names) {
  // "cat ×3, dog, cat ×2"
  const runs = [];
  for (const name of names) {
    if (runs.length && runs.at(-1).name === name) runs.at(-1).count += 1;
    else runs.push({ name, count: 1 });
  }
  return runs.map(({ name, count }) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
}

function galleryRows(samples, classes) {
  return {
    columns: ["index", "label", "majority", "agreement", "uncertainty", "times_drawn", "last_change", "last_loss", "window"],
    rows: samples.map((s) => [
      s.index, classes[s.label], s.majority < 0 ? null : classes[s.majority], s.agreement, s.uncertainty, s.drawn, s.changed, s.loss,
      s.window.filter((c) => c >= 0).map((c) => classes[c]).join(" | "),
    ]),
  };
}
