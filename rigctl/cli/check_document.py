"""What `rigctl check` prints: the table of nodes, and everything as JSON (docs/reference/json.md has the schema)."""

import json
from collections.abc import Sequence
from statistics import median
from typing import Any, Final, Literal

from typing_extensions import TypedDict  # docs/json_schemas.py: before Python 3.12 pydantic wants this one

from rigctl.check.judge import answer
from rigctl.check.paths import PathSeen
from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.reach import numbers_of
from rigctl.findings import RUN, Finding, Severity, Weight
from rigctl.report.blocks import Column, Document, Entry, Row, Section, Table
from rigctl.report.printers.json import JsonFinding, finding_as_json

_OF_HARDWARE: Final = "Negotiated"
"""The column that only hardware fills."""


class CheckedNode(TypedDict):
    """One node. `facts`: docs/reference/host-facts.md, with those that only a check asks for; null is unknown."""

    node: str
    address: str | None
    interface: str | None
    failure: str | None
    machine: str | None
    clock_ahead_s: list[float] | None
    clock_error_s: float | None
    rx_mbps: float | None
    tx_mbps: float | None
    routes: list[dict[str, Any]]
    facts: dict[str, Any]


class CheckedPath(TypedDict):
    """One direction between two nodes. `tcp`: "0" is accepted, else an errno name; null: no answer."""

    source: str
    destination: str
    port: int | None
    tcp: str | None
    rtt_us: int | None
    path_mtu_bytes: int | None
    icmp_payload_bytes: int | None
    ethernet_frame_bytes: int | None
    wanted_bytes: int
    refused: dict[str, str]
    icmp: list[dict[str, Any]]


class CheckDocument(TypedDict):
    """A check: findings with the heaviest first, those that are in order included."""

    version: Literal[1]
    rig: str
    scenario: str | None
    answer: str
    errors: int
    warnings: int
    findings: list[JsonFinding]
    nodes: list[CheckedNode]
    paths: list[CheckedPath]


def check_json(seen: Seen, findings: tuple[Finding, ...]) -> str:
    whole: CheckDocument = {
        "version": 1,
        "rig": seen.rig.name,
        "scenario": None if seen.plan is None else seen.plan.scenario_name,
        "answer": answer(findings, len(seen.nodes)),
        "errors": sum(finding.level is Severity.ERROR for finding in findings),
        "warnings": sum(finding.level is Severity.WARNING for finding in findings),
        "findings": [finding_as_json(finding) for finding in findings],
        "nodes": [_node(each) for each in seen.nodes.values()],
        "paths": [_path(path) for path in seen.paths],
    }
    return json.dumps(whole, ensure_ascii=False, indent=1)


def check_document(seen: Seen, findings: tuple[Finding, ...]) -> Document:
    """The answer and the table of nodes; findings are printed by their command."""
    first = findings[0].level if findings else Severity.OK
    head = Finding(answer(findings, len(seen.nodes)), Weight.ANSWER, first, RUN)
    of = "" if seen.plan is None else f" for {seen.plan.scenario_name}"
    return Document(
        title=f"Check of {seen.rig.title}{of}",
        run="",
        about=(),
        notes="",
        findings=(head,),
        results=(Section("Nodes", (_table(seen),)),),
        sections=(),
        footer="",
    )


def _table(seen: Seen) -> Table:
    columns = (
        Column("Node", words=True),
        Column("Interface", words=True),
        Column("Link", words=True),
        Column("Rig file", "Mbit/s", "requested"),
        Column(_OF_HARDWARE, "Mbit/s"),
        Column("MTU", "bytes"),
        Column("Path MTU out", "bytes"),
        Column("Path MTU in", "bytes"),
        Column("Round trip", "ms"),
    )
    rows = [_entries(each, seen) for each in seen.nodes.values()]
    kept = [number for number, column in enumerate(columns) if column.title != _OF_HARDWARE or _known(number, rows)]
    made = tuple(Row(tuple(entries[number] for number in kept)) for entries in rows)
    return Table(tuple(columns[number] for number in kept), made, label="Nodes")


def _known(number: int, rows: Sequence[tuple[Entry, ...]]) -> bool:
    return any(entries[number].value is not None for entries in rows)


def _entries(each: NodeSeen, seen: Seen) -> tuple[Entry, ...]:
    out = [path for path in seen.paths if path.source == each.name]
    back = [path for path in seen.paths if path.destination == each.name]
    rtts = [path.rtt_us for path in out if path.rtt_us is not None]
    rtt_ms = median(rtts) / 1e3 if rtts else None
    words = (each.interface, _link(each))
    return (
        _words(each.name),
        *(_words(word) for word in words),
        _mbps(each.node.link.rate_bps),
        _mbps(each.facts.get("speed_bps")),
        _number(each.facts.get("mtu")),
        _sizes(out),
        _sizes(back),
        _number(None if rtt_ms is None else round(rtt_ms, 3)),
    )


def _link(each: NodeSeen) -> str | None:
    if each.facts.get("up") is False:
        return "down"
    carrier, duplex = each.facts.get("carrier"), each.facts.get("duplex")
    if carrier is None:
        return None
    return "none" if carrier == 0 else "up" if duplex is None else f"up, {duplex}"


def _sizes(paths: Sequence[PathSeen]) -> Entry:
    """One size, or the smallest and the largest."""
    sizes = [path.largest for path in paths]
    known = sorted({size for size in sizes if size is not None})
    none = "none" if paths and None in sizes else "–"
    if not known:
        return Entry(none, None)
    text = str(known[0]) if len(known) == 1 else f"{known[0]}…{known[-1]}"
    return Entry(f"{none}…{known[-1]}" if None in sizes else text, tuple(known))


def _words(word: str | None) -> Entry:
    return Entry(word or "–", word)


def _number(value: float | None) -> Entry:
    return Entry("–" if value is None else f"{value:g}", value)


def _mbps(rate_bps: float | None) -> Entry:
    return _number(None if rate_bps is None else rate_bps / 1e6)


def _node(each: NodeSeen) -> CheckedNode:
    around = each.around
    ways = around.routes.values() if around is not None else ()
    return {
        "node": each.name,
        "address": each.address,
        "interface": each.interface,
        "failure": None if each.failure is None else each.failure.text,
        "machine": each.machine,
        "clock_ahead_s": None if each.clock_ahead_s is None else [round(end, 3) for end in each.clock_ahead_s],
        "clock_error_s": each.clock_error_s,
        "rx_mbps": _in_mbps(around.rx_bps if around is not None else None),
        "tx_mbps": _in_mbps(around.tx_bps if around is not None else None),
        "routes": [{"to": way.peer, "device": way.device, "via": way.via, "mtu": way.mtu} for way in ways],
        "facts": each.facts,
    }


def _in_mbps(rate_bps: float | None) -> float | None:
    return None if rate_bps is None else round(rate_bps / 1e6, 3)


def _path(path: PathSeen) -> CheckedPath:
    sizes = numbers_of(path.largest, path.version) if path.largest is not None else {}
    errors = sorted(path.icmp, key=str)
    return {
        "source": path.source,
        "destination": path.destination,
        "port": path.port,
        "tcp": path.stream,
        "rtt_us": path.rtt_us,
        "path_mtu_bytes": sizes.get("path_mtu_bytes"),
        "icmp_payload_bytes": sizes.get("icmp_payload_bytes"),
        "ethernet_frame_bytes": sizes.get("ethernet_frame_bytes"),
        "wanted_bytes": path.wanted,
        "refused": {str(size): name for size, name in sorted(path.refused.items())},
        "icmp": [{"type": e.type, "code": e.code, "mtu": e.mtu, "from": e.sender} for e in errors],
    }
