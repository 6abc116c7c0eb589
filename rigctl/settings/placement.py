"""The setting `placement`: the processors on which the threads of flows run (scheduler, nic, packets, or a list)."""

import re
from typing import Any, Final

from rigctl.base.units import parse_processors, processors_text
from rigctl.settings.kinds import AGENT
from rigctl.settings.setting import Counts, Effective, Ends, OrderKey, Setting, Title, as_column
from rigctl.yamlfile.fields import FieldError, show_value

_SCHEDULER: Final = "scheduler"
NIC: Final = "nic"
PACKETS: Final = "packets"
_MOST_PROCESSOR: Final = 1023
_WORDS: Final = (_SCHEDULER, "default", NIC, PACKETS)
_LIST: Final = r"[0-9]{1,4}(-[0-9]{1,4})?([,+][0-9]{1,4}(-[0-9]{1,4})?)*"
_END: Final = rf"({'|'.join(_WORDS)}|{_LIST})"
_EXPECTED: Final = "expected scheduler, nic, packets or processors, as in 2,4-7"
_PROCESSOR_SCHEMA: Final = {"type": "integer", "minimum": 0, "maximum": _MOST_PROCESSOR}
_END_SCHEMA: Final = [
    {"type": "string", "pattern": rf"^\s*{_END}\s*$"},
    _PROCESSOR_SCHEMA,
    {"type": "array", "items": _PROCESSOR_SCHEMA, "minItems": 1},
]


def _end(name: str, value: object) -> str:
    """Return the placement of one end (sender or receiver) in the form that runs store. Raise `FieldError`."""
    numbers = value if isinstance(value, list) else [value] if type(value) is int else None
    if numbers and all(type(number) is int and 0 <= number <= _MOST_PROCESSOR for number in numbers):
        return processors_text(frozenset(numbers))
    text = "".join(value.split()) if isinstance(value, str) else ""
    if text in _WORDS:
        return _SCHEDULER if text == "default" else text
    if not re.fullmatch(_LIST, text):
        raise FieldError(f"{name} {show_value(value)}: {_EXPECTED}")
    try:
        processors = parse_processors(text.replace("+", ","))
    except ValueError:
        processors = frozenset()
    if not processors or max(processors) > _MOST_PROCESSOR:
        raise FieldError(f"{name} {show_value(value)}: expected processors from 0 to {_MOST_PROCESSOR}, as in 2,4-7")
    return processors_text(processors)


def _placement(name: str, value: object) -> str | None:
    if isinstance(value, dict):
        if not value or value.keys() - {"sender", "receiver"}:
            raise FieldError(f"{name} {show_value(value)}: expected sender, receiver or both, as in {{sender: nic}}")
        ends = [_end(name, value.get(key, _SCHEDULER)) for key in ("sender", "receiver")]
    else:
        parts = value.split("/") if isinstance(value, str) else [value]
        if len(parts) > 2:
            raise FieldError(f"{name} {show_value(value)}: expected one placement, or SENDER/RECEIVER, as in nic/3")
        ends = [_end(name, part) for part in (parts * 2 if len(parts) == 1 else parts)]
    return None if set(ends) == {_SCHEDULER} else ends[0] if ends[0] == ends[1] else "/".join(ends)


def of_end(placement: str | None, sends: bool) -> str | None:
    """Return the placement of the sender (`sends`) or the receiver; None if the scheduler chooses processors."""
    end = (placement or _SCHEDULER).split("/")[0 if sends else -1]
    return None if end == _SCHEDULER else end


def _as_asked(asked: str | None, side: Any) -> bool:  # noqa: ANN401 — a `Side` of rigctl.records, which imports this module
    """Tell whether an end of a flow ran on the requested processors; True if unknown, as for `packets`."""
    end = of_end(asked, side.sending)
    if end == NIC:
        return side.numa.node is None or side.numa.card is None or bool(side.numa.node == side.numa.card)
    if end is None or end == PACKETS:
        return True
    return {processor for processor, _ in side[PLACEMENT]} <= parse_processors(end)


def _phrase(placement: str | None) -> str:
    ends = (placement or _SCHEDULER).split("/")
    return f"placement {ends[0]}" if len(ends) == 1 else f"placement {ends[0]} (sender), {ends[1]} (receiver)"


PLACEMENT: Final[Setting[Any]] = Setting(
    name="placement",
    meaning="Where the threads of flows run: scheduler (anywhere, the default), nic (the processors of the card's NUMA "
    "node), packets (the processor that handles the socket's packets) or processors, as 2,4-7; of both ends, or "
    "{sender: nic, receiver: 3}.",
    parse=_placement,
    text=lambda placement: placement or _SCHEDULER,
    schema={
        "anyOf": [
            {"type": "string", "pattern": rf"^\s*{_END}\s*(/\s*{_END}\s*)?$"},
            *_END_SCHEMA[1:],
            {
                "type": "object",
                "properties": {"sender": {"anyOf": _END_SCHEMA}, "receiver": {"anyOf": _END_SCHEMA}},
                "additionalProperties": False,
                "minProperties": 1,
            },
        ],
        "examples": [NIC, PACKETS, "2,4-7"],
    },
    unset=None,
    default=_SCHEDULER,
    type=str,
    engines=(AGENT,),
    order=OrderKey("placement", of_end=of_end),
    effective=Effective(
        "processors", Counts, Ends.BOTH, equal=_as_asked, columns=("processors_sender", "processors_receiver")
    ),
    columns=(
        as_column("placement", "", "requested placement of both ends, or sender/receiver; empty: any processors"),
        as_column("processors_sender", "", "processors on which the senders' threads ran, with shares of samples"),
        as_column("processors_receiver", "", "processors on which the receivers' threads ran, with shares of samples"),
        as_column("numa_sender", "", "NUMA node of the senders' processors; empty if unknown, or several"),
        as_column("numa_receiver", "", "NUMA node of the receivers' processors; empty if unknown, or several"),
        as_column("card_numa_sender", "", "NUMA node of the sender's card; empty if unknown, or without a card"),
        as_column("card_numa_receiver", "", "NUMA node of the receiver's card; empty if unknown, or without a card"),
    ),
    title=Title("Placement"),
    phrase=_phrase,
)
