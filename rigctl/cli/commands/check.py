"""Check a rig before traffic: access, links, MTU of the paths, firewalls, settings.

Exit code 3 on an error.

Examples:
  rigctl check mylab.yaml
  rigctl check das2-quick --json
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from statistics import median
from types import SimpleNamespace
from typing import Annotated, Any, Final

import typer
from pydantic import AfterValidator, BeforeValidator
from rich.console import Console
from rich.text import Text

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import holder
from rigctl.base.texts import printable_lines
from rigctl.check.gather import gather_state
from rigctl.check.judge import check_answer, judge_state
from rigctl.cli.options import Json, RigOption, RigSets, Sets, complete_either
from rigctl.cli.output import InMbps, Model, Versioned, at, of, plain_console
from rigctl.findings import RUN, Finding, Severity, Weight
from rigctl.hosts.surroundings import Surroundings
from rigctl.paths.path_rules import numbers_of
from rigctl.paths.probing import Icmp, PathState
from rigctl.paths.state import NodeState, RigState
from rigctl.records import RunPlan
from rigctl.report.blocks import Column, Document, Entry, Row, Section, Table
from rigctl.report.printers.json import JsonFinding, finding_json
from rigctl.report.printers.terminal import print_document
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig, rig_names, rigs_folder
from rigctl.rig.schema import SOURCES_OF_NODES
from rigctl.scenario.load import Overrides, find_scenario, find_scenarios, load_plan
from rigctl.virtual.provide import provide
from rigctl.yamlfile.read import find_file, read_document

_STYLES: Final = {"error": "bold red", "warning": "bold magenta"}


def check_rig(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RIG|SCENARIO",
            help="A rig file, a scenario file, or a bundled name. If a name is both, the scenario is checked.",
            autocompletion=complete_either,
        ),
    ],
    rig: RigOption = None,
    rig_sets: RigSets = None,
    sets: Sets = None,
    every: Annotated[bool, typer.Option("--all", help="Show also the checks that passed.")] = False,
    as_json: Json = False,
) -> int:
    plan, inventory = _plan_and_rig(what, rig, tuple(rig_sets or ()), tuple(sets or ()))
    seen = asyncio.run(_gather(plan, inventory))
    findings = judge_state(seen)
    if as_json:
        print(_json(seen, findings))
    else:
        _print(seen, findings, plain_console(), every=every)
    return RigError.exit_code if any(finding.level is Severity.ERROR for finding in findings) else 0


def _plan_and_rig(
    what: str, rig: str | None, rig_sets: tuple[str, ...], sets: tuple[str, ...]
) -> tuple[RunPlan | None, Rig]:
    """Return the plan and the rig of a scenario, or None and the rig of a rig file. Raises `InputError`."""
    if what in rig_names() and what not in find_scenarios():
        path = find_file(what, what="rig", bundled=rigs_folder())
    else:
        try:
            path = find_scenario(what)
        except InputError as error:
            raise InputError(f"{error} Bundled rigs: {', '.join(rig_names())}.") from error
    if not set(SOURCES_OF_NODES) & read_document(path).data.keys():
        return load_plan(str(path), Overrides(rig, sets, rig_sets=rig_sets))
    if rig is not None or sets:
        raise InputError(f"{what}: is a rig file. --rig and --set are for scenarios; --rig-set is for both")
    return None, load_rig(str(path), sets=rig_sets)


async def _gather(plan: RunPlan | None, inventory: Rig) -> RigState:
    async with provide(inventory) as reachable:
        return await gather_state(reachable, plan, holder())


def _print(seen: RigState, findings: tuple[Finding, ...], console: Console, *, every: bool) -> None:
    print_document(_document(seen, findings), console)
    shown = [finding for finding in findings if every or finding.level is not Severity.OK]
    if shown:
        console.print()
    for finding in shown:
        level = finding.level.value
        console.print(Text.assemble((level, _STYLES.get(level, "")), f": {printable_lines(finding.text)}"))
        if finding.remedy is not None:
            console.print(Text(f"    {printable_lines(finding.remedy)}", style="dim"))
    if len(findings) > len(shown):
        console.print(Text(f"\nPassed: {len(findings) - len(shown)} checks; --all shows them.", style="dim"))


def _document(seen: RigState, findings: tuple[Finding, ...]) -> Document:
    """Return what `check` prints before the findings: one sentence with the result, and a table of nodes."""
    first = findings[0].level if findings else Severity.OK
    head = Finding("check", check_answer(findings, len(seen.nodes)), Weight.ANSWER, first, RUN)
    scenario = "" if seen.plan is None else f" for {seen.plan.scenario_name}"
    return Document(
        title=f"Check of {seen.rig.title}{scenario}",
        run="",
        about=(),
        notes="",
        findings=(head,),
        results=(Section("Nodes", (_table(seen),), brief=True),),
        sections=(),
        footer="",
    )


_COLUMNS: Final = (
    Column("Node", words=True),
    Column("Interface", words=True),
    Column("Link", words=True),
    Column("Rig file", "Mbit/s", "requested"),
    Column("Negotiated", "Mbit/s"),
    Column("MTU", "bytes"),
    Column("Path MTU out", "bytes"),
    Column("Path MTU in", "bytes"),
    Column("Round trip", "ms"),
)
_NEGOTIATED: Final = 4
"""Index of the column Negotiated, which is left out if no interface reports its speed."""


def _table(seen: RigState) -> Table:
    columns, rows = list(_COLUMNS), [_entries(node, seen) for node in seen.nodes.values()]
    if all(entries[_NEGOTIATED].value is None for entries in rows):
        columns.pop(_NEGOTIATED)
        for entries in rows:
            entries.pop(_NEGOTIATED)
    return Table(tuple(columns), tuple(Row(tuple(entries)) for entries in rows), label="Nodes")


def _entries(node: NodeState, seen: RigState) -> list[Entry]:
    out = [path for path in seen.paths if path.source == node.name]
    back = [path for path in seen.paths if path.destination == node.name]
    rtts = [path.rtt_us for path in out if path.rtt_us is not None]
    return [
        _entry(node.name),
        _entry(node.interface),
        _entry(_link(node)),
        _entry(node.node.link.rate_bps, 1e6),
        _entry(node.facts.get("speed_bps"), 1e6),
        _entry(node.facts.get("mtu")),
        _sizes(out),
        _sizes(back),
        _entry(round(median(rtts) / 1e3, 3) if rtts else None),
    ]


def _entry(value: float | str | None, unit: float = 1) -> Entry:
    scaled = value / unit if isinstance(value, int | float) else value
    return Entry("–" if scaled is None else f"{scaled:g}" if isinstance(scaled, float) else scaled, scaled)


def _link(node: NodeState) -> str | None:
    if node.facts.get("up") is False:
        return "down"
    carrier, duplex = node.facts.get("carrier"), node.facts.get("duplex")
    if carrier is None:
        return None
    return "none" if carrier == 0 else "up" if duplex is None else f"up, {duplex}"


def _sizes(paths: Sequence[PathState]) -> Entry:
    """Return the path MTU of these paths as a table entry, as `1400…1500` if they differ; `–` if unknown."""
    sizes = {path.largest for path in paths}
    known = sorted(size for size in sizes if size is not None)
    if not known:
        return Entry("none" if sizes else "–", None)
    first = "none" if None in sizes else str(known[0])
    return Entry(first if first == str(known[-1]) else f"{first}…{known[-1]}", tuple(known))


def _routes(around: Surroundings | None) -> list[dict[str, Any]]:
    routes = around.routes.values() if around is not None else ()
    return [{"to": route.peer, "device": route.device, "via": route.via, "mtu": route.mtu} for route in routes]


_RoundedS = Annotated[float, AfterValidator(partial(round, ndigits=3))]


class CheckedNode(Model):
    """State of a node. docs/reference/host-facts.md explains the keys of `facts`; null is unknown."""

    node: str = at("name")
    address: str | None
    interface: str | None
    failure: Annotated[str | None, of("text")]
    machine: str | None
    clock_ahead_s: list[_RoundedS] | None
    clock_error_s: float | None
    rx_mbps: Annotated[InMbps | None, of("rx_bps")] = at("around")
    tx_mbps: Annotated[InMbps | None, of("tx_bps")] = at("around")
    routes: Annotated[list[dict[str, Any]], BeforeValidator(_routes)] = at("around")
    facts: dict[str, Any]


def _sort_refused(sizes: Mapping[int, str]) -> dict[str, str]:
    return {str(size): name for size, name in sorted(sizes.items())}


def _icmp(errors: Iterable[Icmp]) -> list[dict[str, Any]]:
    ordered = sorted(errors, key=str)
    return [{"type": each.type, "code": each.code, "mtu": each.mtu, "from": each.sender} for each in ordered]


class CheckedPath(Model):
    """State of a path. `tcp` is "0" (connection accepted), an errno name, or null (no answer)."""

    source: str = at("path.source")
    destination: str = at("path.destination")
    port: int | None = at("path.port")
    tcp: str | None = at("path.stream")
    rtt_us: int | None = at("path.rtt_us")
    path_mtu_bytes: int | None
    icmp_payload_bytes: int | None
    ethernet_frame_bytes: int | None
    wanted_bytes: int = at("path.wanted")
    refused: Annotated[dict[str, str], BeforeValidator(_sort_refused)] = at("path.refused")
    icmp: Annotated[list[dict[str, Any]], BeforeValidator(_icmp)] = at("path.icmp")


_SIZES: Final = ("path_mtu_bytes", "icmp_payload_bytes", "ethernet_frame_bytes")


def _path(path: PathState) -> SimpleNamespace:
    sizes = numbers_of(path.largest, path.version) if path.largest is not None else {}
    return SimpleNamespace(path=path, **{name: sizes.get(name) for name in _SIZES})


class CheckDocument(Versioned):
    """Result of a check. `findings` has errors first, then warnings and notes, then the checks that passed (ok)."""

    rig: str
    scenario: str | None
    answer: str
    errors: int
    warnings: int
    findings: list[Annotated[JsonFinding, BeforeValidator(finding_json)]]
    nodes: list[CheckedNode]
    paths: list[Annotated[CheckedPath, BeforeValidator(_path)]]


def _json(seen: RigState, findings: tuple[Finding, ...]) -> str:
    levels = [finding.level for finding in findings]
    return CheckDocument.text_of(
        indent=1,
        rig=seen.rig.name,
        scenario=None if seen.plan is None else seen.plan.scenario_name,
        answer=check_answer(findings, len(seen.nodes)),
        errors=levels.count(Severity.ERROR),
        warnings=levels.count(Severity.WARNING),
        findings=findings,
        nodes=list(seen.nodes.values()),
        paths=seen.paths,
    )
