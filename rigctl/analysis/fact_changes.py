"""What differs between two runs beside what they measured: host facts, versions, rig file, scenario, tags."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias

from rigctl.records import BASELINE, RunInfo

Value: TypeAlias = str | int | float | bool | tuple[str, ...]

_OF_VIRTUAL_NODES: Final = frozenset({"mac", "addresses", "interface", "data_address", "boot_id"})
"""What a virtual rig makes anew for every run."""
_NO_FACTS: Final = frozenset({"notes"})
_FIRST: Final = ("speed_bps", "duplex", "mtu", "driver", "firmware", "kernel", "mac")
"""What changes a goodput most often; the restart of a node, which comes with many of them, is last."""
_LAST: Final = "boot_id"
_NO_TAGS: Final = ("rigctl.", BASELINE)
"""As `CONFIRMS`: what a run is to others."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """`name` is that of the fact (docs/host-facts.md), `sysctls` and `offloads` by the names in them.

    `node` None: of the run as a whole: "scenario" and "rig file" (by digest), "overrides", "rigctl", "python",
    "agent MACHINE sha256", "tag NAME".
    """

    node: str | None
    name: str
    before: Value
    after: Value


def fact_changes(before: RunInfo, after: RunInfo) -> list[FactChange]:
    """What is known of both runs and differs, the likeliest causes first. What is unknown in one has not changed."""
    left = dict(_known(before))
    found = [
        FactChange(node, name, left[node, name], value)
        for (node, name), value in _known(after)
        if (node, name) in left and left[node, name] != value
    ]
    tags = sorted(name for name in before.tags.keys() | after.tags.keys() if not name.startswith(_NO_TAGS))
    words = [(name, before.tags.get(name, ""), after.tags.get(name, "")) for name in tags]
    found += [FactChange(None, f"tag {name}", was, is_) for name, was, is_ in words if was != is_]
    return sorted(_agents_once(found), key=_rank)


def _agents_once(changes: Iterable[FactChange]) -> Iterator[FactChange]:
    """The agents of all machines are built together: one of them is enough."""
    seen = False
    for change in changes:
        is_agent = change.name.startswith("agent ") and change.name.endswith("sha256")
        if not (is_agent and seen):
            yield change
        seen = seen or is_agent


def on_nodes(changes: Iterable[FactChange]) -> list[tuple[tuple[str, ...], FactChange]]:
    """Each change once, with all nodes that have it: none where it is of the run."""
    nodes: dict[tuple[str, Value, Value], list[FactChange]] = {}
    for change in changes:
        nodes.setdefault((change.name, change.before, change.after), []).append(change)
    return [(tuple(own.node for own in same if own.node is not None), same[0]) for same in nodes.values()]


def _rank(change: FactChange) -> int:
    if change.name == _LAST:
        return len(_FIRST) + 1
    return _FIRST.index(change.name) if change.name in _FIRST else len(_FIRST)


def _known(info: RunInfo) -> Iterator[tuple[tuple[str | None, str], Value]]:
    virtual = info.plan.virtual is not None
    for node, facts in info.facts.items():
        for name, value in _flat(facts):
            if not (virtual and name in _OF_VIRTUAL_NODES):
                yield (node, name), value
    for node, link in info.plan.links.items():
        for name, value in _flat(asdict(link)):
            yield (node, f"rig file: {name}"), value
    yield (None, "scenario"), _digest(info.plan.scenario_yaml)
    yield (None, "rig file"), _digest(info.plan.rig_yaml)
    yield (None, "overrides"), " ".join(info.plan.overrides)
    for name, text in info.versions.items():
        yield (None, name), text[:12] if name.endswith("sha256") else text


def _flat(facts: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    for name, value in facts.items():
        if name in _NO_FACTS or value is None:
            continue
        if isinstance(value, Mapping):
            prefix = "" if name == "sysctls" else f"{name}: "
            yield from ((prefix + inner, known) for inner, known in _flat(value))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield name, tuple(str(item) for item in value)
        else:
            yield name, " ".join(value.split()) if isinstance(value, str) else value


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
