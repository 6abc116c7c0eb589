"""Values that held in all tests of a run, for the line beside its table: settings in use, round trips, links, tags."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.rows.flows import COUNTED_COLUMNS
from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_rate
from rigctl.records import given_tags
from rigctl.report.words.text import MOST_NAMED, UNKNOWN, some, span, time_text
from rigctl.settings import SETTINGS

FIRMWARE: Final = "firmware"
"""The tag that names the firmware of what is tested; without it, of a real rig, that is unknown."""


def settings(view: RunView, pairs: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """Names and values; `pairs` are the rows of the run's pairs. What was in use, not what was requested."""
    rows = [row for row in pairs if row["counted"]]
    return (*_streams(rows), *_links(view, rows), *_tags(view))


def _streams(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    tcp = [row for row in rows if row["transport"] == "tcp"]
    if tcp:
        yield "Congestion control", _names(row["congestion"] for row in tcp)
    for name, column in COUNTED_COLUMNS.items():
        asking = [row for row in rows if row[name] is not None]
        if asking:
            yield f"Effective {SETTINGS[name].called or name}", _names(row[column] for row in asking)
    idle, loaded, least = (
        [row[name] for row in rows if row[name] is not None]
        for name in ("latency_idle_p50_us", "latency_loaded_p50_us", "rtt_min_us")
    )
    if idle:
        yield "Idle round trip", time_text(median(idle))
        yield "Loaded round trip", time_text(median(loaded)) if loaded else UNKNOWN
    elif rows:
        yield "Least round trip", span(time_text(end(least)) for end in (min, max) if least) or UNKNOWN


def _links(view: RunView, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    if view.plan.virtual == "loopback":
        return
    facts = {node: view.info.facts.get(node) or {} for node in view.plan.links}
    rates = [link.rate_bps or facts[node].get("speed_bps") for node, link in view.plan.links.items()]
    if rates:
        yield "Links", _names(None if rate is None else format_rate(float(rate)) for rate in rates)
    known = [row["mtu"] for row in rows]
    if any(mtu is not None for mtu in known):
        yield "Path MTU", _names(known)
    elif rates:
        # Datagrams: no kernel reports their path's; that of the interfaces, unless a condition changed it meanwhile.
        changed = any(condition.mtu is not None for condition in view.plan.conditions)
        yield "MTU", _names(None if changed else known.get("mtu") for known in facts.values())


def _tags(view: RunView) -> Iterator[tuple[str, str]]:
    """Yield the tags that the user gave, and firmware if it was not given."""
    tags = given_tags(view.info.tags)
    if FIRMWARE not in tags and view.plan.virtual is None:
        yield FIRMWARE, UNKNOWN
    yield from ((name, value) for name, value in tags.items() if value)
    if bare := [name for name, value in tags.items() if not value]:
        yield "Tags", ", ".join(bare)


def _names(found: Iterable[object]) -> str:
    """`cubic`, `bbr, cubic`, `1500, 9000, 1400 and 2 more`; `–` where none is known."""
    names = list(dict.fromkeys(UNKNOWN if name is None else str(name) for name in found)) or [UNKNOWN]
    return some(names, MOST_NAMED, last=", ")
