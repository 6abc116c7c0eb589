"""`show interfaces NAME` of Dell OS9, which was Force10's FTOS: counters from its input and output statistics."""

import re
from typing import Final

from rigctl.probe.switches.shown import Shown, UnreadableError, cleared_s_ago, head, number

_SECTION: Final = re.compile(r"^(?=\S)", re.MULTILINE)
_OCTETS: Final = re.compile(r"(?<!\d)(\d{1,20}) packets, (\d{1,20}) bytes")
_IN_LOST: Final = re.compile(r"(?<!\d)(\d{1,20}) CRC, (\d{1,20}) overrun, (\d{1,20}) discarded")
_RUNTS: Final = re.compile(r"(?<!\d)(\d{1,20}) runts, (\d{1,20}) giants")
_UNDERRUNS: Final = re.compile(r"bytes, (\d{1,20}) underruns")
_OUT_LOST: Final = re.compile(r"(?<!\d)(\d{1,20}) discarded, \d{1,20} collisions")


def parse(text: str) -> Shown:
    """One interface. Raises `UnreadableError`."""
    name = head(text)
    sections = dict(part.partition(":")[::2] for part in reversed(_SECTION.split(text)))
    if not {"Input Statistics", "Output Statistics"} <= sections.keys():
        raise UnreadableError("its answer to show interfaces has no input and output statistics")
    into, out = sections["Input Statistics"], sections["Output Statistics"]
    in_packets, in_octets = number(_OCTETS, into, "the packets and bytes of the input")
    out_packets, out_octets = number(_OCTETS, out, "the packets and bytes of the output")
    damaged, overrun, in_discards = number(_IN_LOST, into, "CRC, overrun and discarded of the input")
    counters = {
        "in_octets": in_octets,
        "out_octets": out_octets,
        "in_packets": in_packets,
        "out_packets": out_packets,
        "in_discards": in_discards,
        "out_discards": number(_OUT_LOST, out, "discarded of the output")[0],
        "in_errors": damaged + overrun + sum(number(_RUNTS, into, "runts and giants of the input")),
        "out_errors": number(_UNDERRUNS, out, "underruns of the output")[0],
    }
    return Shown(name, counters, cleared_s_ago(text))
