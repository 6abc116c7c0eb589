"""Measure: one file per test; orders for a cell, records from replies. Pure: no network, no clock.

`TESTS` has the orders of every kind of test (rigctl.kinds), by its name.
"""

from typing import Final

from rigctl.measure import file, tcp, udp
from rigctl.measure.messages import Messages
from rigctl.measure.test import Channel, Test, channels
from rigctl.settings.kinds import KINDS

TESTS: Final[dict[str, Test]] = {
    "tcp": tcp,
    "udp": udp,
    "pingpong": Messages(KINDS["pingpong"]),
    "blast": Messages(KINDS["blast"]),
    "file": file,
}

__all__ = ["TESTS", "Channel", "Test", "channels"]
