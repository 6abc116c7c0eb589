"""Resumes a stored run: checks that the plan is the same and that no other process measures the run.

Stored results stay. Tests that are missing, failed or were interrupted are measured (`runner.schedule`).
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from rigctl.base.errors import InputError
from rigctl.base.processes import is_hidden, process
from rigctl.base.units import format_duration
from rigctl.records import Cell, Link, RunInfo, RunPlan, RunStatus
from rigctl.records.flat import flatten
from rigctl.store import Store

_MOST_LINES: Final = 5


def check_resumable(info: RunInfo, plan: RunPlan, versions: Mapping[str, str], controller: str | None) -> None:
    """Raise `InputError` if a stored run has another plan, or if another process is measuring it."""
    if controller is not None and fate(controller) is Fate.ALIVE:
        host, pid, _ = controller.split(" ")
        raise InputError(f"run {info.run} is still running: process {pid} on {host}. Wait for it, or end it")
    lines = [*differences(info.plan, plan), *_other_versions(info.versions, versions)]
    if lines:
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"and {len(lines) - _MOST_LINES} more"]
        given = f"It was started with {' '.join(info.plan.overrides)}. " if info.plan.overrides else ""
        head = f"run {info.run} can't be resumed; it differs from what is requested:"
        remedy = f"{given}Undo the change, or start a new run without --resume"
        raise InputError("\n".join([head, *(f"  {line}" for line in lines), remedy]))


def latest_unfinished(store: Store, scenario: str, rig: str | None) -> RunInfo:
    """Return the latest incomplete run of `scenario` (on `rig`, if given). Raise `InputError` if there is none."""
    for info in store.latest_first():
        plan = info.plan
        if plan.scenario_name == scenario and rig in (None, plan.rig_name) and info.status is not RunStatus.COMPLETE:
            return info
    on = "" if rig is None else f" on {rig}"
    raise InputError(
        f"--resume: no unfinished run of {scenario}{on} in store {store.place}. `rigctl runs` lists all "
        "runs; start a new run without --resume"
    )


def differences(stored: RunPlan, asked: RunPlan) -> Iterator[str]:
    """Yield a line for each difference of the plans that affects the results; title, notes and comments do not."""
    if stored.rig_name != asked.rig_name or stored.virtual != asked.virtual:
        yield f"rig: {_rig(stored)} then, {_rig(asked)} now"
    for name, label in (("repeat", "repeat"), ("max_skew_s", "max_skew"), ("trunk", "the rig's trunk")):
        before, now = getattr(stored, name), getattr(asked, name)
        if before != now:
            yield f"{label}: {_text(before)} then, {_text(now)} now"
    if asked.virtual is None and stored.ports != asked.ports:  # the ports of a virtual rig are new at each start
        yield "the rig's switches or their ports have changed"
    for node in sorted({*stored.links, *asked.links}):
        before_link, now_link = stored.links.get(node), asked.links.get(node)
        if before_link != now_link:
            yield f"link of {node}: {_link(before_link)} then, {_link(now_link)} now"
    conditions = {condition.name: condition for condition in stored.conditions}
    for condition in asked.conditions:
        if condition.name in conditions and conditions[condition.name] != condition:
            yield f"condition {condition.name}: its settings have changed"
    yield from _cells(stored.cells, asked.cells)


def controller_id() -> str:
    """Return host, process id and start time of this process, by which `fate` finds out whether it still runs."""
    me = process(os.getpid())
    return f"{socket.gethostname()} {os.getpid()} {me.started if me else 0}"


class Fate(Enum):
    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


def fate(controller: str | None) -> Fate:
    """Tell whether the process with this `controller_id` still measures its run. Return GONE for this process itself.

    UNKNOWN, as for a process on another host, is safe: the locks on the nodes keep two runs apart.
    """
    words = (controller or "").split(" ")
    if len(words) != 3 or words[0] != socket.gethostname() or not re.fullmatch(r"[0-9]{1,9}", words[1], re.ASCII):
        return Fate.UNKNOWN
    found = process(int(words[1]))
    if found is None and is_hidden(int(words[1])):
        return Fate.UNKNOWN
    return Fate.ALIVE if found and str(found.started) == words[2] and found.pid != os.getpid() else Fate.GONE


def _cells(stored: tuple[Cell, ...], asked: tuple[Cell, ...]) -> Iterator[str]:
    if len(stored) != len(asked):
        yield f"tests: {len(stored)} then, {len(asked)} now"
        return
    seen: set[str] = set()
    for before, now in zip(map(flatten, stored), map(flatten, asked), strict=True):
        for name in before:
            if before[name] != now[name] and name not in seen:
                seen.add(name)
                yield f"test {before['number']}: {name}: {_text(before[name])} then, {_text(now[name])} now"


def _other_versions(stored: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(stored.keys() & now.keys()):
        if name.startswith(("agent", "rigctl")) and stored[name] != now[name]:
            yield f"{name}: {stored[name][:12]} then, {now[name][:12]} now"


def _rig(plan: RunPlan) -> str:
    return f"{plan.rig_name} ({plan.virtual or 'real hardware'})"


def _link(link: Link | None) -> str:
    return "not in use" if link is None else f"rate {_text(link.rate_bps)}, MTU {_text(link.mtu)}"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} of them" if len(value) > 1 else str(value[0]) if value else "none"
    return "–" if value is None else format_duration(value) if isinstance(value, float) else str(value)
