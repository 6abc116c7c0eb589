"""Single values of YAML files: a parser each, and a JSON Schema for editors.

Parsers raise `FieldError` with a message that names the key and shows the value; the reader adds the place.
"""

import re
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from rigctl.yamlfile.validate import kind

MAX_VALUE_CHARS: Final = 40
"""No number with its unit is longer."""
_T = TypeVar("_T")


class FieldError(ValueError):
    """A value that is wrong for its key. The message names the key and what was expected."""


def shown(value: object) -> str:
    """Return a value as a message shows it: short, in quotes."""
    text = str(value)
    return f'"{text[:60]}…"' if len(text) > 60 else f'"{text}"'


def unfit(name: str, value: object, expected: str) -> str:
    if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
        return f"{name} {shown(value)}: expected {expected}"
    return f"{name}: expected {expected}, found {kind(value)}"


def parse_text(name: str, value: object, expected: str = "a text") -> str:
    """Return one line of text. Raise `FieldError` for anything else, also for an empty text."""
    if isinstance(value, bool | int | float):
        raise FieldError(f'{name}: expected {expected}, found {kind(value)}. Put it in quotes, as in "{value}"')
    if not isinstance(value, str):
        raise FieldError(f"{name}: expected {expected}, found {kind(value)}")
    if not value.strip():
        raise FieldError(f"{name}: expected {expected}, found an empty one")
    if "\n" in value.strip() or len(value) > 200:
        raise FieldError(f"{name}: expected one line of at most 200 characters. Longer texts go into notes")
    return value.strip()


def parse_long_text(name: str, value: object) -> str:
    """Return a text of any number of lines, or raise `FieldError`."""
    if not isinstance(value, str):
        raise FieldError(f"{name}: expected a text, found {kind(value)}")
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
        raise FieldError(f"{name}: expected a number with a unit, as in {example}, found {kind(value)}")
    if len(str(value)) > MAX_VALUE_CHARS:
        raise FieldError(f"{name} {shown(value)}: too long. Expected a number with a unit, as in {example}")
    return parse(value, name)


def parse_flag(name: str, value: object) -> bool:
    """Return True or False, or raise `FieldError`."""
    if isinstance(value, str) and value.lower() in {"true", "yes", "on", "false", "no", "off"}:
        return value.lower() in {"true", "yes", "on"}
    if not isinstance(value, bool):
        raise FieldError(unfit(name, value, "true or false"))
    return value


def named(parse: Callable[[str, object], object]) -> PlainValidator:
    """Return `parse(name, value)` as a validator; `name` is the key of the value."""

    def validate(value: object, info: ValidationInfo) -> object:
        return parse(info.field_name or "value", value)

    return PlainValidator(validate)


def json_type(kind_: str, **more: object) -> WithJsonSchema:
    return WithJsonSchema({"type": kind_, **more})


Text = Annotated[str, named(parse_text), json_type("string", maxLength=200)]
LongText = Annotated[str, named(parse_long_text), json_type("string")]
Flag = Annotated[bool, named(parse_flag), json_type("boolean")]
