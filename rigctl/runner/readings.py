"""Readings of one switch's ports, kept as numbers in a row: a long test has thousands of them, of dozens of ports."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Final

from rigctl.probe.switches import PortCounters

MOST_READINGS: Final = 2000
"""Where there are more, every other one is dropped."""

COLUMNS: Final = tuple(field.name for field in fields(PortCounters))
_UNKNOWN: Final = 2**64 - 1


class Readings:
    """Of one switch, in the order in which they were taken."""

    def __init__(self, ports: Sequence[str]) -> None:
        self._ports = {port: at * len(COLUMNS) for at, port in enumerate(ports)}
        self._times: list[int] = []
        self._rows: list[array[int]] = []  # COLUMNS of each port

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, reading: Mapping[str, PortCounters]) -> None:
        """Ports that are not in `reading`, and counters that are none, are unknown in it."""
        row = array("Q", [_UNKNOWN]) * (len(self._ports) * len(COLUMNS))
        for port, start in self._ports.items():
            for at, name in enumerate(COLUMNS, start) if port in reading else ():
                value = getattr(reading[port], name)
                row[at] = value if value is not None and 0 <= value < _UNKNOWN else _UNKNOWN
        self._times.append(min((counters.t_ns for counters in reading.values()), default=0))
        self._rows.append(row)
        if len(self) > MOST_READINGS:
            del self._times[1:-1:2], self._rows[1:-1:2]

    def forget_before(self, t_ns: int) -> None:
        """Keep the last reading before `t_ns` and what comes later."""
        first = next((at for at, when in enumerate(self._times) if when > t_ns), len(self))
        del self._times[: max(0, first - 1)], self._rows[: max(0, first - 1)]

    def between(self, start_ns: int, end_ns: int, port: str) -> dict[str, list[int]]:
        """Columns of `port`, from the last reading before `start_ns` to the first after `end_ns`, if there is one.

        As in `PortSeries.columns`: -1 is unknown, and what is unknown throughout is left out.
        """
        first = max((at for at, when in enumerate(self._times) if when <= start_ns), default=0)
        last = min((at for at, when in enumerate(self._times) if when >= end_ns), default=len(self) - 1)
        start = self._ports[port]
        rows = [row[start : start + len(COLUMNS)] for row in self._rows[first : last + 1]]
        taken = [row for row in rows if row[0] != _UNKNOWN]
        columns = {name: [row[at] for row in taken] for at, name in enumerate(COLUMNS)}
        return {
            name: [-1 if value == _UNKNOWN else value for value in values]
            for name, values in columns.items()
            if any(value != _UNKNOWN for value in values)
        }
