// Puts the sections in place, again whenever there is newer data.

let data = JSON.parse(document.getElementById("data").textContent);

function currentSetting() {
  return data.settings.find((setting) => setting.key === view.get("setting")) ?? data.settings[0];
}

function build() {
  keepingUnfolded(rebuild);
}

function rebuild() {
  const focused = document.activeElement?.id;
  const height = document.documentElement.scrollTop;
  widths.disconnect();
  view.listeners.length = later.length = 0;
  document.getElementById("summary").textContent = data.summary;
  document.getElementById("verdicts").replaceChildren(...data.verdicts.map((sentence) => el("p", {}, sentence)));
  document.getElementById("damage").replaceChildren(...data.damage.map((sentence) => missing(`Left out: ${sentence}`)));
  const setting = currentSetting();
  if (setting === undefined) return; // no run has begun
  const menus = document.getElementById("setting");
  menus.hidden = data.settings.length < 2;
  menus.replaceChildren(menu("Setting", "setting", data.settings.map(({ key, title }) => [key, title]), data.settings[0].key));
  onView(["setting"], build);
  const sections = {
    convergence: () => convergence(setting.convergence),
    tables: () => tables(data.tables),
    selected: () => selected(setting.losses, setting.convergence.warm_up),
    index: () => indexComparison(setting.indices, setting.convergence.warm_up),
    strips: () => strips(setting.strips, setting.gallery),
    gallery: () => gallery(setting.gallery),
    grid: () => grid(data.grids, data.ablations),
    obtained: () => obtained(data.obtained),
  };
  for (const [id, make] of Object.entries(sections)) {
    document.querySelector(`#${id} > .body`).replaceChildren(...make().flat().filter(Boolean));
  }
  for (const run of later) run();
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
  document.documentElement.scrollTo({ top: height, behavior: "instant" });
}

function goTo(id, behavior = "auto") {
  const section = document.getElementById(id);
  if (section?.tagName !== "SECTION") return;
  section.scrollIntoView({ behavior });
  section.querySelector("h2").focus({ preventScroll: true });
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#at=${id}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

for (const link of document.querySelectorAll("nav a, a.skip")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const id = new URLSearchParams(link.hash.slice(1)).get("at");
    view.set("at", id);
    goTo(id);
  });
}

const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
function paint() {
  document.documentElement.dataset.theme = theme.value || (system.matches ? "dark" : "light");
}
try {
  theme.value = localStorage.getItem("carpediem-theme") ?? "";
} catch { /* a browser that keeps nothing for files: as the system */ }
theme.addEventListener("change", () => {
  paint();
  try {
    localStorage.setItem("carpediem-theme", theme.value);
  } catch { /* as above */ }
});
system.addEventListener("change", paint);
paint();

window.addEventListener("hashchange", () => {
  view.values = new URLSearchParams(location.hash.slice(1));
  build();
  goTo(view.get("at"), "instant");
});

build();
goTo(view.get("at"), "instant");

// While a study trains: newer data when there is some, and not while the reader drags a slider.
if (document.body.hasAttribute("data-live")) {
  const status = document.getElementById("live");
  let tag = document.body.dataset.live;
  let held = false;
  status.hidden = false;
  window.addEventListener("pointerdown", () => (held = true));
  for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, () => (held = false));
  const say = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };
  const refresh = async () => {
    try {
      const answer = await fetch("data.json", { headers: { "If-None-Match": tag }, cache: "no-store" });
      if (answer.status === 200 && !held) {
        data = await answer.json();
        tag = answer.headers.get("ETag") ?? "";
        build();
      }
      if (answer.ok || answer.status === 304) say("Live: newer records are shown as they come in.");
      else say((await answer.text()).trim());
    } catch {
      say("The server does not answer: what you see is how it was last.");
    }
    setTimeout(refresh, 2000);
  };
  setTimeout(refresh, 1000);
}
