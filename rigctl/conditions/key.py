"""The record of a key of a condition: what stands in a file, what the agent is asked, and how its answer is read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from rigctl.records import HostSetting
from rigctl.yamlfile import Document, FieldError, Mistake
from rigctl.yamlfile.fields import show_value

Mistakes: TypeAlias = Callable[[Document, tuple[str, ...], Mapping[str, Any]], Iterator[Mistake]]
ON_OFF: Final = WithJsonSchema({"enum": ["on", "off", True, False]})
MOST_NUMBER: Final = 2**32 - 1
"""The largest number of a card or a queueing discipline."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A key of a condition. The bounds of its values are the agent's own (docs/reference/agent-protocol.md)."""

    name: str
    type: Any  # of its value in a file: a type with validators
    field: Any  # pydantic's: default, description, examples
    settings: Callable[[Any], list[HostSetting]]  # what a value stands for, in the order in which it is set
    kind: str = ""  # by which the agent knows it; "": its name
    of_interface: bool = True
    first: bool = False  # set before all others, and restored after them
    to_agent: Callable[[str], str] = str
    from_agent: Callable[[str], str] = str
    is_asked: Callable[[str, str], bool] = str.__eq__  # whether a value, as `from_agent` returns it, is what was asked
    mistakes: Mistakes | None = None  # what contradicts other keys of the condition, from the values of them all


def parse_on_off(what: str, value: object) -> str:
    """Return `on` or `off`, or raise `FieldError`. YAML's own booleans count too: `gro: true` is on."""
    word = {True: "on", False: "off"}.get(value, "") if isinstance(value, bool) else str(value).lower()
    if word not in {"on", "off"}:
        raise FieldError(f"{what} {show_value(value)}: expected on or off")
    return word


def of_group(group: str, parse: Callable[[str, object], object]) -> PlainValidator:
    """Return `parse` as a validator whose messages name the group and the key, as in `rings rx`."""

    def validate(value: object, info: ValidationInfo) -> object:
        return parse(f"{group} {info.field_name}", value)

    return PlainValidator(validate)
