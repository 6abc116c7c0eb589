"""Single values of YAML files: a parser each, and a JSON Schema for editors.

Parsers raise `FieldError` with a message that names the key and shows the value; the reader adds the place.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, ValidationInfo, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from rigctl.yamlfile.document import suggestion

MAX_VALUE_CHARS: Final = 40
"""No number with its unit is longer."""
_T = TypeVar("_T")
_Number = TypeVar("_Number", int, float)


class FieldError(ValueError):
    """A value that is wrong for its key. The message names the key and what was expected."""


def entry_errors(wrong: Mapping[int, ValueError]) -> ValidationError:
    """Return what a validator of a list raises for its `wrong` entries: each error, by the entry's position."""
    return ValidationError.from_exception_data(
        "entries",
        [
            InitErrorDetails(type=PydanticCustomError("entry", "{error}", {"error": error}), loc=(at,), input=None)
            for at, error in wrong.items()
        ],
    )


class Section(BaseModel):
    """Keys and values of a YAML file; an unknown key is a mistake."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


def empty_if_none(value: object) -> object:
    """Return an empty section for a key without a value, as in `pi1:`."""
    return {} if value is None else value


def describe(value: object) -> str:
    """Describe a value for a message: `a list`, `the number 5`, `nothing`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list | tuple) else "keys and values"


def show_value(value: object) -> str:
    """Return a value as a message shows it: short, in quotes."""
    text = str(value)
    return f'"{text[:60]}…"' if len(text) > 60 else f'"{text}"'


def unfit(name: str, value: object, expected: str) -> str:
    """Return the message about a value of the wrong type, or of the wrong form."""
    if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
        return f"{name} {show_value(value)}: expected {expected}"
    return f"{name}: expected {expected}, found {describe(value)}"


def parse_text(name: str, value: object, expected: str = "a text") -> str:
    """Return one line of text. Raise `FieldError` for anything else, also for an empty text."""
    if isinstance(value, bool | int | float):
        raise FieldError(f'{name}: expected {expected}, found {describe(value)}. Put it in quotes, as in "{value}"')
    if not isinstance(value, str):
        raise FieldError(f"{name}: expected {expected}, found {describe(value)}")
    if not value.strip():
        raise FieldError(f"{name}: expected {expected}, found an empty one")
    if "\n" in value.strip() or len(value) > 200:
        raise FieldError(f"{name}: expected one line of at most 200 characters. Longer texts go into notes")
    return value.strip()


def parse_word(name: str, value: object, known: Collection[str]) -> str:
    """Return one of the `known` words. Raise `FieldError`, which suggests a word."""
    text = parse_text(name, value, f"one of: {', '.join(known)}")
    if text not in known:
        raise FieldError(f"{name} {show_value(text)}: unknown.{suggestion(text, tuple(known))}")
    return text


def parse_choice(name: str, value: object, known: Sequence[str]) -> str:
    """Return one of a few `known` words. Raise `FieldError`, which lists them all."""
    *others, last = known
    expected = f"{', '.join(others)} or {last}"
    text = parse_text(name, value, expected)
    if text not in known:
        near = difflib.get_close_matches(text.lower(), known, n=1)
        hint = f'. Did you mean "{near[0]}"?' if near else ""
        raise FieldError(f"{name} {show_value(text)}: expected {expected}{hint}")
    return text


def parse_matching(name: str, value: object, pattern: re.Pattern[str], expected: str) -> str:
    """Return one line of text that matches `pattern` as a whole, or raise `FieldError`."""
    text = parse_text(name, value, expected)
    if not pattern.fullmatch(text):
        raise FieldError(f"{name} {show_value(text)}: expected {expected}")
    return text


def parse_long_text(name: str, value: object) -> str:
    """Return a text of any number of lines, or raise `FieldError`."""
    if not isinstance(value, str):
        raise FieldError(f"{name}: expected a text, found {describe(value)}")
    return value.strip()


def parse_whole(name: str, value: object, low: int, high: int, example: int) -> int:
    """Return a whole number from `low` to `high`, or raise `FieldError`."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]{1,18}", value.strip(), re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(unfit(name, value, f"a whole number from {low} to {high}, as in {example}"))
    if value < 0:
        raise FieldError(f'{name} "{value}": must not be negative. Use {low} to {high}, as in {example}')
    if not low <= value <= high:
        raise FieldError(f'{name} "{value}": expected {low} to {high}, as in {example}')
    return value


def parse_quantity(name: str, value: object, parse: Callable[[str | int | float, str], _T], example: str) -> _T:
    """Return `value` as read by a parser of `rigctl.base.units`, or raise `FieldError`."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise FieldError(f"{name}: expected a number with a unit, as in {example}, found {describe(value)}")
    if len(str(value)) > MAX_VALUE_CHARS:
        raise FieldError(f"{name} {show_value(value)}: too long. Expected a number with a unit, as in {example}")
    return parse(value, name)


def parse_between(
    name: str,
    value: object,
    parse: Callable[[str | int | float, str], _Number],
    bounds: tuple[float, float],
    expected: str,
    example: str,
) -> _Number:
    """Return a quantity as `parse_quantity` does. Raise `FieldError` if it is out of bounds, which `expected` names."""
    quantity = parse_quantity(name, value, parse, example)
    if not bounds[0] <= quantity <= bounds[1]:
        raise FieldError(f"{name} {show_value(value)}: expected {expected}, as in {example}")
    return quantity


def parse_flag(name: str, value: object) -> bool:
    """Return True or False, or raise `FieldError`."""
    if isinstance(value, str) and value.lower() in {"true", "yes", "on", "false", "no", "off"}:
        return value.lower() in {"true", "yes", "on"}
    if not isinstance(value, bool):
        raise FieldError(unfit(name, value, "true or false"))
    return value


def validator_for(parse: Callable[[str, object], object]) -> PlainValidator:
    """Return `parse(name, value)` as a validator; `name` is the key of the value."""

    def validate(value: object, info: ValidationInfo) -> object:
        return parse(info.field_name or "value", value)

    return PlainValidator(validate)


def json_type(kind_: str, **more: object) -> WithJsonSchema:
    """Return the JSON Schema of a value by its type and further keywords."""
    return WithJsonSchema({"type": kind_, **more})


def whole_within(low: int, high: int, example: int) -> tuple[PlainValidator, WithJsonSchema]:
    """Return the validator and the JSON Schema of a whole number within bounds."""
    read = validator_for(lambda name, value: parse_whole(name, value, low, high, example))
    return read, json_type("integer", minimum=low, maximum=high)


Text = Annotated[str, validator_for(parse_text), json_type("string", maxLength=200)]
LongText = Annotated[str, validator_for(parse_long_text), json_type("string")]
Flag = Annotated[bool, validator_for(parse_flag), json_type("boolean")]
