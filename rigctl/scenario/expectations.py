"""Read the expectations of a scenario (`expect`) and assign them to tests.

The name of a figure is a column's name without its unit, because the bound has a unit: `goodput: ">= 930M"` bounds the
column goodput_mbps. `rigctl.analysis.views.expectations` compares results with the bounds.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from rigctl.base.texts import either
from rigctl.base.units import parse_bytes, parse_duration, parse_rate
from rigctl.base.values import group_by
from rigctl.figures import BY_NAME, FIGURES, DataColumn, Level
from rigctl.figures.phases import OF_PHASES, column_named
from rigctl.limits.limit import LIMITS
from rigctl.records import Expectation, Operator
from rigctl.scenario.classes import Test
from rigctl.scenario.matrix import MAX_CELLS
from rigctl.settings import LATENCY, SETTINGS
from rigctl.settings.kinds import KINDS, Kind
from rigctl.yamlfile import FieldError, Mistake, YamlDocument, YamlSection, describe, suggestion
from rigctl.yamlfile.fields import MAX_VALUE_CHARS, as_list, parse_whole, show_value, validator_for

LIMIT_WORDS: Final = tuple(sorted(LIMITS))

_EVERY: Final = {**FIGURES, **OF_PHASES}
OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    name: tuple(figure.name for figure in _EVERY.values() if name in figure.kinds) for name in KINDS
}
"""Maps a kind of test to the columns that `expect` can bound."""
_SUFFIXES: Final = {"Mbit/s": "_mbps", "us": "_us", "%": "_pct", "s": "_s", "B": "_bytes", "B/s": "_bytes_per_s"}
_EXAMPLES: Final = {
    **{"Mbit/s": ">= 930M", "us": "< 500us", "%": "< 0.1%", "s": "< 2s", "B": ">= 64K", "B/s": ">= 100M/s"},
    **{"": "< 100", "efficiency": ">= 0.97"},
}
_BOUND: Final = re.compile(r"\s*(?P<sign>>=|<=|>|<)\s*(?P<value>[^<>=]+?)(?P<pair>\s+per\s+pair)?\s*")
_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def name_of(column: DataColumn) -> str:
    """Return a column's name without its unit: `goodput` for goodput_mbps."""
    return column.name.removesuffix(_SUFFIXES.get(column.unit, "\0"))


COLUMNS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    **{name_of(column_named(name)): (name,) for own in OF_KIND.values() for name in own},
    **{
        alias: tuple(figure.name for figure in _EVERY.values() if figure.alias == alias)
        for alias in dict.fromkeys(figure.alias for figure in _EVERY.values() if figure.alias)
    },
}
"""Maps the name of a figure in `expect` to its columns; a kind of test has at most one of them."""


def column_of(figure: str, kind_: Kind) -> str | None:
    """Return the column of a figure for a kind of test; None if this kind does not have the figure."""
    if figure == "limit":
        return None if kind_.in_messages else figure
    return next((name for name in COLUMNS_OF[figure] if name in OF_KIND[kind_.name]), None)


def parse_bound(name: str, value: object) -> Expectation:
    """Return the bound in a text such as `>= 930M per pair`. Its `tests` are empty. Raise `FieldError`."""
    column = column_named(COLUMNS_OF[name][0])
    example = _EXAMPLES.get(column.name) or _EXAMPLES[column.unit]
    match = _BOUND.fullmatch(value) if isinstance(value, str) and len(value) <= MAX_VALUE_CHARS else None
    if match is None:
        expected = f'expected >=, >, <= or < and a value, as in "{example}"'
        if not isinstance(value, str | float | int):
            raise FieldError(f"{name}: {expected}, found {describe(value)}")
        raise FieldError(f"{name} {show_value(value)}: {expected}")
    number = _number(name, column, match["value"], example)
    text = f"{match['sign']} {match['value']}{' per pair' if match['pair'] else ''}"
    return Expectation(name, name, text, Operator(match["sign"]), (), number, per_pair=match["pair"] is not None)


def _number(name: str, column: DataColumn, text: str, example: str) -> float:
    plain, share = bool(_PLAIN.fullmatch(text)), text.removesuffix("%").rstrip()
    if column.unit and plain and column.unit != "B":
        raise FieldError(f'{name} "{text}": a unit is missing, as in "{example}"')
    if column.unit == "%" or (column.name == "efficiency" and not plain):
        if share == text or not _PLAIN.fullmatch(share):
            raise FieldError(f'{name} "{text}": expected a percentage, as in "{"< 97%" if column.unit else ">= 97%"}"')
        return float(share) if column.unit else float(share) / 100
    if not column.unit:
        if not plain:
            raise FieldError(f'{name} "{text}": expected a number, as in "{example}"')
        return float(text)
    readers: dict[str, Callable[[], float]] = {
        "Mbit/s": lambda: parse_rate(text, name) / 1e6,
        "us": lambda: parse_duration(text, name) * 1e6,
        "s": lambda: parse_duration(text, name),
        "B": lambda: float(parse_bytes(text, name)),
        "B/s": lambda: float(parse_bytes(text.removesuffix("/s"), name)),
    }
    return readers[column.unit]()


def parse_limits(name: str, value: object) -> Expectation:
    """Return the expectation that the bottleneck is one of these. Its `tests` are empty. Raise `FieldError`."""
    words = as_list(value)
    for word in words or [value]:
        if not isinstance(word, str) or word not in LIMIT_WORDS:
            hint = suggestion(word, LIMIT_WORDS) if isinstance(word, str) else f" Known: {', '.join(LIMIT_WORDS)}."
            raise FieldError(f"{name} {show_value(word)}: unknown limit.{hint}")
    return Expectation(name, name, " or ".join(words), Operator.ONE_OF, (), words=tuple(words))


def _numbers(name: str, value: object) -> tuple[int, ...]:
    return tuple(parse_whole(name, number, 1, MAX_CELLS, 3) for number in as_list(value))


_WHOLE: Final = {"type": "integer", "minimum": 1}
_Tests = Annotated[
    tuple[int, ...] | None,
    validator_for(_numbers),
    WithJsonSchema({"anyOf": [_WHOLE, {"type": "array", "items": _WHOLE}]}),
]
_Limits = Annotated[
    Expectation | None,
    validator_for(parse_limits),
    WithJsonSchema({"anyOf": [{"enum": list(LIMIT_WORDS)}, {"type": "array", "items": {"enum": list(LIMIT_WORDS)}}]}),
]
_Bound = Annotated[
    Expectation | None,
    validator_for(parse_bound),
    WithJsonSchema({"type": "string", "pattern": r"^\s*(>=?|<=?)\s*[0-9]"}),
]


class _ExpectKeys(YamlSection):
    """Bounds of one class, such as `victim.during.loss`, are keys of their own; `with_classes_apart` reads them."""

    model_config = ConfigDict(
        json_schema_extra={
            "patternProperties": {r"^[A-Za-z0-9][A-Za-z0-9 ._+-]*\.[a-z_0-9]+$": {"type": ["string", "array"]}}
        }
    )


def expect_section(row: type[BaseModel]) -> type[BaseModel]:
    """Return the pydantic model of an entry of `expect`. `row` is the model of its key `where`: values of settings."""
    fields: dict[str, Any] = {
        "tests": (_Tests, Field(None, description="Only these tests, by their numbers.", examples=[[1, 3]])),
        "where": (
            row | None,
            Field(None, description="Only tests with all of these settings.", examples=[{"window": "64K"}]),
        ),
    }
    for name, columns in COLUMNS_OF.items():
        column = column_named(columns[0])
        example = _EXAMPLES.get(column.name) or _EXAMPLES[column.unit]
        fields[name] = (_Bound, Field(None, description=f"Column {', or '.join(columns)}.", examples=[example]))
    fields["limit"] = (_Limits, Field(None, description="Bottleneck of the test.", examples=["line-rate"]))
    doc = "Expected results of all tests, or of some tests."
    return create_model("Expect", __base__=_ExpectKeys, __doc__=doc, **fields)


def with_classes_apart(document: YamlDocument) -> YamlDocument:
    """Return the document with each bound of a class, such as `victim.during.loss`, in an entry for this class."""
    given, classes = document.data.get("expect"), document.data.get("classes")
    if not isinstance(given, list) or not isinstance(classes, dict):
        return document
    made = list(given)
    for place, section in enumerate(given):
        named = _classes_named(section, classes)
        if not named:
            continue
        rest = {key: value for key, value in section.items() if key not in named}
        shared = {key: rest[key] for key in ("tests", "where") if key in rest}
        made[place] = rest if rest.keys() - shared.keys() else None
        for key, (name, figure) in named.items():
            where = shared.get("where")
            entry = {
                **shared,
                "where": {**(where if isinstance(where, dict) else {}), "class": name},
                figure: section[key],
            }
            at = place if made[place] is None else len(made)
            made[at:] = [entry, *made[at + 1 :]]
            document = document.copy_places(("expect", place, key), ("expect", at, figure))
    return replace(document, data={**document.data, "expect": made})


def _classes_named(section: object, classes: Mapping[Any, object]) -> dict[str, tuple[str, str]]:
    """Map each key that bounds a figure of one class to the name of the class and of the figure."""
    keys = [key for key in section if isinstance(key, str)] if isinstance(section, dict) else []
    found = {}
    for key in keys:
        name = next((name for name in classes if isinstance(name, str) and key.startswith(f"{name}.")), None)
        if name is not None and key not in COLUMNS_OF:
            found[key] = (name, key.removeprefix(f"{name}."))
    return found


def expectations_of(sections: Sequence[BaseModel], tests: Sequence[Test]) -> tuple[Expectation, ...]:
    """Return the expectations with their tests. Of several lower (or upper) bounds of a figure, the last counts."""
    asked: list[Expectation] = []
    held: dict[tuple[int, str, bool, bool], int] = {}
    for section in sections:
        chosen = _choose(section, tests)
        for name in _figures(section):
            bound: Expectation = getattr(section, name)
            asked.append(bound)
            is_upper = bound.comparison in (Operator.AT_MOST, Operator.BELOW)
            for number in chosen:
                held[number, name, bound.per_pair, is_upper] = len(asked) - 1
    of, numbered = group_by(held, lambda key: held[key]), {test.number: test for test in tests}
    return tuple(
        replace(
            bound,
            column=column_of(bound.name, numbered[min(held_by)[0]].kind) or bound.name,
            tests=tuple(sorted(number for number, *_ in held_by)),
        )
        for place, bound in enumerate(asked)
        if (held_by := of.get(place))
    )


def expect_mistakes(
    document: YamlDocument, sections: Sequence[BaseModel], tests: Sequence[Test], *, overridden: bool
) -> Iterator[Mistake]:
    """Yield mistakes: figures that tests lack; and, unless options changed the axes (`overridden`), unknown tests."""
    numbered = {test.number: test for test in tests}
    for place, section in enumerate(sections):
        path = ("expect", place)
        chosen, names = _choose(section, tests), _figures(section)
        if not names:
            yield document.mistake(path, f'expect: names no figure. Name one, as in goodput: "{_EXAMPLES["Mbit/s"]}".')
        unknown = [number for number in getattr(section, "tests", None) or () if number not in numbered]
        if unknown and not overridden:
            what = f"expect: there is no test {max(unknown)}; {_numbers_text(tests)}."
            yield document.mistake((*path, "tests"), what)
        elif not chosen and not overridden:
            yield document.mistake((*path, "where"), "expect: no test has these values.")
        for name in names:
            wrong = _wrong(name, getattr(section, name), [numbered[number] for number in chosen], tests)
            if wrong is not None:
                yield document.mistake((*path, name), f"{name}: {wrong}.", at_key=True)


def _numbers_text(tests: Sequence[Test]) -> str:
    first, last = tests[0], tests[-1]
    if first.part is None:
        return f"the scenario has {len(tests)}"
    return f"part {first.part} has " + (
        f"test {first.number}" if first is last else f"tests {first.number} to {last.number}"
    )


def _wrong(name: str, bound: Expectation, chosen: Sequence[Test], every: Sequence[Test]) -> str | None:
    without = next((test for test in chosen or every[:1] if column_of(name, test.kind) is None), None)
    if without is not None:
        takers = either(other.name for other in KINDS.values() if column_of(name, other))
        which = "" if without.traffic_class is None else ". Choose a class of this kind, as in where: {class: NAME}"
        return f"only for test: {takers}{which}"
    kind_ = (chosen or every)[0].kind
    column = column_of(name, kind_) or name
    if column.startswith("latency_") and any(test.row[LATENCY] is None for test in chosen):
        return "some of its tests have no probes. Set latency: true, or choose tests with where: {latency: true}"
    if column in OF_PHASES and (without := _without_phases(chosen, every)) is not None:
        return (
            f"class {without.traffic_class} has no phases, as no class starts or stops while it sends. Choose another"
        )
    if bound.per_pair and column in BY_NAME and Level.PAIRS not in BY_NAME[column].levels and not kind_.in_messages:
        return 'has one value for the whole test. Leave "per pair" out'
    return None


def _without_phases(chosen: Sequence[Test], every: Sequence[Test]) -> Test | None:
    """Return a test beside which no class starts or stops, so that the test has no phases; None if all have some."""

    def has_phases(test: Test) -> bool:
        others = [other for other in every if test.group is not None and other.group == test.group]
        moments_s = [moment for other in others for moment in (other.start_s, other.stop_s) if moment is not None]
        return any(test.start_s < moment < (math.inf if test.stop_s is None else test.stop_s) for moment in moments_s)

    return next((test for test in chosen if not has_phases(test)), None)


def _figures(section: BaseModel) -> list[str]:
    given = section.model_fields_set - {"tests", "where"}
    return [name for name in type(section).model_fields if name in given and getattr(section, name) is not None]


def _choose(section: BaseModel, tests: Sequence[Test]) -> list[int]:
    numbers: tuple[int, ...] | None = getattr(section, "tests", None)
    where: BaseModel | None = getattr(section, "where", None)
    named = {name: getattr(where, name) for name in where.model_fields_set} if where is not None else {}
    of_class = named.pop("class", None)
    return [
        test.number
        for test in tests
        if (numbers is None or test.number in numbers)
        and of_class in (None, test.traffic_class)
        and all(test.row[SETTINGS[name]] == value for name, value in named.items())
    ]
