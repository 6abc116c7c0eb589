"""What happens to machines in a run: a reboot, a panic, a full disk, a clock that is set back or drifts."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from machine_lab import LEFT, SETTINGS, Lab

pytestmark = [pytest.mark.machines, pytest.mark.timeout(900)]
LONG = "pairs: [amd -> arm]\nduration: 20s\nmax_skew: 10s\nconditions:\n  one: {mtu: 1400}\n"


def during(lab: Lab, what: Callable[[], object]) -> tuple[int, str]:
    with lab.running(lab.scenario(LONG), "arm") as process:
        lab.await_traffic("arm")
        what()
        out, errors = process.communicate(timeout=300)
    return process.returncode, out + errors


def quietly(lab: Lab, node: str, command: str) -> None:
    """A command that the node does not survive."""
    try:
        lab.ssh(node, command, check=False, deadline_s=10)
    except subprocess.TimeoutExpired:
        return


@pytest.mark.parametrize(
    ("name", "command"),
    [("a reboot", "reboot -f"), ("a kernel panic", "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")],
)
def test_a_node_that_starts_anew_in_mid_run_is_named_and_as_before(mixed: Lab, name: str, command: str) -> None:
    before, boot = mixed.each(SETTINGS), mixed.boot_id("arm")
    code, said = during(mixed, lambda: quietly(mixed, "arm", f"({command}) >/dev/null 2>&1 &"))
    back = mixed.back("arm", boot)
    print(f"{name}: run ended with {code}, node back {back:.0f} s later: {said[-600:]}")
    assert code in (0, 3)
    assert "arm" in said
    mixed.contact()
    assert mixed.each(SETTINGS) == before
    assert mixed.each(LEFT) == dict.fromkeys(mixed.nodes, "")


@contextmanager
def full(lab: Lab, node: str, *mounts: str) -> Iterator[None]:
    """No room for an agent on the node's disk and on these tmpfs."""
    forget = "rm -rf /root/.cache/rigctl /tmp/rigctl-0 /var/tmp/rigctl-0 /dev/shm/rigctl-0"
    grow = "; ".join(["rm -f /root/full; sync", *(f"mount -o remount,size=50% {mount}" for mount in mounts)])
    fill = "head -c 2G /dev/zero >/root/full 2>/dev/null; sync; df --output=pcent / | tail -1"
    try:
        lab.ssh(node, " && ".join([forget, *(f"mount -o remount,size=16k {mount}" for mount in mounts)]))
        assert lab.ssh(node, fill).strip() == "100%"
        yield
    finally:
        lab.ssh(node, grow)


def test_with_a_full_disk_on_a_node_the_agent_lies_in_memory_and_settings_are_put_back(mixed: Lab) -> None:
    before, name = mixed.each(SETTINGS), mixed.scenario(LONG.replace("20s", "3s"))
    with full(mixed, "arm"):
        mixed.good(name)
        said = mixed.user.rigctl("check", str(mixed.file), "--json", deadline_s=200)
        assert "the agent ran from /tmp/rigctl-0 and was then removed" in said
        assert mixed.ssh("arm", "ls -d /tmp/rigctl-0 2>&1; true").endswith("No such file or directory\n")
        assert mixed.each(SETTINGS) == before
        assert mixed.each(LEFT) == dict.fromkeys(mixed.nodes, "")


def test_a_node_without_any_room_for_the_agent_is_one_message_and_nothing_is_changed(mixed: Lab) -> None:
    before, name = mixed.each(SETTINGS), mixed.scenario(LONG.replace("20s", "3s"))
    with full(mixed, "arm", "/tmp", "/dev/shm"):
        code, said = mixed.run(name)
    print(f"no room: {code}: {said}")
    assert code == 3
    (message,) = said.strip().splitlines()
    assert message.startswith("rigctl: arm: could not put the agent into /tmp/rigctl-0: ")
    assert "No space left on device" in message
    assert mixed.each(SETTINGS) == before
    mixed.contact()
    assert mixed.each(LEFT) == dict.fromkeys(mixed.nodes, "")


def test_a_clock_set_back_by_hours_in_mid_run_does_not_move_the_measurement(mixed: Lab) -> None:
    before = mixed.each(SETTINGS)
    code, said = during(mixed, lambda: mixed.ssh("arm", "date -s '-5 hours'"))
    mixed.ssh("arm", "date -s '+5 hours'")
    print(f"clock set back: {code}: {said[-600:]}")
    assert code == 0, said
    (row,) = mixed.user.rows()
    assert row["duration_s"] == pytest.approx(20, abs=1)
    assert mixed.each(SETTINGS) == before


def test_a_clock_that_was_set_back_before_the_run_changes_nothing(mixed: Lab) -> None:
    mixed.ssh("arm", "date -s '-5 hours'")
    try:
        mixed.contact()
        found = json.loads(mixed.user.rigctl("check", str(mixed.file), "--json", deadline_s=200))
    finally:
        mixed.ssh("arm", "date -s '+5 hours'")
    codes = [finding["code"] for finding in found["findings"]]
    assert "clock-off" in codes, codes


DRIFT_PPM = 500
DURATION_S = int(os.environ.get("RIGCTL_DRIFT_S", "600"))


@pytest.mark.timeout(DURATION_S + 900)
def test_a_drift_of_500_ppm_over_a_long_test_moves_neither_skew_nor_interval(mixed: Lab) -> None:
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
        assert row["duration_s"] == pytest.approx(DURATION_S, abs=0.3 + DRIFT_PPM * DURATION_S / 1e6)
        assert 0.5 < row["goodput_mbps"] < 1.05  # a drift would not show in it; an emulated sender that waits does
        # What a drift would add to it, were it judged by the clocks of the end.
        assert row["start_skew_us"] < 0.9 * DRIFT_PPM * DURATION_S  # busy machines start up to 126 ms apart
