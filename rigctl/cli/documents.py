"""What `runs --json`, `plan --json` and `rig init --json` print, as models: the JSON Schemas follow from them.

docs/reference/json.md explains them. Fields may be added; none is renamed or removed while `version` stays the same.
null is unknown, never 0.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import Field

from rigctl.cli.json_model import Instant, Model, instant
from rigctl.cli.runs_table import Listed
from rigctl.discovery.draft import Draft, Found
from rigctl.records import Cell, Expectation, RunPlan
from rigctl.rig.inventory import Rig
from rigctl.scenario.forecast import bound, forecasts, notes, sum_ceiling_bps, total_s
from rigctl.settings import CONDITION, PAIRS, SETTINGS

_NOT_SETTINGS: Final = (PAIRS, CONDITION)  # fields beside the settings of a test


class StoredRun(Model):
    """One stored run."""

    run: str = Field(description="Id of the run.")
    title: str
    scenario: str = Field(description="The scenario's name, without folder and ending.")
    rig: str
    virtual: Literal["namespaces", "loopback", "machines"] | None = Field(description="null: real hardware.")
    status: Literal["running", "died", "complete", "partial", "interrupted"] = Field(
        description="died: it was never finished, and the process that measured it is gone."
    )
    started_at: Instant
    ended_at: Instant | None
    tests: int = Field(description="Number of tests.")
    measured: dict[str, int] = Field(description="Tests with a repetition of a status: ok, invalid, failed, …")
    overrides: list[str] = Field(description="Options of the run.")
    tags: dict[str, str] = Field(description="By name; those that begin with rigctl. are its own.")


class RunsDocument(Model):
    """The stored runs, the earliest first."""

    version: Literal[1] = 1
    runs: list[StoredRun]
    damaged: list[str] = Field(description="A message for each run that can't be read.")


class PlannedPair(Model):
    """A pair of a test."""

    source: str
    destination: str
    payload_bytes: int | None = Field(description="Of a full segment, or of a datagram.")
    ceiling_mbps: float | None = Field(description="Highest goodput of this pair by itself, each direction.")


class Expected(Model):
    """A bound of a figure, or the bottlenecks that are expected."""

    figure: str = Field(description="As in the scenario: goodput.")
    expected: str = Field(description="As in the scenario: >= 930M per pair.")
    column: str = Field(description="docs/reference/columns.md: goodput_mbps.")
    bound: float | None = Field(description="In the unit of the column; null: words are expected.")
    words: list[str]
    per_pair: bool


class PlannedTest(Model):
    """One test: a point of the matrix."""

    test: int = Field(description="Number of the test, from 1.")
    kind: str = Field(description="tcp, udp, pingpong, blast or file.")
    condition: str | None
    duration_s: float
    omit_s: float
    settings: dict[str, Any] = Field(description="Values of the axes; null: the node's default.")
    pairs: list[PlannedPair]
    ceiling_mbps: float | None = Field(description="Highest goodput of all pairs at once, in one direction.")
    expected: list[Expected] = Field(description="What the scenario expects of it.")


class Variants(Model):
    """Of a run with --against."""

    setting: str = Field(description="An axis, condition among them.")
    before: str
    after: str


class PlanDocument(Model):
    """What a run of a scenario would measure."""

    version: Literal[1] = 1
    title: str
    notes: str
    scenario: str
    rig: str
    virtual: Literal["namespaces", "loopback", "machines"] | None = Field(description="null: real hardware.")
    ip_version: Literal[4, 6]
    repeat: int
    total_s: float = Field(description="Seconds of traffic, without preparation.")
    total_is: Literal["exact", "at least", "at most", "about"]
    against: Variants | None = Field(description="Two variants of every test, in turn; null: no comparison.")
    tests: list[PlannedTest]
    remarks: list[str] = Field(description="What the ceilings assume.")


class RigNode(Model):
    """A host that became a node."""

    node: str
    host: str = Field(description="As it was named.")
    machine: str | None
    os: str | None
    virtual_machine: bool | None
    root: Literal["login", "sudo", "password", "absent", "refused"] = Field(
        description="login: the SSH user is root; sudo: sudo -n works; else why not."
    )
    data_interface: str | None
    data_address: str | None
    why: str = Field(description="Why data flow there.")
    driver: str | None
    rate_mbps: float | None
    duplex: str | None
    mtu: int | None
    switch: str | None
    switch_port: str | None
    port_unknown: str | None = Field(description="Why the switch's port is not in the file.")


class LeftOutHost(Model):
    """A host that did not become a node."""

    host: str
    reason: str


class RigInitDocument(Model):
    """What `rig init` found and wrote."""

    version: Literal[1] = 1
    file: str
    nodes: list[RigNode]
    left_out: list[LeftOutHost]
    notes: list[str]


def rig_init_json(draft: Draft, file: str) -> str:
    document = RigInitDocument(
        file=file,
        nodes=[_rig_node(node) for node in draft.nodes],
        left_out=[LeftOutHost(host=each.target.text, reason=each.reason) for each in draft.left_out],
        notes=list(draft.notes),
    )
    return document.model_dump_json(indent=2)


def _rig_node(node: Found) -> RigNode:
    interface = node.path.interface
    sudo = node.host.sudo
    return RigNode(
        node=node.name,
        host=node.target.text,
        machine=node.host.machine,
        os=node.host.os,
        virtual_machine=node.host.is_virtual,
        root="login" if sudo is None else "sudo" if sudo == "granted" else sudo,
        data_interface=interface.name if interface else None,
        data_address=node.path.address,
        why=node.path.why,
        driver=interface.driver if interface else None,
        rate_mbps=_mbps(interface.speed_bps) if interface else None,
        duplex=interface.duplex if interface else None,
        mtu=interface.mtu if interface else None,
        switch=node.switch,
        switch_port=node.port.port if node.port else None,
        port_unknown=node.no_port,
    )


def runs_json(runs: Sequence[Listed], damaged: Sequence[str]) -> str:
    document = RunsDocument(runs=[_stored(listed) for listed in runs], damaged=list(damaged))
    return document.model_dump_json(indent=2)


def plan_json(plan: RunPlan, rig: Rig) -> str:
    asked: dict[int, list[Expectation]] = {}
    for expectation in plan.expectations:
        for number in expectation.tests:
            asked.setdefault(number, []).append(expectation)
    document = PlanDocument(
        title=plan.title,
        notes=plan.notes,
        scenario=plan.scenario_name,
        rig=rig.name,
        virtual=rig.virtual,
        ip_version=rig.ip_version,
        repeat=plan.repeat,
        total_s=total_s(plan),
        total_is=bound(plan) or "exact",
        against=variants_of(plan),
        tests=[_planned(cell, plan, asked.get(cell.number, ())) for cell in plan.cells],
        remarks=notes(plan, plan.ip_version),
    )
    return document.model_dump_json(indent=2)


def _stored(listed: Listed) -> StoredRun:
    info = listed.info
    return StoredRun(
        run=info.run,
        title=info.plan.title,
        scenario=info.plan.scenario_name,
        rig=info.plan.rig_name,
        virtual=info.plan.virtual,
        status="died" if listed.died else str(info.status),
        started_at=instant(info.started_at),
        ended_at=None if info.ended_at is None else instant(info.ended_at),
        tests=len(info.plan.cells),
        measured=dict(listed.measured),
        overrides=list(info.plan.overrides),
        tags=dict(sorted(info.tags.items())),
    )


def variants_of(plan: RunPlan) -> Variants | None:
    found = plan.against
    return None if found is None else Variants(setting=found.setting, before=found.before, after=found.after)


def _planned(cell: Cell, plan: RunPlan, asked: Sequence[Expectation]) -> PlannedTest:
    expected = forecasts(cell, plan, plan.ip_version)
    return PlannedTest(
        test=cell.number,
        kind=cell.test,
        condition=cell.condition,
        duration_s=cell.duration_s,
        omit_s=cell.omit_s,
        settings={name: cell[setting] for name, setting in SETTINGS.items() if setting not in _NOT_SETTINGS},
        pairs=[
            PlannedPair(
                source=forecast.pair.source,
                destination=forecast.pair.destination,
                payload_bytes=forecast.mss,
                ceiling_mbps=_mbps(forecast.ceiling_bps),
            )
            for forecast in expected
        ],
        ceiling_mbps=_mbps(sum_ceiling_bps(expected, plan)),
        expected=[
            Expected(
                figure=each.name,
                expected=each.text,
                column=each.column,
                bound=each.bound,
                words=list(each.words),
                per_pair=each.per_pair,
            )
            for each in asked
        ],
    )


def _mbps(rate_bps: float | None) -> float | None:
    return None if rate_bps is None else round(rate_bps / 1e6, 3)
