"""The steps of a night, on one page.

1. Find nights in the schedule that did not happen, and a night that began but never ended.
2. Store the night as begun.
3. Run the scenario, with a deadline (`Commands.measure`).
4. Compare the run with earlier nights; a second measurement confirms changes (`Commands.judge`).
5. Store the night with its outcome.
6. Publish the site, if one is set (`Commands.publish`); a failure goes into the message.
7. If there is news, send the message (`Commands.tell`). An undelivered message is sent with the next one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rigctl.base.errors import RigctlError
from rigctl.nightly.commands import Commands
from rigctl.nightly.message import Message, message, night_sentence
from rigctl.nightly.schedule import MOST_MISSED, Item, NightlyState, due_times, latest_due, moment, next_due
from rigctl.nightly.settings import NightlySettings
from rigctl.records import Night, NightOutcome
from rigctl.store.store import History


@dataclass(frozen=True, slots=True)
class Done:
    """A finished night. `undelivered` and `unpublished` are the errors of message and site, None if successful."""

    night: Night
    message: Message | None
    undelivered: str | None = None
    unpublished: str | None = None


def one_night(work: Commands, history: History, state: NightlyState, now: Callable[[], float]) -> Done:
    """Run the latest due night and return it; if that night has run already, run an unscheduled one."""
    due_at = _look_back(work.settings, history, state, now())
    next_due_at = next_due(work.settings.at, now())
    night = Night(*work.settings.stored_as, due_at, now(), None, None, None, None, next_due_at=next_due_at)
    history.put_night(night)
    state.save()
    try:
        night, markdown = _judge(work.measure(night), work)
    except BaseException as error:  # even Ctrl-C ends the night, and the next night reports it
        night = replace(night, outcome=NightOutcome.FAILED, reason=f"{error}".strip() or type(error).__name__)
        state.add(Item(due_at, night_sentence(night)))
        state.save()
        history.put_night(replace(night, ended_at=now()))
        raise
    night = replace(night, ended_at=now())
    history.put_night(night)
    if night.outcome is not NightOutcome.QUIET:
        state.add(Item(due_at, night_sentence(night), markdown))
    unpublished = _publish(night, state, work)
    state.save()
    return replace(_deliver(night, state, work), unpublished=unpublished)


def without_store(work: Commands, error: RigctlError, state: NightlyState, now_s: float) -> Done:
    """Send the message on a night that failed because its store cannot be used; return the night."""
    due_at = latest_due(work.settings.at, now_s)
    reason = f"the store cannot be used: {error}"
    night = Night(*work.settings.stored_as, due_at, now_s, now_s, NightOutcome.FAILED, None, reason)
    if not any(item.due_at == due_at for item in state.pending):
        state.add(Item(due_at, night_sentence(night)))
    state.save()
    return _deliver(night, state, work)


def _look_back(settings: NightlySettings, history: History, state: NightlyState, now_s: float) -> float:
    """Store earlier nights that were killed or missed. Return this night's due time, or `now_s` if unscheduled."""
    due_at = latest_due(settings.at, now_s)
    nights = history.nights(*settings.stored_as)
    for night in nights:
        if night.outcome is None and night.began_at is not None:
            reason = f"it began at {moment(night.began_at)} and never ended: rigctl nightly was killed"
            killed = replace(night, outcome=NightOutcome.FAILED, reason=reason)
            history.put_night(killed)
            state.add(Item(night.due_at, night_sentence(killed)))
    # A night may have been stored as missed before it was due, by a clock that was ahead.
    began = {night.due_at for night in nights if night.outcome is not NightOutcome.MISSED}
    looked_until = _time_of_last_look(state, began, now_s)
    for due in due_times(settings.at, looked_until, due_at)[:-1][-MOST_MISSED:]:
        if due not in began:
            reason = "the run did not start; the machine may have been off, or the user not logged in"
            missed = Night(*settings.stored_as, due, None, None, NightOutcome.MISSED, None, reason)
            history.put_night(missed)
            state.add(Item(due, night_sentence(missed)))
    by_hand = due_at <= looked_until or due_at in began
    state.looked_until = max(due_at, looked_until)
    return now_s if by_hand else due_at


def _time_of_last_look(state: NightlyState, began: Iterable[float], now_s: float) -> float:
    """Return the time up to which all due nights began or are stored as missed; at most `now_s`."""
    installed_at = min(state.installed_at, now_s)
    if state.looked_until <= now_s:
        return max(installed_at, state.looked_until)
    return max([installed_at, *(due_at for due_at in began if due_at <= now_s)])


def _judge(night: Night, work: Commands) -> tuple[Night, str]:
    if night.run is None or night.outcome in {NightOutcome.OVERDUE, NightOutcome.BUSY}:
        return night, ""
    markdown = ""
    try:
        if (news := work.judge(night.run)) is not None:
            night, markdown = replace(night, news=news.headline), news.markdown
    except RigctlError as error:
        why = f"measured, but not judged: {error}"
        reason = why if night.reason is None else f"{night.reason}; {why}"
        night = replace(night, outcome=NightOutcome.FAILED, reason=reason)
    if night.outcome is None:
        outcome = NightOutcome.UNEXPECTED if night.unmet else NightOutcome.NEWS if night.news else NightOutcome.QUIET
        night = replace(night, outcome=outcome)
    return night, markdown


def _publish(night: Night, state: NightlyState, work: Commands) -> str | None:
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


def _deliver(night: Night, state: NightlyState, work: Commands) -> Done:
    if not state.pending:
        return Done(night, None)
    composed = message(night, state.pending)
    try:
        work.tell(composed)
    except RigctlError as error:
        return Done(night, composed, str(error))
    state.pending = []
    state.save()
    return Done(night, composed)
