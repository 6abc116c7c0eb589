"""Clocks that run at different speeds over a long test: start skew and measurement interval stay right."""

import os
import time

import pytest
from machine_lab import Lab

DRIFT_PPM = 200
DURATION_S = int(os.environ.get("RIGCTL_DRIFT_S", "600"))
pytestmark = [pytest.mark.machines, pytest.mark.timeout(DURATION_S + 900)]


def test_a_drift_of_200_ppm_over_a_long_test_moves_neither_skew_nor_interval(mixed: Lab) -> None:
    mixed.ssh("arm", f"busybox adjtimex -q -t {10_000 + DRIFT_PPM // 100}")
    text = f"pairs: [amd -> arm, arm -> amd]\ntest: udp\nduration: {DURATION_S}s\nmatrix: {{rate: [1M]}}\n"
    try:
        before, began = {node: mixed.ahead_s(node) for node in mixed.nodes}, time.monotonic()
        mixed.good(mixed.scenario(text), "--set", "max_skew=1s", deadline_s=DURATION_S + 400)
        after, took_s = {node: mixed.ahead_s(node) for node in mixed.nodes}, time.monotonic() - began
    finally:
        mixed.ssh("arm", "busybox adjtimex -q -t 10000")
    print(f"load average {os.getloadavg()}")
    drift_ppm, error_ppm = {}, {}
    for node in mixed.nodes:
        drift_ppm[node] = (after[node][0] - before[node][0]) / took_s * 1e6
        error_ppm[node] = (after[node][1] + before[node][1]) / took_s * 1e6
    print(f"drift against this machine over {took_s:.0f} s, ppm: {drift_ppm}, by looks exact to {error_ppm}")
    rows = mixed.user.rows()
    for row in rows:
        figures = [row[name] for name in ("source", "duration_s", "goodput_mbps", "start_skew_us")]
        print(f"from, interval (s), goodput (Mbit/s), start skew (us): {figures}")
    apart_ppm, exact_ppm = drift_ppm["arm"] - drift_ppm["amd"], sum(error_ppm.values())
    assert apart_ppm == pytest.approx(DRIFT_PPM, abs=exact_ppm + 0.1 * DRIFT_PPM)
    assert len(rows) == 2
    for row in rows:
        assert row["duration_s"] == pytest.approx(DURATION_S, abs=0.3)
        assert 0.5 < row["goodput_mbps"] < 1.05  # a drift would not show in it; an emulated sender that waits does
        # What a drift would add to it, were it judged by the clocks of the end.
        assert row["start_skew_us"] < 0.5 * DRIFT_PPM * DURATION_S
