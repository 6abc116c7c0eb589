"""`rigctl nightly status`: a sentence on each nightly, its last nights (docs/schemas/nightly-status.schema.json)."""

import time
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from rigctl.base.errors import RigctlError
from rigctl.cli.documents import Instant, Model, at
from rigctl.nightly import install, settings
from rigctl.nightly.night import sentence
from rigctl.nightly.schedule import date_of, moment, next_due
from rigctl.nightly.settings import Settings
from rigctl.records import Night, NightOutcome
from rigctl.report.words.text import plural
from rigctl.store import NoStoreError, open_store

SHOWN: Final = 14
_WORDS: Final = {
    NightOutcome.QUIET: "nothing new",
    NightOutcome.NEWS: "news",
    NightOutcome.UNEXPECTED: "not as expected",
    NightOutcome.FAILED: "failed",
    NightOutcome.OVERDUE: "ended at its deadline",
    NightOutcome.BUSY: "the rig was in use",
    NightOutcome.MISSED: "missed",
}


class UnmetBound(Model):
    """A missed expectation."""

    bound: str = Field(description="As in the scenario, the same every night.")
    text: str = Field(description="What was measured.")


class NightStatus(Model):
    """One night."""

    due_at: Instant
    began_at: Instant | None
    ended_at: Instant | None
    outcome: Literal["quiet", "news", "not-as-expected", "failed", "overdue", "busy", "missed"] | None = Field(
        description="The most urgent of what follows. null: it is running, or was killed."
    )
    run: str | None
    reason: str | None = Field(description="Why it was not measured, or only in part.")
    unmet: list[UnmetBound] = Field(description="Bounds of expect: that it missed.")
    news: str | None = Field(description="The largest change, as `rigctl regress` tells it.")


class NightlyStatus(Model):
    """One nightly."""

    name: str
    scenario: str = at("own.scenario")
    rig: str = at("own.rig")
    answer: str = Field(description="One sentence.")
    next_due_at: Instant
    timer: Annotated[
        Literal["active", "inactive", "none"],
        BeforeValidator(lambda active: {True: "active", False: "inactive", None: "none"}[active]),
    ] = at("active", "none: cron starts it, or nothing does.")
    undelivered: int = at("untold", "Nights whose message could not be delivered yet.")
    nights: list[NightStatus] = Field(description="The latest first.")


class StatusDocument(Model):
    """The nightlies of this user."""

    version: Literal[1] = 1
    nightlies: list[NightlyStatus]
    damaged: list[str] = Field(description="A message for each whose settings, state or store can't be read.")


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    own: Settings
    nights: list[Night]  # the latest first
    untold: int
    active: bool | None
    damage: str | None

    @property
    def next_due_at(self) -> float:
        return next_due(self.own.at, time.time())

    @property
    def answer(self) -> str:
        last = "has not run yet"
        if self.nights:
            night = self.nights[0]
            became = _WORDS[night.outcome] if night.outcome else "is running, or was killed"
            last = f"last night ({date_of(night.due_at)}): {became}"
        untold = f"; {plural(self.untold, 'night is', 'nights are')} still to be reported" if self.untold else ""
        stopped = "; its timer does not run" if self.active is False else ""
        return f"{self.name}: {last}; next: {moment(self.next_due_at)}{untold}{stopped}."


def show(name: str | None, *, as_json: bool) -> None:
    """Print the status of one nightly, or of all. Raises `InputError` if `name` is not installed."""
    known: list[_Known] = []
    damaged: list[str] = []
    if name is not None:
        settings.load(name)
    for each in [name] if name is not None else settings.names():
        try:
            known.append(_look(each))
            damaged += [f"{each}: {known[-1].damage}"] if known[-1].damage else []
        except RigctlError as error:
            damaged.append(f"{each}: {error}")
    if as_json:
        print(StatusDocument.text_of(nightlies=known, damaged=damaged))
        return
    if not known and not damaged:
        print("No nightly is installed: rigctl nightly install SCENARIO --rig RIG --at 02:30")
    for own in known:
        print(own.answer)
        for night in own.nights:
            word = str(night.outcome) if night.outcome else "unknown"
            told = " ".join(text for text in (night.run, sentence(night)) if text)
            print(f"  {date_of(night.due_at)}  {word:<15} {told}".rstrip())
    for message in damaged:
        print(message)


def _look(name: str) -> _Known:
    own, now_s = settings.load(name), time.time()
    try:
        with open_store(own.store, create=False) as store:
            nights = [night for night in store.history.nights(*own.stored_as)[::-1] if night.due_at <= now_s]
    except NoStoreError:  # it has not run yet
        nights = []
    state = install.state(name, now_s)
    return _Known(name, own, nights[:SHOWN], len(state.pending), install.timer_active(name), state.damage)
