"""Clocks that run at different speeds over a long test: start skew and measurement interval stay right."""

import os
import time

import pytest
from machine_lab import Lab

DRIFT_PPM = 200
DURATION_S = int(os.environ.get("RIGCTL_DRIFT_S", "600"))
pytestmark = [pytest.mark.machines, pytest.mark.timeout(DURATION_S + 900)]


def ahead_s(lab: Lab, node: str) -> float:
    """How far a node's clock is ahead of this machine's: of ten looks the one with the shortest round trip."""
    looks = []
    for _ in range(10):
        sent = time.time()
        said = float(lab.ssh(node, "date +%s.%N"))
        got = time.time()
        looks.append((got - sent, said - (sent + got) / 2))
    return min(looks)[1]


def test_a_drift_of_200_ppm_over_a_long_test_moves_neither_skew_nor_interval(mixed: Lab) -> None:
    mixed.ssh("arm", f"busybox adjtimex -q -t {10_000 + DRIFT_PPM // 100}")
    text = f"pairs: [amd -> arm, arm -> amd]\ntest: udp\nduration: {DURATION_S}s\nmatrix: {{rate: [1M]}}\n"
    try:
        before, began = {node: ahead_s(mixed, node) for node in mixed.nodes}, time.time()
        mixed.good(mixed.scenario(text), "--set", "max_skew=1s", deadline_s=DURATION_S + 400)
        after, took_s = {node: ahead_s(mixed, node) for node in mixed.nodes}, time.time() - began
    finally:
        mixed.ssh("arm", "busybox adjtimex -q -t 10000")
    drift_ppm = {node: (after[node] - before[node]) / took_s * 1e6 for node in mixed.nodes}
    print(f"drift against this machine over {took_s:.0f} s, ppm: {drift_ppm}")
    rows = mixed.user.rows()
    for row in rows:
        figures = [row[name] for name in ("source", "duration_s", "goodput_mbps", "start_skew_us")]
        print(f"from, interval (s), goodput (Mbit/s), start skew (us): {figures}")
    if DURATION_S >= 300:  # else the looks are not exact enough
        assert drift_ppm["arm"] - drift_ppm["amd"] > DRIFT_PPM / 2
    assert len(rows) == 2
    for row in rows:
        assert row["duration_s"] == pytest.approx(DURATION_S, rel=0.001, abs=0.2)
        assert row["goodput_mbps"] == pytest.approx(1.0, rel=0.05)
        # What a drift would add to it, were it judged by the clocks of the end.
        assert row["start_skew_us"] < 0.5 * DRIFT_PPM * DURATION_S
