// Configuration, versions, machine, seeds, and the command that trains it all again.

function obtained(data) {
  const studies = data.studies.map((study) => [
    el("h3", {}, `${study.folder}: as it was called`),
    shellCommand(study.command),
  ]);
  return [...studies, ...data.settings.map(obtainedSetting)].flat();
}

function obtainedSetting(setting, number) {
  return [
    el("h3", {}, setting.title),
    el(
      "details",
      { open: setting.commands.length < 4, id: `commands-of-${number}` },
      el("summary", {}, `To train these runs again: ${setting.commands.length} ${setting.commands.length === 1 ? "command" : "commands"}`),
      setting.commands.map(shellCommand),
    ),
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

function shellCommand(text) {
  // A line ends between words, not behind the hyphens of an option.
  return el("pre", { class: "command" }, text.split(/( )/).map((part) => (part === " " ? part : el("span", {}, part))));
}

function pairs(rows) {
  return el("dl", { class: "pairs" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
