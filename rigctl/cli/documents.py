"""What `runs --json` and `plan --json` print, as models: docs/json.md explains them, the JSON Schemas follow from them.

Fields may be added; none is renamed or removed while `version` stays the same. null is unknown, never 0.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from rigctl.cli.runs_table import Listed
from rigctl.records import Cell, RunPlan
from rigctl.rig.inventory import Rig
from rigctl.scenario.axes import AXES
from rigctl.scenario.forecast import bound, forecasts, notes, setting, sum_ceiling_bps, total_s

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_NOT_SETTINGS: Final = ("pairs", "condition")  # fields beside the settings of a test


class _Model(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


class StoredRun(_Model):
    """One stored run."""

    run: str = Field(description="Id of the run.")
    title: str
    scenario: str = Field(description="The scenario's name, without folder and ending.")
    rig: str
    virtual: Literal["namespaces", "loopback"] | None = Field(description="null: real hardware.")
    status: Literal["running", "died", "complete", "partial", "interrupted"] = Field(
        description="died: it was never finished, and the process that measured it is gone."
    )
    started_at: Instant
    ended_at: Instant | None
    tests: int = Field(description="Number of tests.")
    measured: dict[str, int] = Field(description="Tests with a repetition of a status: ok, invalid, failed, …")
    overrides: list[str] = Field(description="Options of the run.")


class RunsDocument(_Model):
    """The stored runs, the earliest first."""

    version: Literal[1] = 1
    runs: list[StoredRun]
    damaged: list[str] = Field(description="A message for each run that can't be read.")


class PlannedPair(_Model):
    """A pair of a test."""

    source: str
    destination: str
    payload_bytes: int | None = Field(description="Of a full segment, or of a datagram.")
    ceiling_mbps: float | None = Field(description="Highest goodput of this pair by itself, each direction.")


class PlannedTest(_Model):
    """One test: a point of the matrix."""

    test: int = Field(description="Number of the test, from 1.")
    kind: str = Field(description="tcp, udp, pingpong, blast or file.")
    condition: str | None
    duration_s: float
    omit_s: float
    settings: dict[str, Any] = Field(description="Values of the axes; null: the node's default.")
    pairs: list[PlannedPair]
    ceiling_mbps: float | None = Field(description="Highest goodput of all pairs at once, in one direction.")


class PlanDocument(_Model):
    """What a run of a scenario would measure."""

    version: Literal[1] = 1
    title: str
    notes: str
    scenario: str
    rig: str
    virtual: Literal["namespaces", "loopback"] | None = Field(description="null: real hardware.")
    ip_version: Literal[4, 6]
    repeat: int
    total_s: float = Field(description="Seconds of traffic, without preparation.")
    total_is: Literal["exact", "at least", "at most", "about"]
    tests: list[PlannedTest]
    remarks: list[str] = Field(description="What the ceilings assume.")


def runs_json(runs: Sequence[Listed], damaged: Sequence[str]) -> str:
    document = RunsDocument(runs=[_stored(listed) for listed in runs], damaged=list(damaged))
    return document.model_dump_json(indent=2)


def plan_json(plan: RunPlan, rig: Rig) -> str:
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
        tests=[_planned(cell, plan) for cell in plan.cells],
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
        started_at=_instant(info.started_at),
        ended_at=None if info.ended_at is None else _instant(info.ended_at),
        tests=len(info.plan.cells),
        measured=dict(listed.measured),
        overrides=list(info.plan.overrides),
    )


def _planned(cell: Cell, plan: RunPlan) -> PlannedTest:
    expected = forecasts(cell, plan, plan.ip_version)
    return PlannedTest(
        test=cell.number,
        kind=cell.test,
        condition=cell.condition,
        duration_s=cell.duration_s,
        omit_s=cell.omit_s,
        settings={name: setting(cell, name) for name in AXES if name not in _NOT_SETTINGS},
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
    )


def _mbps(rate_bps: float | None) -> float | None:
    return None if rate_bps is None else round(rate_bps / 1e6, 3)


def _instant(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
