// Configuration, versions, machine, seeds, and the command that trains it all again.

function obtained(data) {
  const studies = data.studies.map((study) => [
    el("h3", {}, `${study.folder}: as it was called`),
    el("pre", {}, study.command),
  ]);
  return [...studies, ...data.settings.map(obtainedSetting)].flat();
}

function obtainedSetting(setting, number) {
  return [
    el("h3", {}, setting.title),
    el("p", { class: "note" }, "To train these runs again:"),
    setting.commands.map((command) => el("pre", { class: "command" }, command)),
    el(
      "details",
      { open: true, id: `methods-of-${number}` },
      el("summary", {}, "Methods and seeds"),
      plainTable(
        "Methods and seeds",
        ["Method", "Settings of the selection", "Finished seeds", "Unfinished seeds", "Runs"],
        setting.methods.map((method) => [
          method.name,
          method.selection.map(([name, value]) => `${name} ${value}`).join(", ") || DASH,
          method.seeds.join(", ") || DASH,
          method.unfinished.join(", ") || DASH,
          method.hashes.join(" "),
        ]),
        true,
      ),
    ),
    el("details", { open: true, id: `configuration-of-${number}` }, el("summary", {}, "Configuration"), pairs(setting.config)),
    setting.machines.map((machine, which) =>
      el(
        "details",
        { open: true, id: `machine-${which}-of-${number}` },
        el("summary", {}, `Machine and versions of ${machine.runs} ${machine.runs === 1 ? "run" : "runs"}`),
        pairs(machine.rows),
      ),
    ),
    setting.finished.length > 0 && el("p", { class: "note" }, `Finished between ${setting.finished[0]} and ${setting.finished[1]}.`),
  ].flat();
}

function pairs(rows) {
  return el("dl", { class: "pairs" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
