"""The state that a run publishes while it measures; `rigctl display --json` prints it, too.

Any user of the machine can write such a file: it is checked when it is read, texts are cut and made printable.
"""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rigctl.base.texts import printable

MOST_TEXT: Final = 600
MOST_HISTORY: Final = 120
MOST_MESSAGES: Final = 20

Shown = Annotated[str, AfterValidator(lambda text: printable(text[:MOST_TEXT]))]
Mbps = Annotated[float, Field(ge=0, le=1e9)]
Seconds = Annotated[float, Field(ge=0, le=1e10)]
Count = Annotated[int, Field(ge=0, le=10**9)]


class Part(BaseModel):
    """A part of a state; fields that a later rigctl added are skipped."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Stream(Part):
    """A pair in one direction, in the test that is measured or was measured last."""

    name: Shown
    ceiling_mbps: Mbps | None = Field(None, description="As rigctl plan shows it; null: not known.")
    now_mbps: Mbps | None = Field(None, description="Received within the last second, as its receiver counted it.")
    history_mbps: tuple[Mbps, ...] = Field((), description="Of this repetition, one figure a second, the latest last.")
    measured_mbps: Mbps | None = Field(None, description="Goodput of the repetition that was finished last.")


class CurrentTest(Part):
    """The test that is measured, or was measured last."""

    number: Count
    settings: Shown
    repetition: Count
    repetitions: Count | None = Field(description="null: beyond the plan.")
    attempt: Count
    duration_s: Seconds
    gone_s: Seconds = Field(description="Since it began, its preparation included.")
    running: bool
    live: bool = Field(description="false: its engine, or its kind, reports no figures before its end.")


class Said(Part):
    """A message of the run."""

    level: Literal["ok", "note", "warning", "error"]
    text: Shown


class State(Part):
    """A run, as it was when it was written."""

    version: Literal[1] = 1
    pid: Annotated[int, Field(gt=0, lt=2**31)] = Field(description="Of the process that measures.")
    started: Annotated[int, Field(ge=0)] = Field(description="Field 22 of /proc/PID/stat.")
    rig: Shown
    scenario: Shown
    title: Shown
    run: Shown | None = Field(None, description="null: not stored yet.")
    began_at: float = Field(description="Unix time, as written_at.")
    written_at: float
    clock_s: Seconds = Field(description="CLOCK_MONOTONIC when it was written.")
    phase: Literal["preparing", "measuring", "ended"]
    outcome: Literal["complete", "partial", "interrupted", "failed"] | None = None
    tests: Count
    done: Count = Field(description="Repetitions that were measured …")
    total: Count = Field(description="… of those that are planned.")
    left_s: Seconds | None = Field(None, description="null: not known.")
    left_at_most: bool = False
    test: CurrentTest | None = None
    streams: tuple[Stream, ...] = ()
    messages: tuple[Said, ...] = Field((), description="The latest last.")
    results: tuple[Shown, ...] = Field((), description="After the run: the lines of `rigctl show`, 78 columns wide.")
