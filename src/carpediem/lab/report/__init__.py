"""The report: records in, one page of HTML out, as a file or served while a study runs."""

from .gather import gather
from .page import render_page
from .serve import Watch
from .write import write_report

__all__ = ["Watch", "gather", "render_page", "write_report"]
