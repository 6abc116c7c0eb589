"""`show interfaces NAME` of Dell OS9, which was Force10's FTOS: counters from its input and output statistics."""

import re
from typing import Final

from rigctl.probe.switches.shown import Shown, UnreadableError, cleared_s_ago, head, number

_SECTIONS: Final = re.compile(r"^Input Statistics:(?P<in>.*?)^Output Statistics:(?P<out>.*?)(?=^\S|\Z)", re.M | re.S)
_OCTETS: Final = re.compile(r"(\d+) packets, (\d+) bytes")
_IN_LOST: Final = re.compile(r"(\d+) CRC, (\d+) overrun, (\d+) discarded")
_RUNTS: Final = re.compile(r"(\d+) runts, (\d+) giants")
_UNDERRUNS: Final = re.compile(r"bytes, (\d+) underruns")
_OUT_LOST: Final = re.compile(r"(\d+) discarded, \d+ collisions")


def parse(text: str) -> Shown:
    """One interface. Raises `UnreadableError`."""
    name = head(text)
    sections = _SECTIONS.search(text)
    if sections is None:
        raise UnreadableError("its answer to show interfaces has no input and output statistics")
    into, out = sections["in"], sections["out"]
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
