"""What else is different between two runs: host facts, versions, rig and scenario, tags, and what kernels granted.

A change of the figures is explained by one of these, or by none that is known.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, TypeAlias, TypeVar

from rigctl.records import Condition, Facts, Link, RunInfo, RunPlan

K = TypeVar("K")
HIDDEN_FACTS: Final = frozenset({"boot_id", "mac", "addresses"})
"""What tells one machine from all others in the world, and says nothing of how it is set."""
_SETTLED: Final = ("scenario_yaml", "rig_yaml", "title", "notes", "heads", "cells", "links", "conditions", "ports")
"""Of a plan, what is looked at in its own way or changes no figure."""
_OF_THE_RIG: Final = ("rig_name", "virtual", "trunk", "ip_version")

Value: TypeAlias = float | int | str | bool | None


class Source(StrEnum):
    """Where something that differs was found, in the order in which a reader wants it."""

    SCENARIO = "scenario"
    RIG = "rig"
    GRANTED = "granted"  # by the kernels, to the tests' own connections
    FACT = "fact"  # of nodes
    VERSION = "version"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Apart:
    """One thing that differs. `where`: nodes or tests by their names; none: the whole run. `None`: not known."""

    source: Source
    name: str
    before: Value
    after: Value
    where: tuple[str, ...] = ()


def apart(before: RunInfo, after: RunInfo) -> list[Apart]:
    """What differs between two runs as they were stored, without their figures."""
    return [
        *_of_plans(before.plan, after.plan),
        *_of_facts(before.facts, after.facts),
        *_of_versions(before.versions, after.versions),
        *_changed(Source.TAG, before.tags, after.tags),
    ]


def flattened(facts: Facts, prefix: str = "") -> list[tuple[str, Any]]:
    """Facts by name, nested ones too: a sysctl's own name says what it is, an offload's does not."""
    found: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if name in HIDDEN_FACTS:
            continue
        if isinstance(value, dict):
            inner = "" if name == "sysctls" else f"{name}: "
            found.extend(flattened(value, prefix + inner))
        else:
            found.append((prefix + name, value))
    return found


def grouped(found: Iterable[Apart], all_places: int) -> Iterator[Apart]:
    """Equal differences of several places as one; of all places as one of the whole run."""

    def same(each: Apart) -> tuple[Hashable, ...]:
        return (each.source, each.name, repr(each.before), repr(each.after))

    for _, group in groupby(sorted(found, key=same), key=same):
        several = list(group)
        where = tuple(place for each in several for place in each.where)
        first = several[0]
        everywhere = len(where) == all_places > 1
        yield Apart(first.source, first.name, first.before, first.after, () if everywhere else where)


def _of_plans(before: RunPlan, after: RunPlan) -> Iterator[Apart]:
    for field in fields(RunPlan):
        own, other = getattr(before, field.name), getattr(after, field.name)
        if field.name not in _SETTLED and own != other:
            source = Source.RIG if field.name in _OF_THE_RIG else Source.SCENARIO
            yield from _changed(source, _parts(field.name, own), _parts(field.name, other))
    if before.scenario_yaml != after.scenario_yaml:
        yield Apart(Source.SCENARIO, "scenario_yaml", None, "changed")
    if before.rig_yaml != after.rig_yaml:
        yield Apart(Source.RIG, "rig_yaml", None, "changed")
    yield from _changed(Source.SCENARIO, _settings(before.conditions), _settings(after.conditions))
    links = [_links(plan.links) for plan in (before, after)]
    nodes = before.links.keys() & after.links.keys()
    yield from grouped(_of_nodes(Source.RIG, links[0], links[1]), len(nodes))


def _parts(name: str, value: object) -> dict[str, Value]:
    """A field of a plan, or, of a record, each of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f"{name} {part}": _plain(each) for part, each in asdict(value).items()}
    return {} if value is None else {name: _plain(value)}


def _settings(conditions: Iterable[Condition]) -> dict[str, str]:
    return {
        f"condition {condition.name}": ", ".join(
            f"{setting.name or setting.kind} {setting.value}" for setting in condition.settings
        )
        + (", resize" if condition.resize else "")
        for condition in conditions
    }


def _links(links: Mapping[str, Link]) -> dict[str, dict[str, Value]]:
    return {
        node: {f"link {field.name}": getattr(link, field.name) for field in fields(Link)}
        for node, link in links.items()
    }


def _of_facts(before: Mapping[str, Facts], after: Mapping[str, Facts]) -> Iterator[Apart]:
    """Of the nodes that both runs asked; one that only one of them had is a difference of the rig."""
    for node in sorted(before.keys() ^ after.keys()):
        yield Apart(Source.RIG, "node", node if node in before else None, node if node in after else None)
    values = [
        {node: {name: _plain(value) for name, value in flattened(facts)} for node, facts in side.items()}
        for side in (before, after)
    ]
    yield from grouped(_of_nodes(Source.FACT, values[0], values[1]), len(before.keys() & after.keys()))


def _of_nodes(
    source: Source, before: Mapping[str, Mapping[str, Value]], after: Mapping[str, Mapping[str, Value]]
) -> Iterator[Apart]:
    for node in sorted(before.keys() & after.keys()):
        for each in _changed(source, before[node], after[node]):
            yield Apart(each.source, each.name, each.before, each.after, (node,))


def _of_versions(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Apart]:
    """An agent of other code has another checksum on every machine: the first stands for all."""
    agents = 0
    for each in _changed(Source.VERSION, before, after):
        agent = each.name.startswith("agent ") and each.name.endswith(" sha256")
        agents += agent
        if not agent or agents == 1:
            yield each


def _changed(source: Source, before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Apart]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Apart(source, name, before.get(name), after.get(name))


def _plain(value: object) -> Value:
    """A value as one that can be compared, printed and written as JSON."""
    if value is None or isinstance(value, float | int | str):
        return value
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) if value else None
    return str(value)
