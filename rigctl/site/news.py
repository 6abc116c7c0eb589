"""News of a course: changes by the night in which each was found, missed bounds, nights not measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.nights.regressions import Regressions
from rigctl.analysis.nights.shifts import Shift
from rigctl.report.nights.page import sentence
from rigctl.report.words.text import plural
from rigctl.site.names import Course, page_of_run
from rigctl.site.nights import Slot, State

_MOST: Final = 180
"""Characters of a headline; its sentences are whole."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of news. `key` tells it from all others, for ever; `page` is where it leads."""

    key: str
    at: float  # Unix seconds
    course: Course
    state: State
    title: str
    sentences: tuple[str, ...]
    page: str


def found_in(regressions: Regressions) -> dict[str, tuple[Shift, ...]]:
    """Of each run whose night showed changes first, these, the largest first."""
    found: dict[str, list[Shift]] = {}
    for shift in regressions.history:
        found.setdefault(regressions.nights.runs[shift.found].run, []).append(shift)
    return {run: tuple(sorted(own, key=lambda shift: -shift.weight)) for run, own in found.items()}


def headlines(found: Mapping[str, Sequence[Shift]]) -> dict[str, str]:
    """Of each of these runs a sentence on the largest change."""
    more = {run: f", and {plural(len(own) - 1, 'more change')}" if len(own) > 1 else "" for run, own in found.items()}
    return {run: f"{sentence(own[0])}{more[run]}" for run, own in found.items()}


def entries(
    course: Course, slots: Sequence[Slot], found: Mapping[str, Sequence[Shift]], ended: Mapping[str, float]
) -> Iterator[Entry]:
    """The news of `course`, the earliest first. `ended`: when each run did."""
    for slot in slots:
        shifts = found.get(slot.run or "", ())
        goes_on = slot.state is State.UNEXPECTED and slot.since != slot.day
        if slot.state is State.OPEN or (slot.state is State.MEASURED and not slot.again) or (goes_on and not shifts):
            continue
        said = [own.text for own in slot.unmet] + [f"{sentence(shift)}." for shift in shifts]
        sentences = tuple(said) or (slot.label.rstrip(".") + ".",)
        key = f"run {slot.run}" if slot.run else f"{course.scenario} {course.rig} {slot.at:.0f}"
        page = page_of_run(slot.run) if slot.run else course.page
        what = slot.text if slot.state in {State.WORSE, State.BETTER} and not slot.again else slot.what
        what = what if len(what) <= _MOST else f"{what[: _MOST - 1]}…"
        at = ended.get(slot.run or "", slot.at)
        yield Entry(key, at, course, slot.state, f"{course}, {slot.day}: {what}", sentences, page)
