"""All claims that the paper makes in words."""

from __future__ import annotations

from carpediem.lab.analysis.classification_claims import APPENDIX, SECTION_1, SECTION_4_1, SECTION_4_2
from carpediem.lab.analysis.tuning_claims import SECTION_4_3, SECTION_4_4, SECTION_4_5

CLAIMS = (
    *SECTION_1,
    *SECTION_4_1,
    *SECTION_4_2,
    *SECTION_4_3,
    *SECTION_4_4,
    *SECTION_4_5,
    *APPENDIX,
)
"""In the paper's order."""
