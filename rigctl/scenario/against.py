"""`--against AXIS=VALUE`: every test of a scenario with another value of one setting, too, to be compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rigctl.base.texts import printable
from rigctl.model.statistics.samples import LEAST
from rigctl.records import Against
from rigctl.scenario.classes import Test
from rigctl.scenario.matrix import Matrix, expand, with_axis
from rigctl.scenario.pairs import PairSet
from rigctl.settings import SETTINGS, Setting, Settings
from rigctl.yamlfile import Mistake, suggestion

_EXAMPLE: Final = "as in --against congestion=bbr"


@dataclass(frozen=True, slots=True)
class Variant:
    """The second variant: the value of an axis that the first has not. `option` names where it comes from."""

    axis: Setting[Any]
    value: Any
    option: str


def read_against(text: str) -> Variant | Mistake:
    """Return what `--against` says, or what is wrong with it."""
    option = f"--against {printable(text)[:200]}"
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name and value) or "," in value:
        return Mistake(option, f"expected AXIS=VALUE, {_EXAMPLE}.")
    if name not in SETTINGS:
        return Mistake(option, f'unknown axis "{printable(name)[:64]}".{suggestion(name, list(SETTINGS))}')
    try:
        return Variant(SETTINGS[name], SETTINGS[name].parse(name, value), option)
    except ValueError as error:
        return Mistake(option, f"{str(error).rstrip('.')}.")


def both(matrix: Matrix, variant: Variant) -> tuple[Matrix, Any] | Mistake:
    """Return `matrix` with both values of the axis, and the value of the first variant; or why there is none."""
    axis = variant.axis
    others = list(dict.fromkeys(row[axis] for row in expand(matrix) if row[axis] != variant.value))
    if len(others) == 1:
        return with_axis(matrix, axis, (others[0], variant.value)), others[0]
    given = value_text(axis, variant.value)
    if not others:
        return Mistake(variant.option, f"every test has {axis.name} {given} already. Name another value.")
    named = [value_text(axis, value) for value in others]
    what = f"the scenario has {len(others)} other values of {axis.name}: {', '.join(named[:5])}. Choose one of them"
    return Mistake(variant.option, f"{what}: --set {axis.name}={named[0]}.")


def against_of(tests: Sequence[Test], variant: Variant, before: Any) -> Against:  # noqa: ANN401
    """Return which tests, by their numbers from 1, are the two variants of each other."""

    def same(row: Settings, pairs: PairSet) -> tuple[object, ...]:
        return row | {variant.axis: variant.axis.unset}, pairs

    rows = list(enumerate(((test.row, test.pairs) for test in tests), 1))
    firsts = {same(row, pairs): number for number, (row, pairs) in rows if row[variant.axis] == before}
    twins = tuple(
        (firsts[same(row, pairs)], number)
        for number, (row, pairs) in rows
        if row[variant.axis] == variant.value and same(row, pairs) in firsts
    )
    axis, values = variant.axis, (before, variant.value)
    first, second = (value_text(axis, value) for value in values)
    return Against(axis.name, first, second, tuple(sorted(twins)))


def against_mistake(variant: Variant, against: Against, repeat: int) -> Mistake | None:
    """Return what makes a comparison impossible, or None."""
    if not against.twins:
        return Mistake(variant.option, "no test can have both values: a row of exclude or include names them.")
    if repeat < LEAST:
        what = f"a comparison needs {LEAST} repetitions or more, the scenario has {repeat}."
        return Mistake(variant.option, f"{what} Give --repeat {LEAST} or more.")
    return None


def value_text(axis: Setting[Any], value: Any) -> str:  # noqa: ANN401 — of any setting
    """Return a value as a scenario has it."""
    return axis.default if value is None else axis.text(value)
