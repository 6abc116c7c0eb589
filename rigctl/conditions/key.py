"""The record of a condition's key: the type of its value in a file, and the conversion for agents and back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import PlainValidator, ValidationInfo

from rigctl.records import HostSetting
from rigctl.yamlfile import Mistake, YamlDocument

Mistakes: TypeAlias = Callable[[YamlDocument, tuple[str, ...], Mapping[str, Any]], Iterator[Mistake]]
MOST_NUMBER: Final = 2**32 - 1
"""Largest number in settings of network cards and queueing disciplines."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A key of a condition. The bounds of values are those of the agent (docs/reference/agent-protocol.md)."""

    name: str
    type: Any  # type of the value in a file, with validators
    field: Any  # pydantic `Field` with default, description and examples of the key
    settings: Callable[[Any], list[HostSetting]]  # host settings for a value, in the order in which to set them
    kind: str = ""  # name in the agent's orders; "": same as `name`
    of_interface: bool = True
    renegotiates: bool = False  # True: both ends negotiate again, so that the link goes down, perhaps after a moment
    first: bool = False  # True: set before all other keys, restored after them
    to_agent: Callable[[str], str] = str
    from_agent: Callable[[str], str] = str
    is_asked: Callable[[str, str], bool] = str.__eq__  # takes requested and effective value; True if they agree
    mistakes: Mistakes | None = None  # yields mistakes that `type` cannot find; None: there are none
    untried: Callable[[HostSetting], str | None] = lambda _: None
    """Names what a check cannot ask a node about a setting without changing it; None if it asks for all."""


def of_group(group: str, parse: Callable[[str, object], object]) -> PlainValidator:
    """Return a validator that calls `parse` with a value and its name for messages, such as `rings rx`."""

    def validate(value: object, info: ValidationInfo) -> object:
        return parse(f"{group} {info.field_name}", value)

    return PlainValidator(validate)
