"""The engine `iperf3`: a test's settings as command lines of iperf3(1), one server and one client for each pair.

The client runs on the pair's source; `-R` and `--bidir` turn the data around, as people do by hand. The start is never
omitted by iperf3 (`-O`): the controller cuts it, as it does for the agent.
"""

from collections.abc import Sequence

from rigctl.records import Cell, Direction
from rigctl.settings import CONGESTION, MSS, NODELAY, WINDOW

MOST_ROWS = 40_000
"""Samples of one process, over all of its flows: about 300 bytes of JSON each."""


def interval_s(cell: Cell, least_s: float) -> float:
    """Time between samples: `least_s`, longer where a process would have more than `MOST_ROWS`; 60 s is its longest."""
    flows = cell.parallel * (2 if cell.direction is Direction.BOTH else 1)
    return min(60.0, max(least_s, round(cell.duration_s * flows / MOST_ROWS + 0.05, 1)))


def server_words(address: str, port: int, interval: float) -> Sequence[str]:
    """The server of one pair: one test, then it ends."""
    return ("iperf3", "-s", "-1", "-J", "-B", address, "-p", str(port), "-i", f"{interval:g}")


def client_words(
    cell: Cell, address: str, port: int, bind: str, interval: float, rate_bps: int | None
) -> Sequence[str]:
    """The client of one pair. `rate_bps` is that of each UDP flow; None: as fast as it can."""
    words = ["iperf3", "-c", address, "-p", str(port), "-B", bind, "-J", "-i", f"{interval:g}"]
    words += ["-t", f"{cell.duration_s:g}", "-P", str(cell.parallel)]
    words += {Direction.REVERSE: ["-R"], Direction.BOTH: ["--bidir"]}.get(cell.direction, [])
    if cell.transport == "udp":
        words += ["-u", "-b", str(rate_bps or 0), "-l", str(cell.message_bytes)]
    if cell[WINDOW] is not None and not cell.resize:
        words += ["-w", str(cell[WINDOW])]
    if cell[MSS] is not None:
        words += ["-M", str(cell[MSS])]
    if cell[CONGESTION] is not None:
        words += ["-C", cell[CONGESTION]]
    if cell[NODELAY]:
        words.append("-N")
    return words
