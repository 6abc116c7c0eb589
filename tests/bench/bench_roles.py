"""Does rigctl name who disturbs whom? 24 known switches that disturb, 12 that do not, 12 cases of the limit `paused`.

`python tests/bench/bench_roles.py predict`: each switch's model with synthetic datagrams, without rigctl: which classes
it disturbs and where it drops must be what a case expects. `measure --store FILE [NAME …]` (about eleven minutes, root)
runs rigctl once over each switch that the store lacks. `judge --store FILE [--details]` judges the stored runs by the
rules as they are, and by the switches' own counters whether each switch did what its case says.

Expectations follow from the designs. A verdict is right, wrong (another cause than the true one, or a disturbance that
does not exist), or not named: `UNKNOWN`, a choice of two causes, or nothing more than the sender's rate.
"""

import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
import yaml
from bench import command, table
from known_switch.model import SECOND, Design, Events, Link, Switch, trunk
from known_switch.rig import KnownSwitch, Nodes, introduce, known_switch, nodes_up
from user import User

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.disturbance import disturbances_of
from rigctl.cli.stored_runs import read_view
from rigctl.figures.datagrams import LOSS
from rigctl.figures.phases import in_phase
from rigctl.figures.streams import GOODPUT
from rigctl.model.phases import PHASES
from rigctl.report.document import document
from rigctl.store import open_store

MBIT: Final = 1_000_000
RATE: Final = 20 * MBIT
DURATION_S: Final = 8
LIMIT_S: Final = 5
KB: Final = 1000
EF: Final = 46
WHOLE: Final = 1000.0  # `alpha` of a buffer that a single queue can fill
PAUSE: Final = (30 * KB, 15 * KB)
BUCKET: Final = 30 * KB
NONE, RECEIVER, BLOCKED, BUFFER, TRUNK = "none", "RECEIVER", "BLOCKED", "BUFFER", "TRUNK"
PAUSED, HELD, POLICER = "PAUSED", "HELD", "policer"
TRUNK_PORTS: Final = ("up", "down")
Designs: TypeAlias = dict[str, Design]
VAGUE: Final = frozenset({"UNKNOWN", "BLOCKED_OR_BUFFER", "HELD", "unknown"})
DROPS, FEW_DROPS = 15, 8
"""A place of drops that a case expects has at least so many; another place has fewer than `FEW_DROPS`."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A class of datagrams. `pairs` has two letters for each pair. A load sends in the middle half of the test."""

    pairs: str
    rate: int  # per cent of the ceiling; 0 for `keys` that say it
    load: bool = False
    dscp: int = 0
    keys: str = ""

    @property
    def ends(self) -> list[tuple[str, str]]:
        return [(pair[0], pair[1]) for pair in self.pairs.split()]

    def text(self, name: str) -> str:
        pairs = ", ".join(f"{source} -> {to}" for source, to in self.ends)
        keys = [f"pairs: [{pairs}]"]
        keys += [f"rate: {self.rate}%"] * (self.rate > 0) + ["start: 25%, stop: 75%"] * self.load
        keys += [f"dscp: {self.dscp}"] * (self.dscp > 0) + [self.keys] * bool(self.keys)
        return f"  {name}: {{{', '.join(keys)}}}"


@dataclass(frozen=True, slots=True)
class Case:
    """A switch, the classes over it, and what is true of them. The first class of `expected` is the subject."""

    name: str
    why: str
    design: Design | Designs
    flows: Mapping[str, Flow]
    expected: Mapping[str, str]  # true cause of each class with phases, or `none`
    drops: str = ""  # places at which the switch drops, as `a input, d output`
    pauses: str = ""  # ports of senders that the switch pauses
    trunk: tuple[str, ...] = ()
    described: bool = True  # False: the rig file has no switch, so neither counters nor a trunk
    limits: tuple[str, ...] = ()  # true limits of the subject: a case of section 3
    test: str = "udp"
    plain: str = ""  # a test without classes: keys of the scenario

    @property
    def designs(self) -> Mapping[str, Design]:
        return {"known": self.design} if isinstance(self.design, Design) else self.design

    @property
    def places(self) -> set[str]:
        return set(filter(None, self.drops.split(", ")))

    @property
    def truths(self) -> dict[str, str]:
        return {
            name: cause for name, cause in self.expected.items() if name in self.flows and not self.flows[name].load
        }

    def scenario(self) -> str:
        seconds = LIMIT_S if self.limits else DURATION_S
        lines = [f"title: {self.name}", f"duration: {seconds}s", "max_skew: 300ms"]
        if self.plain:
            return "\n".join([*lines, self.plain, ""])
        lines += [f"test: {self.test}", *["size: 1472"] * (self.test == "udp"), "classes:"]
        return "\n".join([*lines, *(flow.text(name) for name, flow in self.flows.items()), ""])


def switch(
    ports: str = "abcd", rate: int = RATE, buffer: int = 60 * KB, links: Mapping[str, Link] | None = None, **fields: Any
) -> Design:
    return Design({port: Link(rate) for port in ports} | dict(links or {}), buffer, **fields)


def fifos(**fields: Any) -> Design:
    """Return a switch with one queue for each input."""
    return switch(queues_at="input", **fields)


def slow(out_mbit: int, rate: int = RATE) -> Link:
    """Return a link whose switch port sends more slowly than the rig file says."""
    return Link(rate, out_bps=out_mbit * MBIT)


def policed(mbit: int) -> Link:
    return Link(RATE, police_bps=mbit * MBIT, police_bytes=BUCKET)


def two_switches(left: str, right: str, rate_mbit: int = 20, far: "Design | None" = None, **fields: Any) -> Designs:
    """Return two switches with a trunk of this rate. `far` is the right one, if it differs."""
    link = Link(rate_mbit * MBIT)
    return {
        "left": switch(left, links={"up": link}, **fields),
        "right": far or switch(right, links={"down": link}, **fields),
    }


FREE: Final = Flow("ab", 45)
CONGESTED: Final = Flow("ad", 45)
WITNESS: Final = Flow("db", 5)
LOAD: Final = Flow("cd", 95, load=True)
TWO: Final = Flow("cd bd", 70, load=True)
LINE: Final = {"free": FREE, "congested": CONGESTED, "witness": WITNESS, "load": LOAD}
BESIDE: Final = {"free": FREE, "congested": CONGESTED, "load": LOAD}
HOL: Final = {"free": BLOCKED, "congested": RECEIVER, "witness": NONE}
SHARED: Final = {"free": BUFFER, "congested": RECEIVER, "witness": BUFFER}
STOPPED: Final = {"free": PAUSED, "congested": RECEIVER, "witness": NONE}
BLIND: Final = STOPPED | {"free": HELD}
FULL: Final = {"free": NONE, "congested": RECEIVER, "witness": NONE}
IN: Final = "a input, c input"
OUT: Final = "b output, d output"


def blocking() -> list[Case]:
    """Return switches in which a's frames for b wait behind its frames for d, which is full."""
    less = LINE | {"free": Flow("ab", 40), "congested": Flow("ad", 40)}
    own = BESIDE | {"witness": Flow("cb", 5), "load": Flow("cd", 85, load=True)}
    slower = fifos(buffer=100 * KB, links={"d": Link(10 * MBIT)})
    pausing = switch("bcd", buffer=200 * KB, links={"down": Link(RATE)}, pause=PAUSE)
    spread = two_switches("a", "", far=pausing)
    through = "the right switch pauses the trunk because of d"
    return [
        Case("hol", "one FIFO for each input", fifos(), LINE, HOL, IN),
        Case("hol-small", "FIFOs of 10 frames", fifos(rate=10 * MBIT, buffer=15_200), LINE, HOL, IN),
        Case("hol-slow-port", "FIFOs of 100 kB, d at half the rate", slower, less, HOL, IN),
        Case("hol-no-witness", "as hol, but no class shows that it is no shared buffer", fifos(), BESIDE, HOL, IN),
        Case("hol-bad-witness", "the witness's sender also sends to d", fifos(), own, HOL | {"witness": BLOCKED}, IN),
        Case("hol-trunk", through, spread, less | {"load": TWO}, HOL, "up output", "b, c, down", trunk=TRUNK_PORTS),
    ]


def sharing() -> list[Case]:
    """Return switches with a buffer for all ports, which the frames for d fill: those for b find no room."""
    small = switch(rate=10 * MBIT, buffer=20 * KB, alpha=64.0)
    elsewhere = {"free": FREE, "witness": WITNESS, "load": TWO}
    return [
        Case("shared", "60 kB without a threshold", switch(alpha=WHOLE), LINE, SHARED, OUT),
        Case("shared-small", "20 kB, alpha 64", small, LINE, SHARED, OUT),
        Case("shared-no-witness", "120 kB", switch(buffer=120 * KB, alpha=WHOLE), BESIDE, SHARED, OUT),
        Case("shared-elsewhere", "60 kB; a sends nothing to d", switch(alpha=WHOLE), elsewhere, SHARED, OUT),
    ]


def pressing() -> list[Case]:
    """Return switches that stop a because of its frames for d (back pressure)."""
    queues, inputs = switch(buffer=200 * KB, pause=PAUSE), fifos(pause=PAUSE)
    slower, two = fifos(rate=10 * MBIT, pause=PAUSE), LINE | {"load": TWO}
    return [
        Case("pause", "output queues", queues, two, STOPPED, "", "a, b, c"),
        Case("pause-blind", "the same without SNMP", queues, two, BLIND, "", "a, b, c", described=False),
        Case("pause-input", "FIFOs", inputs, LINE, STOPPED, "", "a, c"),
        Case("pause-input-blind", "10 Mbit/s, without SNMP", slower, LINE, BLIND, "", "a, c", described=False),
    ]


def policing() -> list[Case]:
    """Return switches that drop what a sends above a rate. d's port is full in the second and the third."""
    both = {"free": Flow("ab", 30), "witness": WITNESS, "load": Flow("ad", 45, load=True)}
    later = LINE | {"congested": replace(CONGESTED, load=True)}
    other = LINE | {"congested": Flow("bd", 45)}
    seven, thirteen = "exceeded only while a also sends the load", "exceeded only while a also sends to d"
    true, full = {"free": POLICER, "witness": NONE}, "a policer, d output"
    return [
        Case("policer-both", seven, switch(links={"a": policed(10)}), both, true, "a policer"),
        Case("policer-full-port", thirteen, switch(links={"a": policed(13)}), later, true, full),
        Case("policer-always", "a loses a third all the time", switch(links={"a": policed(6)}), other, FULL, full),
    ]


def queueing() -> list[Case]:
    """Return switches whose port to b is full, with a load that has priority, a weight, or no mark."""
    urgent = {"free": FREE, "load": Flow("cb", 95, load=True, dscp=EF), "beside": Flow("ad", 20)}
    loads = {"free": Flow("ab", 60), "load": Flow("cb db", 30, load=True, dscp=EF), "beside": Flow("ad", 10)}
    plain = {"free": Flow("ab", 35), "load": Flow("cb", 35, load=True), "beside": Flow("ad", 20)}
    true, at, marked = {"free": RECEIVER, "beside": NONE}, "b output", {EF: 1}
    strict = switch(classes=marked, weights=(1, 1), strict=True)
    return [
        Case("strict", "the load has priority", strict, urgent, true, at),
        Case("weights", "the load has 4 of 5 parts", switch(classes=marked, weights=(1, 4)), urgent, true, at),
        Case("weights-of-two", "two loads have half", switch(classes=marked, weights=(1, 1)), loads, true, at),
        Case("slow-egress", "b's port sends at half its rate", switch(links={"b": slow(10)}), plain, true, at),
    ]


def trunks() -> list[Case]:
    """Return two switches whose trunk is full."""
    both, true, at, ports = {"free": FREE, "load": LOAD}, {"free": TRUNK}, "up output", TRUNK_PORTS
    across, slower = two_switches("ac", "bd"), two_switches("ac", "bd", 10)
    return [
        Case("trunk", "as fast as the nodes' links", across, both, true, at, trunk=ports),
        Case("trunk-slow", "half as fast", slower, both, true, at, trunk=ports),
        Case("trunk-unnamed", "the rig file has no switch", across, both, true, at, trunk=ports, described=False),
    ]


def harmless() -> list[Case]:
    """Return switches in which no class is disturbed, but for those to a port that is really full."""
    light = {"free": Flow("ab", 30), "congested": Flow("ad", 25), "load": Flow("cd", 45, load=True)}
    deep, elsewhere = LINE | {"load": Flow("cd", 65, load=True)}, {"free": FREE, "witness": WITNESS, "load": TWO}
    first = {"free": replace(FREE, dscp=EF), "load": Flow("cb", 95, load=True)}
    room = {"free": Flow("ab", 30), "load": Flow("cd", 50, load=True)}
    opposite = {"free": FREE, "load": Flow("dc ba", 47, load=True)}
    strict = switch(buffer=100 * KB, classes={EF: 1}, weights=(1, 1), strict=True)
    half, pausing = switch(buffer=200 * KB, alpha=1.0), switch(buffer=200 * KB, pause=PAUSE)
    quarter = switch(rate=10 * MBIT, buffer=300 * KB, alpha=0.25)
    across, ports, at = two_switches("ac", "bd"), TRUNK_PORTS, "d output"
    none = dict.fromkeys(LINE, NONE)
    return [
        Case("output", "output queues of 200 kB", switch(buffer=200 * KB), LINE, FULL, at),
        Case("output-small", "10 Mbit/s, 40 kB", switch(rate=10 * MBIT, buffer=40 * KB), LINE, FULL, at),
        Case("threshold", "200 kB shared, alpha 1", half, LINE, FULL, at),
        Case("threshold-low", "300 kB shared, alpha 0.25", quarter, LINE, FULL, at),
        Case("deep", "2 MB shared, more than the load fills", switch(buffer=2000 * KB, alpha=WHOLE), deep, FULL),
        Case("input-light", "FIFOs; no port is full", fifos(), light, none),
        Case("apart", "free and load have no common port", switch(), {"free": FREE, "load": LOAD}, none),
        Case("strict-free", "b's port is full, and free has priority", strict, first, none, "b output"),
        Case("trunk-room", "80 % for the trunk", across, room, none, trunk=ports),
        Case("trunk-opposite", "the load fills the trunk's other way", across, opposite, none, trunk=ports),
        Case("policed-load", "c's policer leaves room at d", switch(links={"c": policed(8)}), LINE, none, "c policer"),
        Case("pause-elsewhere", "the switch pauses b and c, not a", pausing, elsewhere, none, "", "b, c"),
    ]


def pausing() -> list[Case]:
    """Return cases in which the switch pauses a, and nothing else limits the subject."""
    halved, inputs = switch(buffer=100 * KB, links={"d": slow(10)}, pause=PAUSE), fifos(pause=PAUSE)
    slower = switch(rate=10 * MBIT, buffer=100 * KB, links={"d": slow(4, 10 * MBIT)}, pause=PAUSE)
    end = switch("", buffer=100 * KB, links={"d": slow(8), "down": Link(RATE)}, pause=PAUSE)
    both = two_switches("a", "", far=end, buffer=100 * KB, pause=PAUSE)
    datagrams = {"free": FREE, "congested": CONGESTED, "load": Flow("cd", 95)}
    stream = {"free": Flow("ab", 0), "congested": replace(CONGESTED, keys=UDP), "load": Flow("cd", 95, keys=UDP)}
    true = ("paused",)
    return [
        limit("paused-tcp", "d's port sends at half its rate", halved, true, "a", plain=TCP_AD),
        limit("paused-udp", "the same, as fast as a can send", halved, true, "a", plain=f"{UDP_AD}unlimited"),
        limit("paused-rate", "90 % requested, 40 % sent on", slower, true, "a", plain=f"{UDP_AD}90%"),
        limit("paused-blocking", "FIFOs: datagrams to b stop with those to d", inputs, true, "a, c", flows=datagrams),
        limit("paused-stream", "the same, TCP to b", inputs, true, "a, c", flows=stream, test="tcp"),
        limit("paused-trunk", "a pause at both switches", both, true, "a, down", plain=FOUR_AD, trunk=TRUNK_PORTS),
    ]


def not_pausing() -> list[Case]:
    """Return cases in which pause frames are not what limits the subject, or cannot be seen."""
    halved, slower = (
        switch(buffer=100 * KB, links={"d": slow(10)}, pause=PAUSE),
        switch(buffer=200 * KB, links={"d": slow(10)}),
    )
    policer = switch(buffer=100 * KB, links={"a": policed(8), "d": slow(8)}, pause=PAUSE)
    far = switch(links={"b": slow(15)}, latency_ns=4_000_000, pause=(2 * KB, 1 * KB))
    full = {"free": Flow("ad", 0), "other": Flow("cd", 5, keys=UDP)}
    other = {"free": Flow("ab", 0), "other": Flow("cd", 90, keys=UDP)}
    queues, path, window = switch(buffer=100 * KB, pause=PAUSE), ("path",), "pairs: [a -> b]\ntest: tcp\nwindow: 8K"
    line = ("line-rate", "shared-link")
    return [
        limit("blind", "as paused-tcp, without SNMP: a slow port", halved, path, "a", plain=TCP_AD, described=False),
        limit("full-anyway", "pause frames beside a full port", queues, line, "a", flows=full, test="tcp"),
        limit("slow-port", "d's port sends at half its rate, and never pauses", slower, path, plain=TCP_AD),
        limit("requested", "30 % requested: the switch need not pause", halved, ("rate",), plain=f"{UDP_AD}30%"),
        limit(
            "paused-other",
            "the switch pauses c, and polices a",
            policer,
            path,
            "c",
            "a policer",
            flows=other,
            test="tcp",
        ),
        limit("window", "short pauses of a stream with a small window", far, ("window",), "a", plain=window),
    ]


UDP: Final = "test: udp, size: 1472"
TCP_AD: Final = "pairs: [a -> d]\ntest: tcp"
FOUR_AD: Final = f"{TCP_AD}\nparallel: 4"
UDP_AD: Final = "pairs: [a -> d]\ntest: udp\nsize: 1472\nrate: "


def limit(
    name: str, why: str, design: Design | Designs, true: tuple[str, ...], pauses: str = "", drops: str = "",
    flows: Mapping[str, Flow] | None = None, **fields: Any,
) -> Case:  # fmt: skip
    """Return a case of the limit of one stream, or of the first class of `flows`."""
    return Case(name, why, design, flows or {}, {}, drops, pauses, limits=true, **fields)


def all_cases() -> dict[str, list[Case]]:
    """Return 24 switches that disturb a class, or seem to, 12 that do not, and 12 cases of the limit `paused`."""
    disturbing = blocking() + sharing() + pressing() + policing() + queueing() + trunks()
    return {"Something disturbs": disturbing, "Nothing is wrong": harmless(), "Limits": pausing() + not_pausing()}


# --- what the model does with synthetic datagrams ---

_BEFORE, _DURING = (0.3, 1.8), (2.4, 5.8)


def _arrivals(case: Case, rng: random.Random) -> Iterator[tuple[int, str, bytes, int]]:
    """Yield time, port, frame and class number of each datagram, evenly sent but for 1 ms of chance."""
    designs = case.designs
    rates = {port: link.rate_bps for design in designs.values() for port, link in design.links.items()}
    home = {port: name for name, design in designs.items() for port in design.links}
    for number, flow in enumerate(case.flows.values()):
        first_s, last_s = (2.0, 6.0) if flow.load else (0.05, 8.0)
        ends = flow.ends
        least = min(
            rates[hop]
            for source, to in ends
            for hop in (source, to, *(case.trunk if case.described and home[source] != home[to] else ()))
        )
        for source, to in ends:
            step_s = 1538 * 8 / (least * flow.rate / 100)
            frame = _frame(source, to, flow.dscp, number)
            for count in range(int((last_s - first_s) / step_s)):
                sent_s = first_s + count * step_s + rng.uniform(0, 0.001)
                yield int(sent_s * SECOND), source, frame, number


def _frame(source: str, to: str, dscp: int, number: int) -> bytes:
    header = bytes([2, 0, 0, 0, 0, ord(to), 2, 0, 0, 0, 0, ord(source), 8, 0, 0x45, dscp << 2, number])
    return header + bytes(1514 - len(header))


def predicted(case: Case) -> tuple[dict[str, str], dict[str, int], set[str]]:
    """Return the loss and goodput of each class beside the load, drops by place, and the ports that were paused."""
    events = Events()
    switches = {name: Switch(design, events) for name, design in case.designs.items()}
    at = {port: made for made in switches.values() for port in made.design.links}
    if case.trunk:
        trunk(at[case.trunk[0]], case.trunk[0], at[case.trunk[1]], case.trunk[1])
    for port in set(at) - set(case.trunk):
        at[port].arrive(0, port, b"\xff" * 6 + bytes([2, 0, 0, 0, 0, ord(port)]) + bytes(48))
    for time_ns, port, frame, number in sorted(_arrivals(case, random.Random(49))):
        at[port].arrive(time_ns, port, frame, number)
    events.advance(10 * SECOND)
    came, lost, places = Counter[tuple[int, str]](), Counter[tuple[int, str]](), Counter[str]()
    for made in switches.values():
        departures, drops = made.taken()
        came.update((gone.note, _phase(gone.time_ns)) for gone in departures if gone.note is not None)
        lost.update((drop.frame[16], _phase(drop.time_ns)) for drop in drops)
        places.update(f"{drop.port} {drop.why}" for drop in drops)
    told = {}
    for number, (name, flow) in enumerate(case.flows.items()):
        if not flow.load:
            loss = [lost[number, phase] / max(1, lost[number, phase] + came[number, phase]) for phase in ("b", "d")]
            kept = came[number, "d"] / (_DURING[1] - _DURING[0]) / max(1, came[number, "b"] / (_BEFORE[1] - _BEFORE[0]))
            disturbed = loss[1] - loss[0] >= 0.005 or kept < 0.95
            told[name] = (
                f"{'disturbed' if disturbed else NONE} ({100 * loss[0]:.1f} → {100 * loss[1]:.1f} %, {kept:.2f})"
            )
    pauses = {port for made in switches.values() for port, (_, out) in made.counters().items() if out.pause}
    return told, dict(places), pauses


def _phase(time_ns: int) -> str:
    for name, (start_s, end_s) in (("b", _BEFORE), ("d", _DURING)):
        if start_s <= time_ns / SECOND < end_s:
            return name
    return ""


def predict() -> None:
    """Print what each switch's model does with synthetic datagrams."""

    def rows() -> Iterator[tuple[object, ...]]:
        for case in chain.from_iterable(all_cases().values()):
            if case.limits:
                continue
            told, drops, pauses = predicted(case)
            agrees = all((told[name].split()[0] == NONE) == (cause == NONE) for name, cause in case.truths.items())
            as_designed = _differences(case, drops, dict.fromkeys(pauses, 2))
            shown = "; ".join(f"{name} {text}" for name, text in told.items())
            yield case.name, shown, drops, ", ".join(sorted(pauses)), "yes" if agrees and not as_designed else "NO"

    table("Models with synthetic datagrams", ("case", "classes", "drops", "pauses", "as expected"), rows())


def _differences(case: Case, drops: Mapping[str, int], pauses: Mapping[str, int]) -> list[str]:
    """Return in what the model's counters differ from the design's expectations."""
    found = [f"no drops at {place}" for place in sorted(case.places) if drops.get(place, 0) < DROPS]
    if not case.limits:
        found += [
            f"{count} drops at {at}" for at, count in drops.items() if at not in case.places and count >= FEW_DROPS
        ]
    paused, wanted = {port for port, count in pauses.items() if count}, set(filter(None, case.pauses.split(", ")))
    return found + [f"pause frames to {sorted(paused)}"] * (paused != wanted)


# --- what rigctl says ---


def measure(
    store: Annotated[Path, typer.Option()], names: Annotated[list[str] | None, typer.Argument()] = None
) -> None:
    """Run rigctl once over each switch that the store lacks, or over those of NAMES that it lacks."""
    facts = _facts(store)
    every = [case for case in chain.from_iterable(all_cases().values()) if case.name not in facts]
    asked = [case for case in every if not names or case.name in names]
    with tempfile.TemporaryDirectory(prefix="roles-") as place, nodes_up(Path(place), *"abcd") as nodes:
        user = User(Path(place))
        user.environment["RIGCTL_STORE"] = str(store.resolve())
        for case in asked:
            began_s = time.monotonic()
            try:
                facts[case.name] = _measured(case, nodes, user)
            except AssertionError as error:
                facts[case.name] = {"error": str(error)}
            store.with_suffix(".json").write_text(json.dumps(facts, indent=1))
            print(f"{case.name:22} {time.monotonic() - began_s:5.1f} s  {facts[case.name]}", flush=True)


def _facts(store: Path) -> dict[str, dict[str, Any]]:
    """Return what was counted in each case that was measured."""
    file = store.with_suffix(".json")
    return dict(json.loads(file.read_text())) if file.exists() else {}


def _measured(case: Case, nodes: Nodes, user: User) -> dict[str, Any]:
    """Run a case; return what the switches, the nodes' queues and the machine counted meanwhile."""
    with known_switch(nodes, case.design, case.trunk) as running:
        ports = [port for design in case.designs.values() for port in design.links if port not in case.trunk]
        introduce(nodes, ports)
        if not case.described:
            _undescribed(running.file)
        environment = user.environment
        user.environment = environment | dict(running.environment)
        before, dropped = _counted(running), {node: _queue_drops(nodes, node) for node in ports}
        try:
            user.rigctl("run", user.scenario(case.scenario()), "--rig", str(running.file), "--no-report", "--quiet")
        finally:
            user.environment = environment
        after, process = _counted(running), running.counted()["process"]
        own = {node: count for node in ports if (count := _queue_drops(nodes, node) - dropped[node])}
    counts = dict(after - before)
    return {
        "drops": {place: count for place, count in counts.items() if " " in place},
        "pauses": {port: count for port, count in counts.items() if " " not in port},
        "node drops": own,
        "late_s": round(process["late_s"], 3),
        "unsent": process["unsent"],
        "load": round(os.getloadavg()[0], 1),
    }


def _counted(running: KnownSwitch) -> Counter[str]:
    """Return the drops by place, and the pause frames by port."""
    counted = running.counted()
    pauses = {name: port["out"]["pause"] for name, port in counted["ports"].items()}
    return Counter[str](counted["drops"]) + Counter(pauses)


def _queue_drops(nodes: Nodes, node: str) -> int:
    shown = nodes.namespace(node).run("tc", "-s", "-j", "qdisc", "show", "dev", "eth0")
    return sum(int(queue["drops"]) for queue in json.loads(shown))


def _undescribed(file: Path) -> None:
    """Remove switches and trunk from a rig file."""
    rig = yaml.safe_load(file.read_text())
    for node in rig["nodes"].values():
        del node["switch"], node["switch_port"]
    file.write_text(yaml.safe_dump({key: value for key, value in rig.items() if key not in {"switches", "trunk"}}))


@dataclass(frozen=True, slots=True)
class Judged:
    """What rigctl says of a case, in one line and with its evidence, and whether that is right."""

    mark: str
    said: str
    answer: str
    evidence: str


def _judged(case: Case, view: RunView) -> Judged:
    answer = document(view).findings[0].text
    if case.limits:
        cell = next(cell for cell in view.cells if cell.cell.traffic_class in {None, *list(case.flows)[:1]})
        mark = "right" if cell.limit in case.limits else "not named" if cell.limit in VAGUE else "WRONG"
        return Judged(mark, cell.limit, answer, cell.verdict.detail)
    tests = disturbances_of(view)
    phased = [stream for test in tests for stream in test.streams]
    said = {stream.name: NONE for stream in phased}
    said |= {found.victim.name: found.cause.name for test in tests for found in test.disturbances}
    marks = [_mark(cause, said.get(name, "no result")) for name, cause in case.truths.items()]
    evidence = "; ".join(
        f"{one.name}: loss {_phases(one.results, LOSS)} %, goodput {_phases(one.results, GOODPUT)} Mbit/s"
        for one in phased
    )
    told = ", ".join(f"{name} {cause}" for name, cause in said.items())
    return Judged("WRONG" if "WRONG" in marks else marks[0], told, answer, evidence)


def _mark(cause: str, said: str) -> str:
    if said == cause:
        return "right"
    return "not named" if cause != NONE and said in VAGUE else "WRONG"


def _phases(results: Any, figure: Any) -> str:
    values = (results[in_phase(figure, phase)] for phase in PHASES)
    return " → ".join("–" if value is None else f"{value:.2f}" for value in values)


def judge(store: Annotated[Path, typer.Option()], details: bool = False) -> None:
    """Judge what is stored by the rules as they are; print evidence of each case that is not right, or of all."""
    facts = _facts(store)
    with open_store(str(store)) as opened:
        runs = {opened.run(run).plan.title: run for run in opened.run_ids()}
        for title, cases in all_cases().items():
            judged = {
                case.name: _judged(case, read_view(opened, runs[case.name])) for case in cases if case.name in runs
            }
            heads = ("case", "the switch", "true", "said", "right?", "as designed")
            table(f"## {title}", heads, _rows(cases, judged, facts))
            marks = Counter(one.mark for one in judged.values())
            unmeasured = len(cases) - len(judged)
            print(f"\n{marks['right']} of {len(cases)} right, {marks['not named']} not named, {marks['WRONG']} wrong"
                  f"{f', {unmeasured} without result' if unmeasured else ''}\n")  # fmt: skip
            for name, one in judged.items():
                if details or one.mark != "right":
                    print(f"{name}: {one.mark}. {one.answer}.\n    {one.evidence}\n    {facts.get(name)}")


def _rows(cases: Sequence[Case], judged: Mapping[str, Judged], facts: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for case in cases:
        told, counted = judged.get(case.name), facts.get(case.name, {})
        true = " or ".join(case.limits) or ", ".join(f"{name} {cause}" for name, cause in case.truths.items())
        found = _differences(case, counted["drops"], counted["pauses"]) if "drops" in counted else ["not counted"]
        own = counted.get("node drops")
        found += [f"nodes dropped {own}"] * bool(own)
        said, mark = (told.said, told.mark) if told else ("no result", "–")
        yield case.name, case.why, true, said, mark, "; ".join(found) or "yes"


if __name__ == "__main__":
    command(__doc__, predict, measure, judge)
