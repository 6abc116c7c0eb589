"""The life of a night, on one page.

1. Nights that did not happen since the last one are found in the schedule, and one that began and never ended.
2. The night is stored as begun.
3. The scenario is run, ended at its deadline (`Work.measure`).
4. The run is judged, news are confirmed by a second measurement (`Work.judge`).
5. The night is stored with its outcome.
6. The site is published, if one is wanted (`Work.publish`); a failure becomes part of the message.
7. The message is sent (`Work.tell`), if the night was not quiet. One that could not be delivered is sent next time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import time, tzinfo
from typing import Protocol

from rigctl.base.errors import RigctlError
from rigctl.nightly.message import Message, message, sentence
from rigctl.nightly.schedule import MOST_MISSED, Item, State, due_times, latest_due, moment, next_due
from rigctl.records import Night, NightOutcome
from rigctl.store.history import History


@dataclass(frozen=True, slots=True)
class News:
    """News of a run: one sentence, and Markdown with the details."""

    headline: str
    markdown: str


class Work(Protocol):
    """The actions of a night outside of this process."""

    def measure(self, night: Night) -> Night:
        """Run the scenario. Return the night with what is known of it; without outcome, its run is to be judged."""
        ...

    def judge(self, run: str) -> News | None:
        """Return the news of a run. Raise `RigctlError` if that fails."""
        ...

    def publish(self) -> None:
        """Publish the site, if one is wanted. Raise `RigctlError` if that fails."""
        ...

    def tell(self, message: Message) -> None:
        """Send the message. Raise `RigctlError` if nobody could be told."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """A night that is over. `undelivered`, `unpublished`: why its message and its site are not."""

    night: Night
    message: Message | None
    undelivered: str | None = None
    unpublished: str | None = None


@dataclass(frozen=True, slots=True)
class Nightly:
    """The nights of a scenario on a rig, due at `at`."""

    scenario: str
    rig: str
    at: time
    zone: tzinfo | None = None  # None: the machine's


def one_night(nightly: Nightly, history: History, state: State, work: Work, now: Callable[[], float]) -> Done:
    """Run the most recent night that is due; if it has run already, start an unscheduled one."""
    due_at = _look_back(nightly, history, state, now())
    next_due_at = next_due(nightly.at, now(), nightly.zone)
    night = Night(nightly.scenario, nightly.rig, due_at, now(), None, None, None, None, next_due_at=next_due_at)
    history.put_night(night)
    state.save()
    try:
        night, markdown = _judge(work.measure(night), work)
    except BaseException as error:  # an end of rigctl itself ends the night, too: the next one reports it
        night = replace(night, outcome=NightOutcome.FAILED, reason=f"{error}".strip() or type(error).__name__)
        state.add(Item(due_at, sentence(night)))
        state.save()
        history.put_night(replace(night, ended_at=now()))
        raise
    night = replace(night, ended_at=now())
    history.put_night(night)
    if night.outcome is not NightOutcome.QUIET:
        state.add(Item(due_at, sentence(night), markdown))
    unpublished = _publish(night, state, work)
    state.save()
    return replace(_deliver(nightly, night, state, work), unpublished=unpublished)


def without_store(nightly: Nightly, error: RigctlError, state: State, work: Work, now_s: float) -> Done:
    """Report a night whose store cannot be used, which only its message tells."""
    due_at = latest_due(nightly.at, now_s, nightly.zone)
    reason = f"the store cannot be used: {error}"
    night = Night(nightly.scenario, nightly.rig, due_at, now_s, now_s, NightOutcome.FAILED, None, reason)
    if not any(item.due_at == due_at for item in state.pending):
        state.add(Item(due_at, sentence(night)))
    state.save()
    return _deliver(nightly, night, state, work)


def _look_back(nightly: Nightly, history: History, state: State, now_s: float) -> float:
    """Store how earlier nights ended, and return when this one is due."""
    due_at = latest_due(nightly.at, now_s, nightly.zone)
    nights = history.nights(nightly.scenario, nightly.rig)
    for night in nights:
        if night.outcome is None and night.began_at is not None:
            reason = f"it began at {moment(night.began_at, nightly.zone)} and never ended: rigctl nightly was killed"
            killed = replace(night, outcome=NightOutcome.FAILED, reason=reason)
            history.put_night(killed)
            state.add(Item(night.due_at, sentence(killed)))
    # A night that is stored as missed may be due only now, if a clock was ahead then.
    began = {night.due_at for night in nights if night.outcome is not NightOutcome.MISSED}
    looked_until = _looked_until(state, began, now_s)
    for due in due_times(nightly.at, looked_until, due_at, nightly.zone)[:-1][-MOST_MISSED:]:
        if due not in began:
            reason = "it did not begin: was the machine off, or nobody logged in?"
            missed = Night(nightly.scenario, nightly.rig, due, None, None, NightOutcome.MISSED, None, reason)
            history.put_night(missed)
            state.add(Item(due, sentence(missed)))
    by_hand = due_at <= looked_until or due_at in began
    state.looked_until = max(due_at, looked_until)
    return now_s if by_hand else due_at


def _looked_until(state: State, began: Iterable[float], now_s: float) -> float:
    """Return until when nights are accounted for: never later than now, however wrong the clock once was."""
    installed_at = min(state.installed_at, now_s)
    if state.looked_until <= now_s:
        return max(installed_at, state.looked_until)
    return max([installed_at, *(due_at for due_at in began if due_at <= now_s)])


def _judge(night: Night, work: Work) -> tuple[Night, str]:
    """Return the night with its outcome, and the Markdown of its news."""
    if night.run is None or night.outcome in {NightOutcome.OVERDUE, NightOutcome.BUSY}:
        return night, ""
    markdown = ""
    try:
        news = work.judge(night.run)
    except RigctlError as error:
        why = f"measured, but not judged: {error}"
        reason = why if night.reason is None else f"{night.reason}; {why}"
        night = replace(night, outcome=NightOutcome.FAILED, reason=reason)
    else:
        if news is not None:
            night, markdown = replace(night, news=news.headline), news.markdown
    if night.outcome is None:
        outcome = NightOutcome.UNEXPECTED if night.unmet else NightOutcome.NEWS if night.news else NightOutcome.QUIET
        night = replace(night, outcome=outcome)
    return night, markdown


def _publish(night: Night, state: State, work: Work) -> str | None:
    """Publish the site. Return the error text, which also goes into the night's message, or None."""
    try:
        work.publish()
    except RigctlError as error:
        why = f"the site was not published: {error}"
        tonight = next((item for item in state.pending if item.due_at == night.due_at), None)
        if tonight is None:
            state.add(Item(night.due_at, f"measured, nothing new, but {why}"))
        else:
            more = f"{tonight.markdown}\n\n{why[0].upper()}{why[1:]}"
            state.pending = [replace(item, markdown=more) if item is tonight else item for item in state.pending]
        return str(error)
    return None


def _deliver(nightly: Nightly, night: Night, state: State, work: Work) -> Done:
    if not state.pending:
        return Done(night, None)
    composed = message(nightly.scenario, nightly.rig, night, state.pending, nightly.zone)
    try:
        work.tell(composed)
    except RigctlError as error:
        return Done(night, composed, str(error))
    state.pending = []
    state.save()
    return Done(night, composed)
