"""The report in a real browser: Chromium, started headless for this file."""

import base64
import csv
import itertools
import json
import re
import shutil
import time
from pathlib import Path

import pytest

from carpediem.lab.records import export_runs, read_runs
from carpediem.lab.report import Watch, gather, render_page, write_report
from carpediem.lab.tables import summary_tables
from lab.report_makers import CLASSES, unfinish

selenium = pytest.importorskip("selenium", reason="the browser tests need selenium: pip install selenium")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="the browser tests need Chromium: apt-get install chromium chromium-driver",
)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """A page in Chromium, with what these tests ask of it."""

    def __init__(self, folder):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for word in (*OPTIONS, f"--user-data-dir={folder / 'profile'}", "--window-size=1280,900"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.downloads = folder / "downloads"
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))

    def command(self, name, **values):
        return self.driver.execute_cdp_cmd(name, values)

    def open(self, address):
        self.driver.get("about:blank")  # else an address that differs behind the # alone would not load
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(address)
        self.settle()

    def settle(self):
        """Waits for two frames: figures are drawn when their widths are known, which is after the page was laid out."""
        frame = "requestAnimationFrame"
        self.driver.execute_async_script(f"{frame}(() => {frame}(() => setTimeout(arguments[0])))")

    def ask(self, script, *values):
        return self.driver.execute_script(f"return {script}", *values)

    def find(self, selector):
        """The first such element, as soon as there is one."""
        return self.wait(lambda: self.all(selector), selector)[0]

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def drawn(self, selector):
        """The shapes of a drawing's lines, as soon as there are any: a figure is drawn when its width is known."""
        lines = "[...document.querySelectorAll(arguments[0] + ' [aria-label=line] path')]"
        return self.wait(
            lambda: self.ask(f"{lines}.map(p => p.getAttribute('d'))", selector), f"a drawing in {selector}"
        )

    def press(self, element):
        """A real click, in the middle of the window: what is about to come into view cannot be clicked."""
        self.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()
        self.settle()

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def wait(self, condition, what):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited in vain for {what}")

    def wide(self, width, *, dark=False):
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", features=[scheme, still])
        # A page that is open hears of it a little later.
        painted = "(document.documentElement.dataset.theme ?? arguments[0]) === arguments[0]"
        self.wait(lambda: self.ask(painted, scheme["value"]), "the colours")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def address(trained, tmp_path_factory):
    return write_report([trained], tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def page(chromium, address):
    """The report from disk; whatever a test does, nothing may have been complained about in the end."""
    chromium.wide(1280)
    chromium.open(address)
    yield chromium
    assert chromium.complaints() == []


def test_it_opens_soon_with_every_section_filled_and_asks_the_network_for_nothing(page, address):
    assert page.requests() == [address] or all(
        url.startswith((address, "data:", "blob:")) for url in page.requests()
    )
    took = page.ask("performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert 0 < took < 10_000  # 2 s on a machine with nothing else to do
    for body in page.all("section > .body"):
        assert body.text.strip()
    page.wait(lambda: len(page.all(".drawing svg")) > 6, "the drawings")


def test_sections_are_titled_in_plain_words_and_with_the_papers_figure(page):
    titles = {name: page.find(f"#{name} h2").text for name in ("index", "strips")}
    assert titles == {
        "index": "Samples in order of uncertainty (paper's Figure 3)",
        "strips": "Single samples through training (paper's Figure 2)",
    }
    links = [link.text for link in page.all("nav a")]
    assert links == [heading.text for heading in page.all("section > h2")]
    page.press(page.find("nav a[href='#at=strips']"))
    page.wait(lambda: page.ask("document.activeElement.id") == "strips-heading", "the section")


def test_markup_in_names_is_shown_as_text_and_nothing_runs(page):
    assert page.ask("document.querySelectorAll('section script, [onerror]').length") == 0
    text = page.find("#gallery").text
    for name in CLASSES:
        assert name in text
    assert page.ask("[...document.querySelectorAll('#menu-class option')].map(o => o.text)") == [
        "all",
        *CLASSES,
    ]


def test_the_legend_switches_a_method_off_in_the_drawing_and_its_numbers(page, address):
    before = page.drawn("#convergence-test_error")
    page.press(page.find("#convergence-test_error summary"))
    page.wait(lambda: page.all("#convergence-test_error table"), "the numbers")
    (button,) = [b for b in page.all("#convergence .legend button") if b.text == "Random Batch"]
    page.press(button)
    assert button.get_attribute("aria-pressed") == "false"
    assert len(page.drawn("#convergence-test_error")) == len(before) - 1
    assert "Random Batch" not in page.find("#convergence-test_error table").text
    # The address now says so, and shows the same to whoever opens it.
    shared = page.driver.current_url
    assert shared.startswith(address + "#off=random")
    page.open(shared)
    assert len(page.drawn("#convergence-test_error")) == len(before) - 1


def test_an_address_that_asks_for_what_is_not_there_shows_the_usual(page, address):
    usual = len(page.drawn("#convergence-train_loss")), len(page.all("#cards > li"))
    odd = "<script>alert(1)</script>"
    keys = ("x", "scale", "class", "kind", "epoch", "index-epoch", "index-run", "strips-run", "gallery-run")
    page.open(
        f"{address}#" + "&".join(f"{key}={odd}" for key in (*keys, "off", "setting", "sort", "at", "cards"))
    )
    assert (len(page.drawn("#convergence-train_loss")), len(page.all("#cards > li"))) == usual
    assert page.find("#x-iterations").is_selected()
    assert page.find("#scale-log").is_selected()
    assert page.find("#menu-class").get_attribute("value") == ""
    assert page.ask("document.querySelectorAll('section script').length") == 0


def test_the_axes_can_be_changed(page):
    before = page.drawn("#convergence-train_loss")
    page.press(page.find("#x-seconds"))
    assert "Seconds" in page.find("#convergence-train_loss-drawing").text
    by_time = page.drawn("#convergence-train_loss")
    page.press(page.find("#scale-linear"))
    assert before != by_time != page.drawn("#convergence-train_loss")
    assert "x=seconds" in page.driver.current_url
    assert "scale=linear" in page.driver.current_url


def test_an_error_of_zero_is_drawn_at_zero(chromium, trained, tmp_path):
    data = gather([trained])
    errors = data["settings"][0]["convergence"]["lines"][0]["test_error"]
    for name in ("mean", "low", "high"):
        errors[name][-1] = 0
    (tmp_path / "zero.html").write_text(render_page(data))
    chromium.wide(1280)
    chromium.open((tmp_path / "zero.html").as_uri())
    line = chromium.drawn("#convergence-test_error")[0]
    label = "#convergence-test_error [aria-label='y-axis tick label']"
    ticks = {tick.text: tick.get_attribute("transform") for tick in chromium.all(f"{label} text")}
    # "M x,y L x,y" ends where the axis has its 0.
    assert float(line.rpartition(",")[2]) == pytest.approx(
        float(ticks["0"].partition(",")[2].rstrip(")")), abs=1
    )
    caption = "#convergence-test_error figcaption"
    assert chromium.find(caption).text == "Test error (%), on a linear scale: 0 has no logarithm"
    assert chromium.find("#convergence-train_loss figcaption").text == "Loss of the drawn samples"
    chromium.press(chromium.find("#convergence .legend button"))
    assert chromium.find(caption).text == "Test error (%)"
    assert chromium.complaints() == []


def test_the_loss_over_the_training_set_is_drawn_at_the_epochs_that_have_it(chromium, study, tmp_path):
    for run in read_runs(study):
        for epoch in run.epochs[::2]:
            epoch["training_set_loss"] = epoch["train_loss"] / 2
        written = "".join(json.dumps(epoch) + "\n" for epoch in run.epochs)
        (study / "runs" / run.hash / "epochs.jsonl").write_text(written)
    data = gather([study])
    (tmp_path / "evaluated.html").write_text(render_page(data))
    chromium.wide(1280)
    chromium.open((tmp_path / "evaluated.html").as_uri())
    drawn = {name: chromium.drawn(f"#convergence-{name}") for name in ("training_set_loss", "train_loss")}
    assert len(drawn["training_set_loss"]) == len(drawn["train_loss"])
    corners = {name: len(re.findall(r"[ML]", lines[0])) for name, lines in drawn.items()}
    epochs = len(data["settings"][0]["convergence"]["lines"][0]["iterations"])
    assert corners == {"training_set_loss": (epochs + 1) // 2, "train_loss": epochs}
    captions = [caption.text for caption in chromium.all("#convergence figcaption")]
    assert captions == ["Training loss (whole training set)", "Test error (%)", "Loss of the drawn samples"]
    assert "The whole training set is evaluated" in chromium.find("#convergence .note").text
    chromium.press(chromium.find("#convergence-training_set_loss summary"))
    numbers = chromium.find("#convergence-training_set_loss-numbers table").text
    assert "Random Batch" in numbers
    assert chromium.complaints() == []


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("field", ["train_loss", "test_error"])
def test_the_warm_up_is_named_above_the_lines(page, address, field, scale):
    page.open(f"{address}#scale={scale}")
    page.drawn(f"#convergence-{field}")

    def boxes(selector):
        found = f"[...document.querySelectorAll('#convergence-{field}-drawing {selector}')]"
        return page.ask(f"{found}.map(one => one.getBoundingClientRect().toJSON())")

    words = page.all(f"#convergence-{field}-drawing [aria-label=text] text")
    assert [word.text for word in words] == ["warm-up"]
    (word,), (shade,) = boxes("[aria-label=text] text"), boxes("[aria-label=rect] rect")
    (drawing,) = boxes("svg")
    assert drawing["top"] <= word["top"] < word["bottom"] <= shade["top"]
    for line in boxes("[aria-label=line] path"):
        assert word["bottom"] < line["top"]


def test_the_slider_changes_what_is_drawn_and_works_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    before = page.drawn("#selected-losses")
    slider = page.find("#slider-epoch")
    slider.send_keys(Keys.END)
    assert page.find("#selected-losses figcaption").text.endswith("epoch 6")
    assert slider.get_attribute("aria-valuetext") == "6 of 6"
    assert page.drawn("#selected-losses") != before
    index = page.ask("document.querySelector('#index-comparison-drawing').innerHTML")
    page.find("#slider-index-epoch").send_keys(Keys.HOME)
    assert page.ask("document.querySelector('#index-comparison-drawing').innerHTML") != index


def test_values_are_shown_where_the_pointer_is(page):
    from selenium.webdriver.common.action_chains import ActionChains

    drawing = page.find("#convergence-test_error-drawing svg")
    line = page.find("#convergence-test_error-drawing [aria-label=line] path")
    page.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", drawing)
    box = page.ask("arguments[0].getBoundingClientRect().toJSON()", line)
    ActionChains(page.driver).move_by_offset(0, 0).perform()
    actions = ActionChains(page.driver)
    actions.w3c_actions.pointer_action.move_to_location(int(box["right"]) - 1, int(box["bottom"]) - 1)
    actions.perform()
    tip = page.wait(lambda: page.find("#convergence-test_error-drawing [aria-label=tip]").text, "the tip")
    assert "Test error (%)" in tip
    assert "iteration" in tip


def test_the_gallery_filters_by_class_and_kind(page):
    from selenium.webdriver.support.select import Select

    every = len(page.all("#cards > li"))
    Select(page.find("#menu-class")).select_by_visible_text(CLASSES[0])
    labels = [card.text.splitlines()[0] for card in page.all("#cards > li")]
    assert 0 < len(labels) < every
    assert set(labels) == {f"Label {CLASSES[0]}"}
    Select(page.find("#menu-class")).select_by_visible_text("all")
    page.press(page.find("[id='kind-against their label']"))
    for card in page.all("#cards > li"):
        label, predicted = card.text.splitlines()[:2]
        assert label.removeprefix("Label ") != predicted.removeprefix("Mostly predicted ")
    images = "[...document.querySelectorAll('#cards img')].every(i => i.complete && i.naturalWidth > 0)"
    assert page.ask(images)


def test_samples_can_be_chosen_for_the_strips(page):
    page.press(page.find("#strips-choice summary"))
    before = len(page.all("#strips figure"))
    (box, *_) = [b for b in page.all("#strips .chips input") if not b.is_selected()]
    name = box.get_attribute("id")
    page.press(box)
    assert len(page.all("#strips figure")) == before + 1
    assert page.find(f"#{name}").is_selected()
    assert page.ask("document.querySelector('#strips-choice').open")


def test_tables_sort_and_download_as_csv(page, trained):
    (title,) = [heading for heading in page.all("#tables h3") if "report_data" in heading.text]
    table = "#" + title.find_element("xpath", "..").get_attribute("id")

    def means():
        return [float(cell.text.split(" ")[0]) for cell in page.all(f"{table} tbody tr > :nth-child(2)")]

    page.press(page.find(f"{table} th:nth-child(2) button"))
    ascending = means()
    assert ascending == sorted(ascending)
    assert ascending[0] < ascending[-1]
    page.press(page.find(f"{table} th:nth-child(2) button"))
    assert means() == sorted(ascending, reverse=True)
    assert page.find(f"{table} th:nth-child(2)").get_attribute("aria-sort") == "descending"
    page.press(page.find(f"{table} .download"))
    (file,) = page.wait(lambda: [f for f in page.downloads.glob("*.csv") if f.stat().st_size], "the file")
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    (made,) = summary_tables(read_runs(trained))
    expected = {row["method"]: row["best_error"] for row in made.to_dict()["rows"]}
    assert {row["method"]: float(row["best_error"]) for row in rows} == pytest.approx(expected)


def test_what_all_rows_of_a_table_share_is_said_once_above_them(chromium, tmp_path):
    study = Path(__file__).parents[2] / "results" / "2026-11-15_cifar10_resnet50_momentum_paper"
    chromium.wide(400)
    chromium.open(write_report([study], tmp_path / "report.html").as_uri())
    heads = "[...document.querySelectorAll('#table-0 thead th')].map((head) => head.textContent)"
    assert chromium.find("#table-0 .about").text == "momentum, CIFAR-10"
    assert chromium.ask(heads)[:3] == ["Method", "Ours", "Seeds"]
    chromium.press(chromium.find("#all-rows"))  # then there are rows of other data
    assert chromium.ask(heads)[:4] == ["Optimizer", "Data", "Method", "Ours"]
    assert chromium.complaints() == []


def test_every_figure_has_its_numbers_as_a_table(page):
    for details in page.all("figure > details"):
        page.ask("arguments[0].open = true", details)
    page.wait(
        lambda: len(page.all("figure table")) == len(page.all("figure")) > 6, "a table behind every figure"
    )
    assert all(len(table.find_elements("css selector", "tbody tr")) > 0 for table in page.all("figure table"))
    for drawing in page.all(".drawing > *"):
        assert drawing.get_attribute("role") == "img"
        assert drawing.get_attribute("aria-label")


def test_the_tab_key_goes_from_the_shortcut_over_the_sections_into_the_first_of_them(page):
    from selenium.webdriver.common.keys import Keys

    reached = []
    for _ in range(14):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(page.ask("document.activeElement.getAttribute('href') ?? document.activeElement.id"))
    sections = page.ask("[...document.querySelectorAll('nav a')].map((link) => link.getAttribute('href'))")
    assert reached[: 2 + len(sections)] == ["#at=convergence", "theme", *sections]
    assert page.ask("document.getElementById('convergence').contains(document.activeElement)")


def test_every_row_of_a_table_has_a_head(page):
    rows = "[...document.querySelectorAll('tbody tr')]"
    page.ask("[...document.querySelectorAll('details')].forEach(d => { d.open = true })")
    page.wait(lambda: len(page.all("figure table")) == len(page.all("figure")), "all tables")
    heads = page.ask(f"{rows}.map(row => row.querySelectorAll('th[scope=row]').length)")
    assert len(heads) > 100
    assert set(heads) == {1}
    method = "document.querySelector('#tables tbody th').textContent"
    assert page.ask(method) == "Random Batch"


def test_what_is_said_instead_of_a_drawing_is_no_picture(page):
    for button in page.all("#convergence .legend button"):
        page.press(button)
    said = page.find("#convergence-test_error-drawing .missing")
    assert said.text == "No method is switched on."
    assert said.get_attribute("role") is None


def test_figures_are_drawn_anew_for_paper(page):
    width = "document.querySelector('#convergence-test_error-drawing svg').getAttribute('width')"
    before = page.ask(width)
    page.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert page.ask(width) == "340"
    page.ask("window.dispatchEvent(new Event('afterprint'))")
    assert page.ask(width) == before
    assert len(base64.b64decode(page.command("Page.printToPDF", printBackground=True)["data"])) > 20_000


def test_the_words_under_the_indices_follow_the_chosen_run(chromium, trained, tmp_path):
    from selenium.webdriver.support.select import Select

    data = gather([trained])
    second = data["settings"][0]["indices"]["runs"][1]
    second |= {"seed": 7, "epochs": second["epochs"][:3]}
    (tmp_path / "two.html").write_text(render_page(data))
    chromium.open((tmp_path / "two.html").as_uri())
    Select(chromium.find("#menu-index-run")).select_by_value(second["key"])
    assert chromium.find("#index .note").text.startswith("Seed 7, ")
    assert chromium.find("#index output").text == "3 of 3"


def test_the_words_under_the_curves_tell_of_seeds_and_of_a_run_that_diverged(chromium, study, tmp_path):
    run = next(file.parent for file in study.glob("runs/*/config.json") if '"active"' in file.read_text())
    epochs = [json.loads(line) for line in (run / "epochs.jsonl").read_text().splitlines()]
    epochs[-1]["train_loss"] = None
    (run / "epochs.jsonl").write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs))
    data = gather([study])
    data["settings"][0]["convergence"]["lines"][0]["seeds"] = [0, 1, 2]
    (tmp_path / "gap.html").write_text(render_page(data))
    chromium.open((tmp_path / "gap.html").as_uri())
    words = chromium.find("#convergence .note").text
    assert "mean of 1 to 3 finished seeds" in words
    assert "A seed of Active Bias has a loss that is no number" in words
    assert chromium.complaints() == []


def test_the_links_go_to_their_sections_and_take_the_focus_along(page):
    (link,) = [a for a in page.all("nav a") if a.text == "The samples themselves"]
    page.press(link)
    page.wait(
        lambda: abs(page.ask("document.querySelector('#gallery').getBoundingClientRect().top")) < 120,
        "the section",
    )
    assert page.ask("document.activeElement.id") == "gallery-heading"
    assert "at=gallery" in page.driver.current_url


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_and_text_can_be_told_from_the_paper(page, width, dark):
    page.wide(width, dark=dark)
    page.wait(
        lambda: page.ask("document.querySelector('.drawing').clientWidth < innerWidth && "
                         "Math.abs(document.querySelector('.drawing svg').getBoundingClientRect().width - "
                         "document.querySelector('.drawing').clientWidth) < 3"),
        "the figures to fit",
    )  # fmt: skip
    assert page.ask("document.documentElement.scrollWidth") <= width
    paper, ink = (
        sum(map(int, page.ask(f"getComputedStyle(document.body).{name}").strip("rgb()").split(",")))
        for name in ("backgroundColor", "color")
    )
    assert (paper < 150 < 600 < ink) if dark else (ink < 150 < 600 < paper)


# Of every text, how it is told from what lies behind it (WCAG: 4.5 at least); of what is drawn behind a text in a
# figure, the field of a heat map alone counts.
CONTRASTS = """(() => {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour[3] > 250) return colour;
    }
  };
  const light = (colour) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const parts = colour.slice(0, 3).map((c) => linear(c / 255));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!own || !node.checkVisibility() || node.closest("script, style, option")) continue;
    const style = getComputedStyle(node);
    const svg = node.closest("svg");
    let paper = behind(node);
    if (svg) {
      const box = node.getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      for (const cell of svg.querySelectorAll("[aria-label=cell] rect")) {
        const field = cell.getBoundingClientRect();
        const covers = field.left < x && x < field.right && field.top < y && y < field.bottom;
        if (covers) paper = rgb(getComputedStyle(cell).fill);
      }
    }
    let opacity = 1;
    for (let up = node; up; up = up.parentElement) opacity *= getComputedStyle(up).opacity;
    const ink = rgb(svg ? style.fill : style.color).map((c, i) => opacity * c + (1 - opacity) * paper[i]);
    const [dark, bright] = [light(ink), light(paper)].sort((a, b) => a - b);
    found.push([(bright + 0.05) / (dark + 0.05), node.textContent.trim().slice(0, 40)]);
  }
  return found;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast(page, dark):
    page.wide(1280, dark=dark)
    page.press(page.find("#convergence .legend button"))  # one that is switched off is read too
    found = page.ask(CONTRASTS)
    assert len(found) > 300
    assert [text for ratio, text in found if ratio < 4.5] == []


def test_labels_of_a_heat_map_do_not_run_into_each_other_on_a_telephone(chromium, trained, tmp_path):
    data = gather([trained])
    names = [f"decayed, s₀ = {pressure}" for pressure in (1.5, 10, 100, 1000, 10000)]
    (ablation,) = data["ablations"]
    ablation |= {
        "pressures": names,
        "points": [[name, "Recency Bias (window 3)", 5, 0.1, 3] for name in names],
    }
    (tmp_path / "wide.html").write_text(render_page(data))
    chromium.wide(360)
    chromium.open((tmp_path / "wide.html").as_uri())

    def boxes(axis):
        labels = f"document.querySelectorAll('#ablation-0 [aria-label=\"{axis}-axis tick label\"] text')"
        return chromium.ask(f"[...{labels}].map(label => label.getBoundingClientRect().toJSON())")

    assert len(boxes("x")) == 5
    for one, following in itertools.pairwise(boxes("x")):
        assert one["right"] < following["left"]
    assert boxes("y")[0]["left"] >= 0


def test_the_colours_can_be_chosen(page):
    from selenium.webdriver.support.select import Select

    Select(page.find("#theme")).select_by_visible_text("dark")
    assert page.ask("document.documentElement.dataset.theme") == "dark"
    Select(page.find("#theme")).select_by_visible_text("as the system")
    assert page.ask("document.documentElement.dataset.theme") == "light"


def test_a_study_without_records_of_samples_says_so(chromium, trained, tmp_path):
    export_runs([trained], tmp_path / "old" / "runs.jsonl")
    chromium.open(write_report([tmp_path / "old"], tmp_path / "old.html").as_uri())
    assert "No record of" in chromium.find("#gallery .missing").text
    assert chromium.complaints() == []


def test_two_settings_can_be_told_apart_and_chosen(chromium, trained, tmp_path):
    from selenium.webdriver.support.select import Select

    published = Path(__file__).parents[2] / "results" / "2026-11-15_cifar10_resnet50_momentum_paper"
    chromium.open(write_report([trained, published], tmp_path / "both.html").as_uri())
    menu = Select(chromium.find("#menu-setting"))
    assert len(menu.options) == 2
    (own,) = [option.text for option in menu.options if "report_data" in option.text]
    menu.select_by_visible_text(own)
    assert "Online Batch" in chromium.find("#convergence .legend").text
    assert "setting=" in chromium.driver.current_url
    assert chromium.complaints() == []


def test_watch_shows_a_record_that_is_added_and_keeps_the_view(chromium, trained, tmp_path):
    study = Path(shutil.copytree(trained, tmp_path / "study"))
    run, rest = unfinish(study, "active", 4)
    served = Watch([study])
    served.start()
    try:
        chromium.open(served.address + "#scale=linear&epoch=2")
        found = "#convergence .legend button"
        chromium.wait(lambda: "Random Batch" in [b.text for b in chromium.all(found)], "the legend")
        chromium.press(next(b for b in chromium.all(found) if b.text == "Random Batch"))
        before = chromium.drawn("#convergence-train_loss")
        with (run / "epochs.jsonl").open("a") as stream:
            stream.write(rest[0])
        chromium.wait(lambda: chromium.drawn("#convergence-train_loss") != before, "the new record")
        assert chromium.find("#slider-epoch").get_attribute("value") == "2"
        assert chromium.find("#scale-linear").is_selected()
        assert len(chromium.drawn("#convergence-train_loss")) == len(before)
        assert all(url.startswith((served.address, "data:")) for url in chromium.requests())
    finally:
        served.stop()
    chromium.wait(lambda: "does not answer" in chromium.find("#live").text, "the news that it ended")
