"""The changes of a comparison as a chart: a point per test with its interval, the bound as dashed lines."""

from collections.abc import Sequence
from typing import Any, Final

from rigctl.analysis.comparison import Change
from rigctl.model.comparing import Verdict
from rigctl.report.blocks import Chart, Charts, Key, Spec
from rigctl.report.svg import CEILING, SERIES_COLOURS, framed

MOST_DRAWN: Final = 60
_ROWS: Final = 20
"""Of one chart: so it fits a telephone, and three stand side by side on a screen."""
_ROW: Final = 20
_WIDTH: Final = 270
_LOOKS: Final = (
    ("worse", (Verdict.WORSE,), "s2", SERIES_COLOURS[1]),
    ("better", (Verdict.BETTER,), "s3", SERIES_COLOURS[2]),
    ("same", (Verdict.SAME,), "s1", SERIES_COLOURS[0]),
    ("inconclusive", (Verdict.INCONCLUSIVE,), "ceiling", CEILING),
)


def chart(changes: Sequence[Change], names: Sequence[str], bound: float) -> Charts | None:
    """Of `changes` with their `names` those that have an interval, the largest first; `None` where none has."""
    points = [
        _point(change, name) for change, name in zip(changes, names, strict=True) if change.difference.low is not None
    ][:MOST_DRAWN]
    if not points:
        return None
    used = {point["look"] for point in points}
    keys = tuple(Key(name, key) for name, _, key, _ in _LOOKS if name in used)
    values = [0.0, *(point[end] for point in points for end in ("low", "high"))]
    span = (min(values), max(values))
    parts = [points[at : at + _ROWS] for at in range(0, len(points), _ROWS)]
    return Charts(tuple(Chart(framed(_figure(part, span, bound)), _label(part)) for part in parts), keys)


def _label(points: Sequence[dict[str, Any]]) -> str:
    largest = f"{points[0]['test']} {points[0]['change']:+.1f} %"
    return f"Change of each test in percent, with its interval, the largest first: {largest}"


def _point(change: Change, name: str) -> dict[str, Any]:
    difference = change.difference
    look = next(name for name, verdicts, _, _ in _LOOKS if difference.verdict in verdicts)
    shares = {"change": difference.change, "low": difference.low, "high": difference.high}
    return {"test": name, "look": look} | {key: 100 * (share or 0.0) for key, share in shares.items()}


def _figure(points: Sequence[dict[str, Any]], span: tuple[float, float], bound: float) -> Spec:
    names = [point["test"] for point in points]
    looks = [name for name, *_ in _LOOKS]
    colour = {
        "field": "look",
        "type": "nominal",
        "scale": {"domain": looks, "range": [colour for *_, colour in _LOOKS]},
        "legend": None,
    }
    down = {"field": "test", "type": "nominal", "sort": names, "axis": {"title": None, "labelLimit": 150}}
    across = {
        "field": "change",
        "type": "quantitative",
        "scale": {"domain": [min(span[0], -110 * bound), max(span[1], 110 * bound)]},
        "axis": {"title": "change [%]", "tickCount": 5},
    }
    marks: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": down, "x": {**across, "field": "low"}, "x2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "size": 45, "strokeWidth": 2, "filled": False},
            "encoding": {"y": down, "x": across, "color": colour},
        },
    ]
    lines = [
        {
            "data": {"values": [{"change": 100 * at} for at in where]},
            "mark": {"type": "rule", "color": CEILING, "strokeWidth": 1.2, **dash},
            "encoding": {"x": across},
        }
        for where, dash in (((0.0,), {}), ((-bound, bound), {"strokeDash": [4, 3]}))
    ]
    return {
        "data": {"values": list(points)},
        "width": _WIDTH,
        "height": {"step": _ROW},
        "layer": [*lines, *marks],
    }
