"""The page: a template, a style sheet, scripts and the plotting library, in one file with the data."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

# In the order in which they build on each other.
_LIBRARY = ("vendor/d3.min.js", "vendor/plot.umd.min.js")
_SCRIPTS = (
    "page/dom.js",
    "page/view.js",
    "page/numbers.js",
    "page/figure.js",
    "page/convergence.js",
    "page/tables.js",
    "page/selected.js",
    "page/index_comparison.js",
    "page/strips.js",
    "page/gallery.js",
    "page/grid.js",
    "page/obtained.js",
    "page/main.js",
)

_SECTIONS = (
    (
        "convergence",
        "Convergence",
        "Training loss and test error of every method (Figures 5 and 6; Figures 8 to 10 show the test error alone).",
    ),
    ("tables", "Tables", "Our figures, and the paper's beside them where it has the same experiment."),
    (
        "selected",
        "What was selected",
        "The losses of the samples that each method drew, epoch by epoch (Figure 4).",
    ),
    (
        "index",
        "Samples in order of uncertainty (paper's Figure 3)",
        "The place that a sample's uncertainty gives it when samples are ranked, as Online Batch does, and when "
        "uncertainty is quantised, as Recency Bias does.",
    ),
    (
        "strips",
        "Single samples through training (paper's Figure 2)",
        "What they were predicted to be, and what Active Bias, which remembers everything, and Recency Bias, which "
        "remembers the last q predictions, made of it.",
    ),
    (
        "gallery",
        "The samples themselves",
        "Samples that a run found worth a look. Those that are predicted against their label again and again are "
        "often mislabelled.",
    ),
    (
        "grid",
        "Grid search and ablation",
        "Best test error by window q and pressure s₀ (Figure 7), and with the pressure decayed or constant "
        "(Tables 6 and 7).",
    ),
    ("obtained", "How it was obtained", "Commands, configuration, seeds, machine and versions."),
)


def render_page(data: dict[str, Any], *, tag: str | None = None) -> str:
    """The page that shows `data`, as `gather` gives it.

    The file's own policy lets the browser load nothing but what is in it, whatever a class is called.

    Args:
        tag: names this state of the data on the server, which the page then asks for newer data now and then.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as missing:
        raise ImportError("the report needs jinja2: pip install jinja2") from missing

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    library = [_read(name) for name in _LIBRARY]
    script = '"use strict";\n' + "\n".join(map(_read, _SCRIPTS))
    return environment.from_string(_read("page/page.html.j2")).render(
        title=data["title"],
        style=_read("page/page.css"),
        scripts=[*library, script],
        policy=_policy([*library, script], live=tag is not None),
        data=embed_json(data),
        sections=_SECTIONS,
        tag=tag,
    )


def embed_json(data: Any) -> str:
    """JSON that may stand inside a script element: no text in it can end the element or begin a comment.

    >>> embed_json({"class": "</script><!--"})
    '{"class":"\\\\u003c/script>\\\\u003c!--"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _policy(scripts: list[str], *, live: bool) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts
    )
    connect = "'self'" if live else "'none'"
    # Styles stand in the page, and the plotting library adds some.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
