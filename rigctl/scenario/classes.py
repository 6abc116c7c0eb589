"""Traffic classes: `classes` turns each row of the matrix into several tests, which are measured at the same time.

The test of a class has the class's kind, and its row's settings for that kind. Settings of the class take precedence.
A class may have pairs of its own, and start and stop within the test, to show what it does to the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from rigctl.base.texts import either
from rigctl.base.units import format_duration, parse_duration
from rigctl.model.trials import searched_setting
from rigctl.rig.inventory import Rig
from rigctl.scenario.matrix import AT_TOP, MAX_CELLS, AxisMatrix, RowValues, count_tests
from rigctl.scenario.pairs import PairSet, pairs_at_once
from rigctl.settings import CONDITION, ENGINE, ITERATIONS, PAIRS, SETTINGS, WINDOW, Setting, Settings
from rigctl.settings.kinds import AGENT, KINDS, TCP, UDP, Kind
from rigctl.yamlfile import Mistake, YamlDocument
from rigctl.yamlfile.fields import FieldError, parse_between, parse_text, show_value

TAKEN: Final = (TCP, UDP)  # the kinds of tests that a class can have
_MOST_CLASSES: Final = 8  # because switches have eight queues
CLASS_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,19}", re.ASCII)
_SHARE: Final = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%\s*", re.ASCII)
_MOST_S: Final = 86_400.0
_OF_THE_ROW: Final = (CONDITION, PAIRS, ENGINE, ITERATIONS)
"""Settings that a class cannot have: all classes share them, or (iterations) one class would end before the others."""
AXES: Final = tuple(
    name
    for name, setting in SETTINGS.items()
    if setting not in _OF_THE_ROW and any(setting.takes(kind) for kind in TAKEN)
)
"""The names of the settings that a class can have."""


def parse_class(name: str, value: object) -> str:
    """Return the name of a class. Raise `FieldError` if the name is invalid."""
    text = parse_text(name, value, "the name of a class")
    if not CLASS_NAME.fullmatch(text):
        raise FieldError(f"class {show_value(text)}: expected 1 to 20 letters, digits, blanks and any of . _ + -")
    return text


class Moment(NamedTuple):
    """A time within a test: in s after its start, or as a share of its duration."""

    time_s: float | None = None
    share: float = 0.0

    def after_s(self, duration_s: float) -> float:
        """Return the time in s after the start of a test of this duration."""
        return self.share * duration_s if self.time_s is None else self.time_s


def parse_moment(name: str, value: object) -> Moment:
    """Return the time in a text such as `5s` or `25%`. Raise `FieldError` for any other value."""
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        if not 0 <= float(match[1]) <= 100:
            raise FieldError(f"{name} {show_value(value)}: expected at most 100% of the duration")
        return Moment(share=float(match[1]) / 100)
    expected = "a time within the test, or a share of its duration as in 25%"
    return Moment(parse_between(name, value, parse_duration, (0.0, _MOST_S), expected, "5s"))


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """An entry of `classes`: its name, its kind of test, its own settings, pairs and times."""

    name: str
    kind: Kind
    own: RowValues
    pairs: PairSet = ()  # pairs of this class; empty: those of the row
    start_s: float = 0.0
    stop_s: float | None = None  # None: at the end of the test


class Test(NamedTuple):
    """A test of a scenario, before it becomes a `Cell`: a row of the matrix, or a class of a row."""

    row: Settings
    pairs: PairSet
    kind: Kind
    number: int  # number of the test in the run, from 1
    part: str | None = None  # name of the part of the scenario; None: it has no parts
    traffic_class: str | None = None
    group: int | None = None  # number of the first test of the row; None without classes
    start_s: float = 0.0
    stop_s: float | None = None


def classes_of(sections: Mapping[str, BaseModel], test: str, duration_s: float, rig: Rig) -> tuple[TrafficClass, ...]:
    """Return the classes of a scenario, whose pairs are valid. `test` is the kind of a class that names no kind."""

    def moment_s(section: BaseModel, name: str) -> float | None:
        moment: Moment | None = getattr(section, name, None)
        return None if moment is None else moment.after_s(duration_s)

    return tuple(
        TrafficClass(
            name,
            KINDS[getattr(section, "test", None) or test],
            {SETTINGS[key]: getattr(section, key) for key in section.model_fields_set if key in AXES},
            pairs_at_once(getattr(section, "pairs", ()), rig),
            moment_s(section, "start") or 0.0,
            moment_s(section, "stop"),
        )
        for name, section in sections.items()
    )


def tests_of_classes(
    rows: Sequence[tuple[Settings, PairSet]],
    kind: Kind,
    classes: Sequence[TrafficClass],
    first: int,
    part: str | None,
) -> list[Test]:
    """Return the tests of a part: one for each row, or one for each class of each row. `first`: their first number."""
    if not classes:
        return [Test(row, pairs, kind, number, part) for number, (row, pairs) in enumerate(rows, first)]
    groups = ((first + place * len(classes), row, pairs) for place, (row, pairs) in enumerate(rows))
    return [
        Test(
            _row_of(each, row),
            each.pairs or pairs,
            each.kind,
            group + place,
            part,
            each.name,
            group,
            each.start_s,
            each.stop_s,
        )
        for group, row, pairs in groups
        for place, each in enumerate(classes)
    ]


def _row_of(each: TrafficClass, row: Settings) -> Settings:
    """Return the settings of a class in a row. The axis `pairs` takes some of the row's pairs, not of the class's."""
    taken = ((setting, value) for setting, value in row.items() if setting.takes(each.kind))
    return Settings((setting, value) for setting, value in taken if setting is not PAIRS or not each.pairs) | each.own


def class_mistakes(
    document: YamlDocument, matrix: AxisMatrix, sets: int, classes: Sequence[TrafficClass], against: str | None
) -> Iterator[Mistake]:
    """Yield mistakes in `classes`. `sets` is the number of sets of pairs; `against` the option `--against`, if any."""
    if not classes:
        return
    if len(classes) > _MOST_CLASSES:
        yield document.mistake(("classes",), f"classes: {len(classes)} given; at most {_MOST_CLASSES}.", at_key=True)
    cells = count_tests(matrix) * sets * len(classes)
    if cells > MAX_CELLS:
        what = (
            f"classes: {len(classes)} classes make {cells:,} tests (at most {MAX_CELLS:,}). Give the axes fewer values."
        )
        yield document.mistake(("classes",), what, at_key=True)
    if against is not None:
        what = "not for classes, which are measured at the same time. Run the scenario twice, and use rigctl compare."
        yield Mistake(against, what)
    for each in classes:
        if each.kind not in TAKEN:
            names = either(kind.name for kind in TAKEN)
            own = ("classes", each.name, "test")
            path = own if document.has_key(own) else ("test",)
            yield document.mistake(path, f"class {each.name}: expected test {names}, not {each.kind.name}.")
    yield from _idle_settings(document, matrix, classes)


def time_mistakes(
    document: YamlDocument, classes: Sequence[TrafficClass], duration_s: float, omit_s: float
) -> Iterator[Mistake]:
    """Yield mistakes in `start` and `stop` of classes: they never run, or for no longer than `omit`."""
    whole = format_duration(duration_s)
    for each in classes:
        path, stop_s = ("classes", each.name), duration_s if each.stop_s is None else each.stop_s
        if each.start_s >= duration_s:
            what = f"start: class {each.name} never runs; the test ends after {whole}. Start it before."
            yield document.mistake((*path, "start"), what)
        elif stop_s > duration_s:
            what = f"stop: the test ends after {whole}. Leave stop out, or make the duration longer."
            yield document.mistake((*path, "stop"), what)
        elif stop_s <= each.start_s:
            what = f"stop: class {each.name} starts at {format_duration(each.start_s)}. Give a later time."
            yield document.mistake((*path, "stop"), what)
        elif (sends_s := stop_s - each.start_s) <= omit_s and sends_s < duration_s:
            what = f"class {each.name} sends for {format_duration(sends_s)}, of which omit leaves out all."
            yield document.mistake(path, f"{what} Let it send for longer than {format_duration(omit_s)}.")


def _idle_settings(document: YamlDocument, matrix: AxisMatrix, classes: Sequence[TrafficClass]) -> Iterator[Mistake]:
    for setting in dict.fromkeys([*matrix.axes, *(setting for row in matrix.include for setting in row)]):
        takers = [each for each in classes if setting.takes(each.kind)]
        own_pairs = setting is PAIRS and all(each.pairs for each in classes)
        if own_pairs:
            takers = list(classes)
        elif setting in _OF_THE_ROW or any(setting not in each.own for each in takers):
            continue
        why = "unused, because each class that takes it gives its own value" if takers else "no class uses it"
        yield setting_mistake(document, setting, f"{setting.name}: {why}. Leave it out.")


def class_clashes(test: Test, first: Test, resized: bool) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for settings of a class that clash with others. `resized`: a condition sets the windows."""
    if test.traffic_class is None:
        return
    if test.row[ENGINE] != AGENT:
        yield "engine", f"classes are measured by the agent, not by {test.row[ENGINE]}"
    if (searched := searched_setting(test.row)) is not None:
        yield searched.setting.name, "max cannot be searched for while other classes send"
    if resized and test.row[WINDOW] != first.row[WINDOW]:
        yield "window", "differs between the classes; a condition with resize: true sets one window for the whole node"


def place_of(document: YamlDocument, matrix: AxisMatrix, test: Test, setting: Setting[Any]) -> tuple[str, ...] | None:
    """Return the path of the setting in its class, or of the class if unset. None: no class, or a row sets it."""
    if test.traffic_class is None:
        return None
    own = ("classes", test.traffic_class, setting.name)
    if document.has_key(own):
        return own
    return None if any(setting in row for row in (matrix.axes, *matrix.include)) else own[:2]


def setting_mistake(document: YamlDocument, setting: Setting[Any], what: str) -> Mistake:
    """Return a mistake that is located at the setting in `matrix`, else at its top-level key, else at `include`."""
    name = setting.name
    top = ((name,),) if name in AT_TOP else ()
    return document.mistake(next(filter(document.has_key, (("matrix", name), *top)), ("include",)), what)
