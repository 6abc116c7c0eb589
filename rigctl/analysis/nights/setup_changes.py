"""Find what differs between two runs and may explain a change of figures: host facts, versions, rig, scenario, tags."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, TypeAlias

from rigctl.records import BASELINE, OWN_TAGS, Condition, Facts, RunInfo, RunPlan

FactValue: TypeAlias = str | int | float | bool | tuple[str, ...] | None

SCENARIO_FILE: Final = "scenario_yaml"
RIG_FILE: Final = "rig_yaml"
RESTART: Final = "boot_id"
_OF_VIRTUAL_NODES: Final = frozenset({"mac", "addresses", "interface", "data_address", RESTART})
"""Facts that differ in every run on a virtual rig."""
_NO_FACTS: Final = frozenset({"notes", "interrupt_processors"})
"""Facts that are not compared: free text, and CPUs of interrupts, which irqbalance moves at any time."""
_SETTLED: Final = frozenset(
    {"title", "notes", "heads", "cells", "links", "conditions", "ports", "expectations", SCENARIO_FILE, RIG_FILE}
)
"""Fields of a plan that other functions compare, or that do not change figures."""
_OF_THE_RIG: Final = frozenset({"rig_name", "virtual", "trunk", "ip_version"})
_FIRST: Final = ("speed_bps", "link rate_bps", "duplex", "mtu", "driver", "firmware", "kernel", "mac")
"""Facts that most often change goodput, the likeliest first. The restart of a node is sorted after these facts."""


class ChangeSource(StrEnum):
    """Sources of differences between two runs, in the order of reports."""

    SCENARIO = "scenario"
    RIG = "rig"
    GRANTED = "granted"  # settings that kernels granted to connections
    FACT = "fact"  # facts about a node, such as its kernel
    VERSION = "version"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class SetupChange:
    """A difference in the setup of two runs. `before` or `after` is None if that run lacks the item.

    `name` is the name of a fact (docs/reference/host-facts.md), or a name within `sysctls` or `offloads`. "link mtu"
    comes from the rig file. For a scenario or rig file, the values are digests of the file.
    """

    source: ChangeSource
    name: str
    before: FactValue
    after: FactValue
    where: tuple[str, ...] = ()  # node names or test numbers; empty if the whole run changed
    everywhere: bool = False  # True if `where` lists all nodes or tests, and more than one


def find_setup_changes(before: RunInfo, after: RunInfo) -> list[SetupChange]:
    """Return the differences between two stored runs, the likeliest causes first."""
    return sort_by_cause(
        [
            *_of_plans(before.plan, after.plan),
            *_of_nodes(before, after),
            *_of_versions(before.versions, after.versions),
            *_differs(ChangeSource.TAG, _tags(before), _tags(after)),
        ]
    )


def sort_by_cause(changes: Iterable[SetupChange]) -> list[SetupChange]:
    """Return the differences sorted by how likely they change goodput, the likeliest first."""
    sources = list(ChangeSource)

    def rank(change: SetupChange) -> tuple[int, int]:
        is_first = change.name in _FIRST and change.source is not ChangeSource.TAG
        restart = change.source is ChangeSource.FACT and change.name == RESTART
        return (_FIRST.index(change.name) if is_first else len(_FIRST)) + restart, sources.index(change.source)

    return sorted(changes, key=rank)


def merge_places(changes: Iterable[SetupChange], places: int) -> list[SetupChange]:
    """Return changes with equal ones merged over nodes or tests. `places` is the number of all nodes or tests."""
    wheres: dict[SetupChange, tuple[str, ...]] = {}
    for change in changes:
        alike = replace(change, where=())
        wheres[alike] = (*wheres.get(alike, ()), *change.where)
    return [replace(own, where=where, everywhere=len(where) == places > 1) for own, where in wheres.items()]


def flatten_facts(facts: Facts, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of each fact. Nested facts have the group in the name (`offloads: tso`), sysctls have not."""
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from flatten_facts(value, prefix if name == "sysctls" else f"{prefix}{name}: ")
        else:
            yield prefix + name, value


def _of_plans(before: RunPlan, after: RunPlan) -> Iterator[SetupChange]:
    if before is after:  # the nights of a scenario share one plan object
        return
    for field in fields(RunPlan):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.name not in _SETTLED and old != new:
            source = ChangeSource.RIG if field.name in _OF_THE_RIG else ChangeSource.SCENARIO
            yield from _differs(source, _parts(field.name, old), _parts(field.name, new))
    for source, name in ((ChangeSource.SCENARIO, SCENARIO_FILE), (ChangeSource.RIG, RIG_FILE)):
        digests = [sha256(getattr(plan, name).encode()).hexdigest()[:8] for plan in (before, after)]
        yield from _differs(source, {name: digests[0]}, {name: digests[1]})
    yield from _differs(ChangeSource.SCENARIO, _settings(before.conditions), _settings(after.conditions))


def _parts(name: str, value: object) -> dict[str, FactValue]:
    """Return a plan's field as {name: value}; if the value is a record, one entry for each field of the record."""
    parts = {name: value}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f"{name} {part}": inner for part, inner in asdict(value).items()}
    return {
        part: _plain(" ".join(map(str, inner)) or None if isinstance(inner, tuple) else inner)
        for part, inner in parts.items()
    }


def _settings(conditions: Iterable[Condition]) -> dict[str, str]:
    texts = {}
    for condition in conditions:
        words = [f"{setting.label} {setting.value}" for setting in condition.settings]
        texts[f"condition {condition.name}"] = ", ".join(words) + (", resize" if condition.resize else "")
    return texts


def _of_nodes(before: RunInfo, after: RunInfo) -> Iterator[SetupChange]:
    """Yield nodes that only one run has, and for the other nodes changes of links and of facts known in both runs."""
    old, new = (dict.fromkeys([*run.plan.links, *run.facts]) for run in (before, after))
    for node in sorted(old.keys() ^ new.keys()):
        yield SetupChange(ChangeSource.RIG, "node", node if node in old else None, node if node in new else None)
    virtual = before.plan.virtual is not None or after.plan.virtual is not None
    hidden = _NO_FACTS | _OF_VIRTUAL_NODES if virtual else _NO_FACTS
    nodes = [node for node in new if node in old]
    links: list[SetupChange] = []
    facts: list[SetupChange] = []
    for node in nodes:
        if before.plan.links.get(node) != after.plan.links.get(node):
            links += _differs(ChangeSource.RIG, _links(before, node), _links(after, node), node)
        if before.facts.get(node) != after.facts.get(node):
            facts += _differs(ChangeSource.FACT, _facts(before, node), _facts(after, node), node)
    yield from merge_places(_is_known(links), len(nodes))
    yield from merge_places((change for change in _is_known(facts) if change.name not in hidden), len(nodes))


def _links(run: RunInfo, node: str) -> dict[str, FactValue]:
    link = run.plan.links.get(node)
    return {} if link is None else {f"link {name}": value for name, value in asdict(link).items()}


def _facts(run: RunInfo, node: str) -> dict[str, FactValue]:
    return {name: _plain(value) for name, value in flatten_facts(run.facts.get(node, {}))}


def _of_versions(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[SetupChange]:
    """Yield the versions that differ. Yield only one agent: the agents of all machine types are built together."""
    seen = False
    for change in _is_known(_differs(ChangeSource.VERSION, before, after)):
        agent = change.name.startswith("agent ") and change.name.endswith(" sha256")
        if not (agent and seen):
            yield change
        seen = seen or agent


def _tags(run: RunInfo) -> dict[str, str]:
    return {name: text for name, text in run.tags.items() if name != BASELINE and not name.startswith(OWN_TAGS)}


def _differs(
    source: ChangeSource, before: Mapping[str, FactValue], after: Mapping[str, FactValue], *where: str
) -> Iterator[SetupChange]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield SetupChange(source, name, before.get(name), after.get(name), where)


def _is_known(changes: Iterable[SetupChange]) -> Iterator[SetupChange]:
    return (change for change in changes if change.before is not None and change.after is not None)


def _plain(value: object) -> FactValue:
    """Return a value as a number, text or tuple of texts, to be compared, printed and written as JSON."""
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    return value if value is None or isinstance(value, int | float) else " ".join(str(value).split())
