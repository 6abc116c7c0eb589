"""Measure: one file per test; orders for a cell, records from replies. Pure: no network, no clock.

`TESTS` is the list of what can be measured; a scenario's `test:` is one of its keys.
"""

from typing import Final

from rigctl.measure import file, tcp, udp
from rigctl.measure.messages import Messages
from rigctl.measure.test import Channel, Test, channels

TESTS: Final[dict[str, Test]] = {
    "tcp": tcp,
    "udp": udp,
    "pingpong": Messages("pingpong"),
    "blast": Messages("blast"),
    "file": file,
}

__all__ = ["TESTS", "Channel", "Test", "channels"]
