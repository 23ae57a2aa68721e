"""The report: records in, one page of HTML out, as a file."""

from .gather import gather
from .page import render_page
from .write import write_report

__all__ = ["gather", "render_page", "write_report"]
