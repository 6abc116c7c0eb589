"""Figures of settings: the effective value of each setting at both ends, in the columns that the setting declares."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Final

from rigctl.base.values import common_value, divide, join_texts, least, mean, most, total
from rigctl.figures.figure import Figure, FlowGroup
from rigctl.records import Side
from rigctl.settings import BURST, CONGESTION, MPTCP, MSS, NODELAY, PLACEMENT, SETTINGS, WINDOW, ZEROCOPY
from rigctl.settings.setting import Counts, DataColumn, Ends, Setting

COUNTED: Final = {
    setting: setting.effective.counted
    for setting in SETTINGS.values()
    if setting.effective is not None and setting.effective.counted is not None
}
"""Maps each setting whose effective values are counted, such as DSCP, to the names and rules of its counts."""
_COMBINED: Final[dict[type, Callable[[Iterable[Any]], Any]]] = {int: least, str: join_texts, bool: common_value}
"""Maps the type of a setting to what combines the values of flows: least number, all texts, a flag if all agree."""


def count_seen(setting: Setting[Any], sides: Iterable[Side]) -> dict[str, int]:
    """Return how many packets arrived at `sides` with each value of a setting (DSCP), the most frequent first."""
    return Counts.sum(counts for side in sides if (counts := side.counts(setting))).by(COUNTED[setting].name)


def _in_effect(setting: Setting[Any], group: FlowGroup) -> object:
    effective = setting.effective
    assert effective is not None
    value = _COMBINED[effective.type](side[setting] for side in group.of_ends(effective.ends))
    return value if value is None or effective.in_unit is None else effective.in_unit(value)


def _share_kept_pct(setting: Setting[Any], group: FlowGroup) -> float | None:
    asked = group.cell[setting]
    seen = count_seen(setting, group.sides) if asked is not None else {}
    return 100 * seen.get(str(asked), 0) / sum(seen.values()) if seen else None


def _text_of_end(setting: Setting[Any], end: Ends, group: FlowGroup) -> str | None:
    own = [counts for side in group.of_ends(end) if (counts := side.counts(setting)) is not None]
    return (str(Counts.sum(own)) or None) if own else None


def _numa_node(end: Ends, group: FlowGroup) -> int | None:
    return common_value(side.numa.node for side in group.of_ends(end))


def _numa_node_of_card(end: Ends, group: FlowGroup) -> int | None:
    return common_value(side.numa.card for side in group.of_ends(end))


def _share_not_copied(group: FlowGroup) -> float | None:
    """Return the share of sends that copied no data; None if unknown, or if zero-copy was not requested."""
    asked = [side.copying for side in group.senders if side.copying.uncopied_sends is not None]
    return divide(total(side.uncopied_sends for side in asked), total(side.sends for side in asked))


def _subflow_bytes(group: FlowGroup) -> str | None:
    bytes_by_ends = Counter[str]()
    for subflows in _subflows(group):
        for source, destination, count, _ in subflows:
            bytes_by_ends[f"{source} > {destination}"] += count
    return ", ".join(f"{ends}: {count}" for ends, count in bytes_by_ends.items()) or None


def _subflows(group: FlowGroup) -> list[Any]:
    """Return the subflows of each flow, as its receiver counted them; empty if a receiver's count is missing."""
    known = [side.subflows for side in group.receivers if side.subflows is not None]
    return known if len(known) == len(group.flows) else []


def _figure_of(column: DataColumn, **more: Any) -> Figure[Any]:  # noqa: ANN401 — fields of any type
    """Return a `Figure` with the name, unit and meaning of an export column, and with `more` fields."""
    return Figure(**{one.name: getattr(column, one.name) for one in fields(DataColumn)}, **more)


def _own_figure(setting: Setting[Any], name: str, **more: Any) -> Figure[Any]:  # noqa: ANN401 — fields of any type
    return _figure_of(next(column for column in setting.columns if column.name == name), **more)


_OF_ALL: Final[dict[str, Any]] = {"over_repetitions": common_value}
_SMALLEST: Final[dict[str, Any]] = {"over_repetitions": least, "kinds": ("tcp",)}
WINDOW_EFFECTIVE: Final[Figure[int]] = _own_figure(WINDOW, "window_effective_bytes", over_streams=least, **_SMALLEST)
MSS_EFFECTIVE: Final[Figure[int]] = _own_figure(MSS, "mss_effective", compute=partial(_in_effect, MSS), **_SMALLEST)
MTU: Final[Figure[int]] = _own_figure(
    MSS, "mtu", compute=lambda group: least(side.tcp.pmtu for side in group.senders), over_streams=least, **_SMALLEST
)
BURST_EFFECTIVE: Final[Figure[int]] = _own_figure(
    BURST,
    "burst_effective",
    compute=lambda group: most(sent and sent.burst for sent, _ in group.datagrams),
    over_repetitions=most,
    kinds=("udp",),
)
ZEROCOPY_EFFECTIVE: Final[Figure[float]] = _own_figure(ZEROCOPY, "zerocopy_effective", compute=_share_not_copied)
CONGESTION_IN_USE: Final[Figure[str]] = _own_figure(
    CONGESTION, "congestion", compute=partial(_in_effect, CONGESTION), over_repetitions=join_texts
)
NODELAY_IN_USE: Final[Figure[bool]] = _own_figure(
    NODELAY, "nodelay", compute=partial(_in_effect, NODELAY), over_repetitions=common_value
)
SUBFLOWS: Final[Figure[int]] = _own_figure(
    MPTCP,
    "subflows",
    compute=lambda group: least(subflows.used for subflows in _subflows(group)),
    over_repetitions=least,
)
_OWN: Final = {
    figure.name: figure
    for figure in (
        WINDOW_EFFECTIVE,
        MSS_EFFECTIVE,
        MTU,
        BURST_EFFECTIVE,
        ZEROCOPY_EFFECTIVE,
        CONGESTION_IN_USE,
        NODELAY_IN_USE,
        SUBFLOWS,
        _own_figure(WINDOW, "sndbuf_bytes", compute=lambda group: least(side.sndbuf_bytes for side in group.senders)),
        _own_figure(WINDOW, "rcvbuf_bytes", compute=lambda group: least(side.rcvbuf_bytes for side in group.receivers)),
        _own_figure(MPTCP, "subflow_bytes", compute=_subflow_bytes, over_repetitions=join_texts, is_text=True),
        _own_figure(PLACEMENT, "numa_sender", compute=partial(_numa_node, Ends.SENDER), **_OF_ALL),
        _own_figure(PLACEMENT, "numa_receiver", compute=partial(_numa_node, Ends.RECEIVER), **_OF_ALL),
        _own_figure(PLACEMENT, "card_numa_sender", compute=partial(_numa_node_of_card, Ends.SENDER), **_OF_ALL),
        _own_figure(PLACEMENT, "card_numa_receiver", compute=partial(_numa_node_of_card, Ends.RECEIVER), **_OF_ALL),
    )
}
"""Figures of settings with columns that `Effective` does not describe, by name."""


def columns_of_setting(setting: Setting[Any]) -> Iterator[DataColumn]:
    """Yield the columns of a setting: the requested value, and the effective values, each a `Figure`."""
    effective = setting.effective
    of: dict[str, Mapping[str, Any]] = {}
    if effective is not None:
        if effective.column is not None:
            combine = mean if effective.type is int else _COMBINED[effective.type]
            of[effective.column] = {"compute": partial(_in_effect, setting), "over_repetitions": combine}
        if effective.counted is not None:
            of[effective.counted.share] = {"compute": partial(_share_kept_pct, setting)}
        for name, end in zip(effective.columns, (Ends.SENDER, Ends.RECEIVER), strict=False):
            of[name] = {"compute": partial(_text_of_end, setting, end), "over_repetitions": join_texts}
    for column in setting.columns:
        yield _OWN.get(column.name) or (_figure_of(column, **of[column.name]) if column.name in of else column)


COUNTED_FIGURES: Final[dict[str, Figure[str]]] = {
    setting.name: column
    for setting in COUNTED
    for column in columns_of_setting(setting)
    if isinstance(column, Figure) and setting.effective is not None and column.name == setting.effective.column
}
"""Maps the name of each setting whose effective values are counted to the figure that lists the values."""
