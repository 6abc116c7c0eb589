"""Types of single values of YAML files, each with a parser and a JSON Schema for editors.

Parsers raise `FieldError` with a message that names the key and shows the value. The caller adds file and line.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from rigctl.base.texts import either
from rigctl.yamlfile.document import did_you_mean, suggestion

MAX_VALUE_CHARS: Final = 40  # of a number with its unit
_T = TypeVar("_T")
_Number = TypeVar("_Number", int, float)


class FieldError(ValueError):
    """Raised if a value is wrong for its key. The message names the key and what is expected."""


def entry_errors(wrong: Mapping[int, ValueError]) -> ValidationError:
    """Return the error that a validator of a list raises; `wrong` maps positions in the list to errors."""
    errors = [
        InitErrorDetails(type=PydanticCustomError("entry", "{error}", {"error": error}), loc=(at,), input=None)
        for at, error in wrong.items()
    ]
    return ValidationError.from_exception_data("entries", errors)


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


class YamlSection(BaseModel):
    """Base of models for sections of a YAML file; an unknown key is a mistake."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def empty_if_none(value: object) -> object:
    """Return an empty section for None (a key without a value, as in `pi1:`), else `value`."""
    return {} if value is None else value


def describe(value: object) -> str:
    """Return words for a value in a message: `a list`, `the number 5`, `nothing`."""
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
    """Return a value in quotes for a message, with at most 60 characters."""
    text = str(value)
    return f'"{text[:60]}…"' if len(text) > 60 else f'"{text}"'


def unfit(name: str, value: object, expected: str) -> str:
    """Return the message that a value has the wrong type or form."""
    if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
        return f"{name} {show_value(value)}: expected {expected}"
    return f"{name}: expected {expected}, found {describe(value)}"


def parse_text(name: str, value: object, expected: str = "a text") -> str:
    """Return a text of one line. Raise `FieldError` for any other value, and for an empty text."""
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
    """Return `value` if it is a known word. Raise `FieldError` with a suggestion if not."""
    text = parse_text(name, value, f"one of: {', '.join(known)}")
    if text not in known:
        raise FieldError(f"{name} {show_value(text)}: unknown.{suggestion(text, tuple(known))}")
    return text


def parse_choice(name: str, value: object, known: Sequence[str]) -> str:
    """Return `value` if it is a known word. Raise `FieldError` with a list of all known words if not."""
    expected = either(known)
    text = parse_text(name, value, expected)
    if text not in known:
        hint = did_you_mean(text, known)
        raise FieldError(f"{name} {show_value(text)}: expected {expected}{hint and f'.{hint}'}")
    return text


def parse_matching(name: str, value: object, pattern: re.Pattern[str], expected: str) -> str:
    """Return a text of one line that matches `pattern` completely. Raise `FieldError` if it does not."""
    text = parse_text(name, value, expected)
    if not pattern.fullmatch(text):
        raise FieldError(f"{name} {show_value(text)}: expected {expected}")
    return text


def parse_long_text(name: str, value: object) -> str:
    """Return a text of any number of lines. Raise `FieldError` for any other value."""
    if not isinstance(value, str):
        raise FieldError(f"{name}: expected a text, found {describe(value)}")
    return value.strip()


def parse_whole(name: str, value: object, low: int, high: int, example: int) -> int:
    """Return a whole number from `low` to `high`. Raise `FieldError` for any other value."""
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
    """Return the result of `parse` (`rigctl.base.units`) for `value`. Raise `FieldError` for a wrong type or length."""
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
    """Return the result of `parse_quantity`. Raise `FieldError` with `expected` unless it is within `bounds`."""
    quantity = parse_quantity(name, value, parse, example)
    if not bounds[0] <= quantity <= bounds[1]:
        raise FieldError(f"{name} {show_value(value)}: expected {expected}, as in {example}")
    return quantity


def parse_flag(name: str, value: object) -> bool:
    """Return True or False, also from yes, no, on and off. Raise `FieldError` for any other value."""
    if isinstance(value, str) and value.lower() in {"true", "yes", "on", "false", "no", "off"}:
        return value.lower() in {"true", "yes", "on"}
    if not isinstance(value, bool):
        raise FieldError(unfit(name, value, "true or false"))
    return value


def validator_for(parse: Callable[[str, object], object]) -> PlainValidator:
    """Return a validator that calls `parse(name, value)` with the key of the value as `name`."""
    return PlainValidator(lambda value, info: parse(info.field_name or "value", value))


def json_type(kind_: str, **more: object) -> WithJsonSchema:
    """Return the JSON Schema of a value with this type and further keywords."""
    return WithJsonSchema({"type": kind_, **more})


def whole_within(low: int, high: int, example: int) -> tuple[PlainValidator, WithJsonSchema]:
    """Return the validator and the JSON Schema of a whole number within bounds."""
    read = validator_for(lambda name, value: parse_whole(name, value, low, high, example))
    return read, json_type("integer", minimum=low, maximum=high)


Text = Annotated[str, validator_for(parse_text), json_type("string", maxLength=200)]
LongText = Annotated[str, validator_for(parse_long_text), json_type("string")]
Flag = Annotated[bool, validator_for(parse_flag), json_type("boolean")]
