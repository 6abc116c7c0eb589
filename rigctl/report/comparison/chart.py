"""The changes of a comparison as a chart: a point per test with its interval, the bound as dashed lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.nights.comparison import Change
from rigctl.model.statistics.comparing import Verdict
from rigctl.report.blocks import Chart, Charts, Key
from rigctl.report.charts.plot import Axis, Mark, Plot, Points, Rule, Spans, plot

MOST_DRAWN: Final = 60
_ROWS: Final = 20
"""Of one chart: so it fits a telephone, and three stand side by side on a screen."""
_ROW: Final = 20
_WIDTH: Final = 400
_LOOKS: Final = {
    Verdict.WORSE: Key("worse", "s2"),
    Verdict.BETTER: Key("better", "s3"),
    Verdict.SAME: Key("same", "s1"),
    Verdict.INCONCLUSIVE: Key("inconclusive", "axis"),
}


@dataclass(frozen=True, slots=True)
class Share:
    """The change of one test with its interval, in percent."""

    test: str
    look: Key
    change: float
    low: float
    high: float


def chart(changes: Sequence[Change], names: Sequence[str], bound: float) -> Charts | None:
    """Of `changes` with their `names` those that have an interval, the largest first; `None` where none has."""
    shares = [
        share for change, name in zip(changes, names, strict=True) if (share := _share(change, name)) is not None
    ][:MOST_DRAWN]
    if not shares:
        return None
    keys = tuple(look for look in _LOOKS.values() if look in {share.look for share in shares})
    ends = [end for share in shares for end in (share.low, share.high)]
    across = Axis("change [%]", min(-110 * bound, *ends), max(110 * bound, *ends))
    parts = [shares[at : at + _ROWS] for at in range(0, len(shares), _ROWS)]
    return Charts(tuple(Chart(_plot(part, across, bound), _label(part)) for part in parts), keys)


def _label(shares: Sequence[Share]) -> str:
    largest = f"{shares[0].test} {shares[0].change:+.1f} %"
    return f"Change of each test in percent, with its interval, the largest first: {largest}"


def _share(change: Change, name: str) -> Share | None:
    found = change.difference
    if found.low is None or found.high is None or found.change is None:
        return None
    return Share(name, _LOOKS[found.verdict], 100 * found.change, 100 * found.low, 100 * found.high)


def _plot(shares: Sequence[Share], across: Axis, bound: float) -> Plot:
    rules = (Rule(0, "x", dashed=False), Rule(-100 * bound, "x"), Rule(100 * bound, "x"))
    marks: list[Mark] = []
    for look in _LOOKS.values():
        own = [(number, share) for number, share in enumerate(shares) if share.look == look]
        if own:
            marks.append(Spans(tuple((n, share.low, share.high) for n, share in own), look.colour, across=True))
            marks.append(Points(tuple((share.change, n) for n, share in own), look.colour, size=8, hollow=True))
    tests = Axis(kind="names", names=tuple(share.test for share in shares))
    return plot(_WIDTH, _ROW * len(shares), across, tests, (*rules, *marks))
