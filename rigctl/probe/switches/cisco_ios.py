"""`show interfaces NAME` of Cisco IOS (Catalyst 6500 and its kin): counters from its fixed lines."""

import re
from typing import Final

from rigctl.probe.switches.shown import Shown, cleared_s_ago, head, number

_IN: Final = re.compile(r"^[ \t]*(\d{1,20}) packets input, (\d{1,20}) bytes", re.MULTILINE)
_OUT: Final = re.compile(r"^[ \t]*(\d{1,20}) packets output, (\d{1,20}) bytes", re.MULTILINE)
# Input queue: size/max/drops/flushes.
_QUEUES: Final = re.compile(
    r"Input queue: \d{1,20}/\d{1,20}/(\d{1,20})/\d{1,20} \(size/max/drops/flushes\); Total output drops: (\d{1,20})\b",
    re.IGNORECASE,
)
_IN_ERRORS: Final = re.compile(r"^[ \t]*(\d{1,20}) input errors", re.MULTILINE)
_OUT_ERRORS: Final = re.compile(r"^[ \t]*(\d{1,20}) output errors", re.MULTILINE)


def parse(text: str) -> Shown:
    """One interface. Raises `UnreadableError`."""
    name = head(text)
    in_packets, in_octets = number(_IN, text, "packets input")
    out_packets, out_octets = number(_OUT, text, "packets output")
    in_discards, out_discards = number(_QUEUES, text, "the drops of its queues")
    counters = {
        "in_octets": in_octets,
        "out_octets": out_octets,
        "in_packets": in_packets,
        "out_packets": out_packets,
        "in_discards": in_discards,
        "out_discards": out_discards,
        "in_errors": number(_IN_ERRORS, text, "input errors")[0],
        "out_errors": number(_OUT_ERRORS, text, "output errors")[0],
    }
    return Shown(name, counters, cleared_s_ago(text))
