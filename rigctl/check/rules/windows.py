"""Rules on Windows nodes, whose support is experimental: driver, power plan, and what is not checked."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Final

from rigctl.findings import Finding
from rigctl.findings import nodes as said
from rigctl.findings.link import DRIVER_OLD
from rigctl.paths.commands import find_on
from rigctl.paths.state import NodeState, RigState

_FULL_POWER: Final = ("High performance", "Ultimate Performance")
_OLD_DAYS: Final = 2 * 365


def drivers(state: RigState) -> Iterator[Finding]:
    """Report drivers of data interfaces that are older than two years."""
    today = datetime.now(UTC).date()
    for each in _windows_nodes(state):
        made = _day(each.facts.get("driver_date"))
        if made is not None and (today - made).days > _OLD_DAYS:
            words = {key: each.facts.get(key) or "unknown" for key in ("driver", "driver_version")}
            yield find_on(each, DRIVER_OLD, {"driver_date": made.isoformat()}, **words)


def power(state: RigState) -> Iterator[Finding]:
    """Report power plans that let the processor slow down."""
    for each in _windows_nodes(state):
        plan = each.facts.get("power_plan")
        if plan is not None and plan not in _FULL_POWER:
            yield find_on(each, said.POWER_PLAN, plan=plan)


def name_unchecked_on_windows(state: RigState) -> Iterator[Finding]:
    """Report which checks are left out on Windows nodes."""
    yield from (find_on(each, said.UNCHECKED_ON_WINDOWS) for each in _windows_nodes(state))


def _windows_nodes(state: RigState) -> Iterator[NodeState]:
    return (each for each in state.reached() if each.is_windows)


def _day(text: str | None) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text or "")
    return None
