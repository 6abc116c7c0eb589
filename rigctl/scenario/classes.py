"""Traffic classes: `classes` turns each row of the matrix into several tests, which are measured at the same time.

The test of a class has the class's kind, and its row's settings for that kind. Settings of the class take precedence.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from rigctl.base.texts import either
from rigctl.scenario.matrix import AT_TOP, MAX_CELLS, AxisMatrix, RowValues, count_tests
from rigctl.scenario.pairs import PairSet
from rigctl.settings import CONDITION, ENGINE, ITERATIONS, MAX_RATE, PAIRS, RATE, SETTINGS, WINDOW, Setting, Settings
from rigctl.settings.kinds import AGENT, KINDS, TCP, UDP, Kind
from rigctl.yamlfile import Mistake, YamlDocument
from rigctl.yamlfile.fields import FieldError, parse_text, show_value

TAKEN: Final = (TCP, UDP)  # the kinds of tests that a class can have
_MOST_CLASSES: Final = 8  # because switches have eight queues
CLASS_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,19}", re.ASCII)
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


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """An entry of `classes`: its name, its kind of test, and its own settings."""

    name: str
    kind: Kind
    own: RowValues


class Test(NamedTuple):
    """A test of a scenario, before it becomes a `Cell`: a row of the matrix, or a class of a row."""

    row: Settings
    pairs: PairSet
    kind: Kind
    traffic_class: str | None = None
    group: int | None = None  # number of the first test of the row; None without classes


def classes_of(sections: Mapping[str, BaseModel], test: str) -> tuple[TrafficClass, ...]:
    """Return the classes of a scenario. `test` is the kind of test of each class that names no kind."""
    return tuple(
        TrafficClass(
            name,
            KINDS[getattr(section, "test", None) or test],
            {SETTINGS[key]: getattr(section, key) for key in section.model_fields_set if key in SETTINGS},
        )
        for name, section in sections.items()
    )


def tests_of_classes(
    rows: Sequence[tuple[Settings, PairSet]], kind: Kind, classes: Sequence[TrafficClass]
) -> list[Test]:
    """Return the tests of a scenario: one for each row, or one for each class of each row."""
    if not classes:
        return [Test(row, pairs, kind) for row, pairs in rows]
    return [
        Test(_row_of(each, row), pairs, each.kind, each.name, place * len(classes) + 1)
        for place, (row, pairs) in enumerate(rows)
        for each in classes
    ]


def _row_of(each: TrafficClass, row: Settings) -> Settings:
    return Settings((setting, value) for setting, value in row.items() if setting.takes(each.kind)) | each.own


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


def _idle_settings(document: YamlDocument, matrix: AxisMatrix, classes: Sequence[TrafficClass]) -> Iterator[Mistake]:
    for setting in dict.fromkeys([*matrix.axes, *(setting for row in matrix.include for setting in row)]):
        takers = [each for each in classes if setting.takes(each.kind)]
        if setting in _OF_THE_ROW or any(setting not in each.own for each in takers):
            continue
        why = "unused, because each class that takes it gives its own value" if takers else "no class uses it"
        yield setting_mistake(document, setting, f"{setting.name}: {why}. Leave it out.")


def class_clashes(test: Test, first: Test, resized: bool) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for settings of a class that clash with others. `resized`: a condition sets the windows."""
    if test.traffic_class is None:
        return
    if test.row[ENGINE] != AGENT:
        yield "engine", f"classes are measured by the agent, not by {test.row[ENGINE]}"
    if test.row[RATE] == MAX_RATE:
        yield "rate", "max cannot be searched for while other classes send"
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
