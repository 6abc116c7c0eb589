"""Links with a round-trip time: whether they keep the time, and whether goodput equals window ÷ round trip.

`python tests/bench/bench_distance.py [--rounds 3] [--seconds 3]`. The rig `stratus` has round trips of 1, 5 and 20 ms.
One flow has windows of 8 to 64 KB, and segments of 1448 bytes (the most on Ethernet) or of 1024 bytes (of which each
window holds an even number). The ratios are goodput over window ÷ round trip of the rig file: for the requested window,
and for the window that the receiver offered (tcpi_snd_wnd, median), which is whole segments. Pings show how well a
link keeps its round-trip time.
"""

import itertools
import re
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import command, ran, table, timed

from rigctl.limits.ceilings import window_bps

ROUND_TRIPS_MS = (1, 5, 20)
WINDOWS_K = (8, 16, 32, 64)
MSS = (1460, 1036)  # timestamps take 12 bytes of each segment


def ratios(folder: Path, rtt_ms: int, mss: int, seconds: float) -> Iterator[tuple[float, ...]]:
    """Yield per window: segment (bytes), requested and offered window (KiB), goodput (Mbit/s), ratios to both."""
    windows = ",".join(f"{window}K" for window in WINDOWS_K)
    how = ["--rig-set", f"nodes.far.rtt={rtt_ms}ms", "--set", f"window={windows}", "--set", f"mss={mss}"]
    measured = ran(folder, "stratus", *how, "--duration", f"{seconds + 1:g}s", "--no-report").repetitions()
    for one, window in zip(measured, WINDOWS_K, strict=True):
        (flow,) = one.flows
        assert one.status == "ok", one.reason
        assert flow.sender is not None
        goodput = (flow.bytes or 0) * 8e3 / ((one.window_end_ns or 0) - (one.window_start_ns or 0))
        offered = round(statistics.median(flow.sender.series.columns["advertised_window"]))
        of_asked, of_offered = (goodput / (window_bps(w, rtt_ms / 1e3) / 1e6) for w in (1024 * window, offered))
        yield flow.sender.tcp.mss or 0, window, offered / 1024, goodput, of_asked, of_offered


def round_trip_us(rig: str, near: str, far: str) -> tuple[float, float]:
    output = timed("rig", "exec", rig, near, "--", "ping", "-q", "-c", "300", "-i", "0.005", far).output
    found = re.search(r"= [\d.]+/([\d.]+)/([\d.]+)/", output)
    assert found is not None
    return 1e3 * float(found[1]), 1e3 * float(found[2])


def main(rounds: int = 3, seconds: float = 3.0) -> None:
    with tempfile.TemporaryDirectory() as name:
        table("Round trip of pings, 5 ms apart", ("rig", "mean, µs", "largest, µs"), pings(Path(name)))
        heads = ("segment", "round trip", "window", "offered, KiB", "goodput, Mbit/s", "of asked", "of offered")
        rows = windows(Path(name), rounds, seconds)
        table(f"Goodput over window ÷ round trip, median of {rounds}; wanted: 0.95 to 1.05", heads, rows)


def pings(folder: Path) -> Iterator[tuple[str, ...]]:
    plain = "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes: {near: , far: }\n"
    for rtt_ms in (None, *ROUND_TRIPS_MS):
        rig = folder / "rig.yaml"
        rig.write_text(plain if rtt_ms is None else plain.replace("far: ", f"far: {{rtt: {rtt_ms}ms}}"))
        mean_us, largest_us = round_trip_us(str(rig), "near", "far")
        yield "plain links" if rtt_ms is None else f"{rtt_ms} ms", f"{mean_us:.0f}", f"{largest_us:.0f}"


def windows(folder: Path, rounds: int, seconds: float) -> Iterator[tuple[str, ...]]:
    for mss, rtt_ms in itertools.product(MSS, ROUND_TRIPS_MS):
        runs = [ratios(folder, rtt_ms, mss, seconds) for _ in range(rounds)]
        for rows in zip(*runs, strict=True):
            segment, window, offered, *figures = (statistics.median(column) for column in zip(*rows, strict=True))
            goodput, of_asked, of_offered = figures
            known = (f"{segment:.0f} B", f"{rtt_ms} ms", f"{window:.0f}K", f"{offered:.1f}", f"{goodput:.2f}")
            yield *known, f"{of_asked:.3f}", f"{of_offered:.3f}"


if __name__ == "__main__":
    command(__doc__, main)
