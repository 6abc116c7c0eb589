"""`--against AXIS=VALUE`: every test of a scenario with another value of one setting, too, to be compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.base.texts import printable
from rigctl.model.statistics.samples import LEAST
from rigctl.records import Against
from rigctl.scenario.axes import AXES, DEFAULT, AxisValue
from rigctl.scenario.matrix import Matrix, Row, expand, full, pattern_of, with_axis
from rigctl.scenario.meshes import PairSet
from rigctl.yamlfile import Mistake, suggestion

_EXAMPLE: Final = "as in --against congestion=bbr"


@dataclass(frozen=True, slots=True)
class Variant:
    """The second variant: the value of an axis that the first has not. `option` names where it comes from."""

    axis: str
    value: AxisValue
    option: str


def read_against(text: str) -> Variant | Mistake:
    """What `--against` says, or what is wrong with it."""
    option = f"--against {printable(text)[:200]}"
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name and value) or "," in value:
        return Mistake(option, f"expected AXIS=VALUE, {_EXAMPLE}.")
    if name not in AXES:
        return Mistake(option, f'unknown axis "{printable(name)[:64]}".{suggestion(name, list(AXES))}')
    try:
        return Variant(name, AXES[name].parse(name, value), option)
    except ValueError as error:
        return Mistake(option, f"{str(error).rstrip('.')}.")


def both(matrix: Matrix, variant: Variant) -> tuple[Matrix, AxisValue] | Mistake:
    """`matrix` with both values of the axis, and the value of the first variant; or why there is no such."""
    axis = AXES[variant.axis]
    others = list(dict.fromkeys(row[axis.name] for row in expand(matrix) if row[axis.name] != variant.value))
    if len(others) == 1:
        return with_axis(matrix, axis.name, (others[0], variant.value)), others[0]
    given = value_text(axis.name, variant.value)
    if not others:
        return Mistake(variant.option, f"every test has {axis.name} {given} already. Name another value.")
    named = [value_text(axis.name, value) for value in others]
    what = f"the scenario has {len(others)} other values of {axis.name}: {', '.join(named[:5])}. Choose one of them"
    return Mistake(variant.option, f"{what}: --set {axis.name}={named[0]}.")


def against_of(tests: Sequence[tuple[Row, PairSet]], variant: Variant, before: AxisValue) -> Against:
    """Which tests, by their numbers from 1, are the two variants of each other."""

    def same(row: Row, pairs: PairSet) -> tuple[object, ...]:
        others = {name: value for name, value in full(row).items() if name != variant.axis}
        return (*pattern_of(others), pairs)

    firsts = {same(row, pairs): n for n, (row, pairs) in enumerate(tests, 1) if row[variant.axis] == before}
    twins = tuple(
        (firsts[same(row, pairs)], number)
        for number, (row, pairs) in enumerate(tests, 1)
        if row[variant.axis] == variant.value and same(row, pairs) in firsts
    )
    return Against(
        variant.axis, value_text(variant.axis, before), value_text(variant.axis, variant.value), tuple(sorted(twins))
    )


def against_mistake(variant: Variant, against: Against, repeat: int) -> Mistake | None:
    """What makes a comparison impossible."""
    if not against.twins:
        return Mistake(variant.option, "no test can have both values: a row of exclude or include names them.")
    if repeat < LEAST:
        what = f"a comparison needs {LEAST} repetitions or more, the scenario has {repeat}."
        return Mistake(variant.option, f"{what} Give --repeat {LEAST} or more.")
    return None


def value_text(axis: str, value: AxisValue) -> str:
    """A value as a scenario has it."""
    return DEFAULT if value is None else AXES[axis].text(value)
