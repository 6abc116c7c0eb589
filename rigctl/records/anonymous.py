"""Make a stored run anonymous: nodes become A, B, C, … in the order of the rig, switches S1, S2, and so on.

Every text of the run is kept, replaced or left out, as `tests/unit/records/test_anonymous.py` lists it. Kept are those
that rigctl or a kernel chose from a closed list, and those that say what was tested: kernel, processor, card, driver,
settings. A name that a user chose is kept only if it is one of a bundled scenario or rig.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from itertools import count
from typing import Any, Final, TypeVar

from rigctl.base.resources import bundled_names, bundled_text
from rigctl.records.host_facts import HOST_FACTS
from rigctl.records.kind_counts import MulticastCounts
from rigctl.records.measured import Flow, NodeUsage, PortSeries, Probes, Side
from rigctl.records.plan import LEFT_OUT, Cell, Condition, Expectation, HostSetting, Link, Pair, Port, RunPlan, Trunk
from rigctl.records.run import Facts, Repetition, RunInfo, Status
from rigctl.settings import MPTCP, Subflows

_T = TypeVar("_T")
HIDDEN_FACTS: Final = frozenset({"mac", "addresses", "data_address", "ssh_address", "boot_id", "notes"})
"""Facts that identify a host, or are texts."""
INTERFACE_FACTS: Final = frozenset({"interface", "cards"})
BUILD_FACTS: Final = frozenset({"kernel", "os"})
"""Facts in which the name of a host may stand, because its owner built it."""
_CONDITION: Final = "condition "
_MOST_NAME: Final = 30
_KERNEL_NAMES: Final = re.compile(
    r"lo|all|default|(?:(?:eth|wlan|ib|bond|team|br|veth|tap|tun|usb|wg|vtnet|em|igb|igc|ix|ixl|re|bge|mce)\d{1,3}"
    r"|(?:en|wl|ib)(?:o\d{1,4}|(?:P\d{1,5})?(?:p\d{1,3})?s\d{1,3}(?:f\d{1,3})?)(?:np?\d{1,3}|d\d{1,3})?)(?:\.\d{1,4})?",
    re.ASCII,
)
"""Names that Linux, systemd's rules (systemd.net-naming-scheme) or FreeBSD give by place, without a MAC address."""
_OF_INTERFACE: Final = re.compile(r"(net\.(?:ipv4|ipv6|mpls)\.(?:conf|neigh)\.)(.+)(\.[^.]+)")
_PLAIN_REASONS: Final = re.compile(
    r"start skew [\d.]+ ms exceeds the limit of [\d.e+-]+ ms"
    r"|all flows ran together for [\d.]+ s of [\d.e+-]+ s \(minimum [\d.]+ s\)"
    r"|a flow transferred nothing in the measurement interval|stopped by Ctrl-C or a signal"
)
"""Reasons of repetitions that name nothing (`rigctl.model.contract`)."""
_REASON: Final = "reason left out, as this run is anonymous"
_PART: Final = "some pairs were not measured; which and why is left out, as this run is anonymous"
_SILENT: Final = "A switch was not read; the reason is left out, as this run is anonymous."


class Anonymizer:
    """Gives names of runs their letters: first the nodes and switches of `info`, then others as they are met.

    One object for several runs gives a node the same letter in all of them.
    """

    def __init__(self) -> None:
        self._nodes: defaultdict[str, str] = defaultdict(map(_letters, count()).__next__)
        self._switches: defaultdict[str, str] = defaultdict(map("S{}".format, count(1)).__next__)
        self._ports: defaultdict[tuple[str, str], str] = defaultdict(map("p{}".format, count(1)).__next__)
        self._interfaces: defaultdict[str, str] = defaultdict(map("if{}".format, count(1)).__next__)
        self._addresses: dict[str, str] = {}
        self._private: re.Pattern[str] | None = None
        self._conditions: dict[str, str] = {}
        self._classes: dict[str, str] = {}
        self._parts: dict[str, str] = {}

    def info(self, info: RunInfo) -> RunInfo:
        """Return a run without private texts. `repetition` then takes the repetitions of this run."""
        plan = info.plan
        for node in dict.fromkeys((*plan.links, *plan.nodes, *info.facts)):
            self._nodes[node]
        self._private = _pattern_of(self._private_words(info))
        self._classes = _named(_chosen(cell.traffic_class for cell in plan.cells), _public(plan), "class {}".format)
        self._parts = _named(plan.parts, _public(plan), "part {}".format)
        self._conditions = self._name_conditions(plan)
        return replace(
            info,
            plan=self._plan(plan, info.ip_version),
            facts={self._nodes[node]: self._facts(facts) for node, facts in info.facts.items()},
            tags={},
        )

    def repetition(self, repetition: Repetition) -> Repetition:
        return replace(
            repetition,
            reason=self._reason(repetition),
            nodes=tuple(self._usage(usage) for usage in repetition.nodes),
            counters_missing=(_SILENT,) * len(repetition.counters_missing),
            captures=(),
            flows=tuple(self._flow(flow) for flow in repetition.flows),
            counters=tuple(self._series(series) for series in repetition.counters),
            probes=tuple(self._probes(probes) for probes in repetition.probes),
        )

    def _private_words(self, info: RunInfo) -> Iterator[str]:
        yield from (*self._nodes, *_chosen(link.switch for link in info.plan.links.values()))
        for facts in info.facts.values():
            for key in ("mac", "data_address", "ssh_address", "boot_id"):
                yield str(facts.get(key) or "")
            yield from (str(address).split("/")[0] for address in facts.get("addresses") or ())

    def _unnamed(self, text: str) -> str:
        """Return a text in which the names and addresses of the run are `…`; its first word, the system, is kept."""
        first, blank, rest = text.partition(" ")
        return text if self._private is None else f"{first}{blank}{self._private.sub('…', rest)}"

    def _plan(self, plan: RunPlan, ip_version: int) -> RunPlan:
        public = _public(plan)
        against = plan.against
        if against is not None and against.setting == "condition":
            before, after = (self._conditions.get(each, each) for each in (against.before, against.after))
            against = replace(against, before=before, after=after)
        return replace(
            plan,
            title=plan.title if public(plan.title) else "",
            notes="",
            scenario_name=plan.scenario_name if plan.scenario_name in bundled_names() else "scenario",
            scenario_yaml=LEFT_OUT if plan.scenario_yaml else "",  # empty: the run was imported
            rig_name=plan.rig_name if plan.rig_name in bundled_names("rigs") else "rig",
            rig_yaml=LEFT_OUT,
            overrides=(),
            cells=tuple(self._cell(cell) for cell in plan.cells),
            links={self._nodes[node]: self._link(link) for node, link in plan.links.items()},
            conditions=tuple(self._condition(condition) for condition in plan.conditions),
            ports=tuple(self._port(port) for port in plan.ports),
            trunk=plan.trunk and self._trunk(plan.trunk),
            ip_version=ip_version,
            heads=tuple(head for head in plan.heads if all(map(public, head))),
            expectations=tuple(self._expectation(expectation) for expectation in plan.expectations),
            against=against,
        )

    def _cell(self, cell: Cell) -> Cell:
        return replace(
            cell,
            pairs=tuple(map(self._pair, cell.pairs)),
            condition=None if cell.condition is None else self._conditions.get(cell.condition, cell.condition),
            folder=None,
            traffic_class=cell.traffic_class and self._classes[cell.traffic_class],
            part=cell.part and self._parts[cell.part],
        )

    def _expectation(self, expectation: Expectation) -> Expectation:
        words = expectation.name.split(".")  # a figure, maybe after the name of a class
        return replace(expectation, name=".".join(self._classes.get(word, word) for word in words))

    def _pair(self, pair: Pair) -> Pair:
        return Pair(self._nodes[pair.source], self._nodes[pair.destination])

    def _link(self, link: Link) -> Link:
        return replace(link, switch=self._switch(link.switch))

    def _switch(self, key: str | None) -> str | None:
        return None if key is None else self._switches[key]

    def _port(self, port: Port) -> Port:
        return Port(
            self._switches[port.switch],
            self._ports[port.switch, port.name],
            None if port.node is None else self._nodes[port.node],
            self._switch(port.peer),
        )

    def _trunk(self, trunk: Trunk) -> Trunk:
        first, second = trunk.ends
        return replace(trunk, ends=(self._switches[first], self._switches[second]))

    def _name_conditions(self, plan: RunPlan) -> dict[str, str]:
        """Map the name of each condition to its settings as text, or to a number if these are long or not unique."""
        texts = {
            condition.name: ", ".join(f"{one.label} {one.value}" for one in self._condition(condition).settings)
            for condition in plan.conditions
        }
        unique = {name: text for name, text in texts.items() if [*texts.values()].count(text) == 1}
        known = {name: text for name, text in unique.items() if 0 < len(text) <= _MOST_NAME}
        names = _chosen((*texts, *(cell.condition for cell in plan.cells)))
        numbered = _named(names, _public(plan), f"{_CONDITION}{{}}".format)
        return {name: name if number == name else known.get(name, number) for name, number in numbered.items()}

    def _condition(self, condition: Condition) -> Condition:
        name = self._conditions.get(condition.name, condition.name)
        return replace(condition, name=name, settings=tuple(map(self._setting, condition.settings)))

    def _setting(self, setting: HostSetting) -> HostSetting:
        return replace(setting, name=setting.name and self._label(setting.name))

    def _label(self, label: str) -> str:
        """Return the name of a host setting; the interface in a sysctl's name is replaced."""
        found = _OF_INTERFACE.fullmatch(label)
        return label if found is None else f"{found[1]}{self._interface(found[2])}{found[3]}"

    def _interface(self, name: str) -> str:
        return name if _KERNEL_NAMES.fullmatch(name) else self._interfaces[name]

    def _facts(self, facts: Facts) -> Facts:
        kept: Facts = {}
        for key, value in facts.items():
            if key in INTERFACE_FACTS:
                kept[key] = _each(value, lambda name: self._interface(str(name)))
            elif key in BUILD_FACTS and isinstance(value, str):
                kept[key] = self._unnamed(value)
            elif key in HOST_FACTS and key not in HIDDEN_FACTS:
                kept[key] = value
            elif key.startswith(_CONDITION) and isinstance(value, Mapping):
                name = self._conditions.get(key.removeprefix(_CONDITION))
                texts = {self._label(str(label)): text for label, text in value.items()}
                kept |= {} if name is None else {f"{_CONDITION}{name}": texts}
        return kept

    def _reason(self, repetition: Repetition) -> str | None:
        reason = repetition.reason
        if reason is None or _PLAIN_REASONS.fullmatch(reason):
            return reason
        if repetition.status is Status.OK:
            return _PART
        node, colon, _ = reason.partition(": ")
        return f"{self._nodes[node]}: {_REASON}" if colon and node in self._nodes else _REASON

    def _usage(self, usage: NodeUsage) -> NodeUsage:
        return replace(usage, node=self._nodes[usage.node])

    def _flow(self, flow: Flow) -> Flow:
        sender, receiver = (side and self._side(side) for side in (flow.sender, flow.receiver))
        return replace(flow, pair=self._pair(flow.pair), sender=sender, receiver=receiver)

    def _side(self, side: Side) -> Side:
        group = side.counted(MulticastCounts)
        if group is not None and group.querier is not None:
            side = replace(side, kind_counts=replace(group, querier=self._address(group.querier)))
        if not isinstance(subflows := side.subflows, Subflows):
            return side
        mapped = ((self._address(one), self._address(other), size, late) for one, other, size, late in subflows)
        return replace(side, granted=side.granted | {MPTCP: Subflows(mapped)})

    def _address(self, address: str) -> str:
        """Return an address for documentation (RFC 5737, RFC 3849), another one for each address of the run."""
        if address not in self._addresses:
            number = len(self._addresses) + 1
            self._addresses[address] = f"2001:db8::{number:x}" if ":" in address else str(ip_address(_FIRST + number))
        return self._addresses[address]

    def _series(self, series: PortSeries) -> PortSeries:
        return replace(series, switch=self._switches[series.switch], port=self._ports[series.switch, series.port])

    def _probes(self, probes: Probes) -> Probes:
        return replace(probes, pair=self._pair(probes.pair))


_FIRST: Final = int(ip_address("198.18.0.0"))
"""First address of RFC 2544's network for benchmarks: 192.0.2.0/24 of RFC 5737 has too few."""


def _letters(number: int) -> str:
    """Return A, B, … Z, AA, AB, … for 0, 1 and so on."""
    text = ""
    while number >= 0:
        number, letter = divmod(number, 26)
        text, number = chr(ord("A") + letter) + text, number - 1
    return text


def _chosen(names: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name is not None))


def _named(names: Iterable[str], public: Callable[[str], bool], numbered: Callable[[int], str]) -> dict[str, str]:
    """Map each name to itself if it is public, else to a numbered one."""
    return {name: name if public(name) else numbered(number) for number, name in enumerate(names, 1)}


def _public(plan: RunPlan) -> Callable[[str], bool]:
    """Return a function that tells whether a name is in the text of the bundled scenario that was measured."""
    known = bool(plan.scenario_yaml) and bundled_text(plan.scenario_name) == plan.scenario_yaml
    return lambda text: known and bool(text) and text in plan.scenario_yaml


def _pattern_of(words: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds one of the words within other texts, but not within longer words."""
    alternatives = "|".join(re.escape(word) for word in sorted({*words}) if word)
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])", re.IGNORECASE) if alternatives else None


def _each(value: Any, change: Callable[[object], _T]) -> Any:  # noqa: ANN401 — a fact: one value, a list, or None
    return [change(one) for one in value] if isinstance(value, list) else None if value is None else change(value)
