"""Figures on what bounds a test: its ceiling, its share of it, its limit. `rigctl.analysis` computes their values."""

from typing import Final

from rigctl.figures.figure import Figure
from rigctl.limits.limit import LIMITS
from rigctl.settings.setting import MEASURED

CEILING: Final[Figure[float]] = Figure(
    name="ceiling_mbps",
    unit="Mbit/s",
    levels=MEASURED,
    meaning="highest goodput that the link allows with the test's frame size",
    digits=1,
)
EFFICIENCY: Final[Figure[float]] = Figure(
    name="efficiency",
    unit="",
    levels=MEASURED,
    meaning="goodput / ceiling",
    digits=3,
    kinds=("tcp", "udp", "blast", "file"),
)
LIMIT: Final[Figure[str]] = Figure(
    name="limit",
    unit="",
    levels=MEASURED,
    meaning="bottleneck of the pair; for a test, the bottleneck of the pair that is furthest below its ceiling: "
    + ", ".join(f"{limit.word} ({limit.meaning})" if limit.meaning else limit.word for limit in LIMITS.values()),
    is_text=True,
)
LIMIT_DETAIL: Final[Figure[str]] = Figure(
    name="limit_detail",
    unit="",
    levels=MEASURED,
    meaning="rule that named the limit, the values that the rule used, and the kinds of evidence that the nodes never "
    "report, if rules were skipped without them",
    is_text=True,
)
CEILING_FIGURES: Final = (CEILING, EFFICIENCY, LIMIT, LIMIT_DETAIL)
"""Figures of ceilings and limits, in the order of the column table."""
