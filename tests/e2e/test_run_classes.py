"""Classes that are measured together: virtual rigs, real SSH, real agents, and a shaper with two bands."""

import json
import os
import signal
import time
from typing import Any, Final

import pytest
from processes import end, eventually
from user import User

SHAPED_BPS: Final = 19e6
QUEUE_BYTES: Final = 100_000
VOICE_BPS: Final = 1e6 * (200 + 14 + 28) / 200
"""What voice takes of the shaper: payload and headers, as the kernel counts them."""
RIG: Final = "title: one slow link\nvirtual: namespaces\nlinks: {rate: 20M, mtu: 1500}\nnodes: {a: , b: }\n"
QOS: Final = f"""
rig: ./r.yaml
pairs: [a -> b]
duration: 3s
omit: 1s
max_skew: 1s
latency: true
classes:
  voice: {{test: udp, rate: {round(VOICE_BPS * 200 / 242)}, size: 200, dscp: EF}}
  bulk: {{test: udp, rate: 30M}}
"""
BANDS: Final = f"""
set -e
tc qdisc replace dev eth0 root handle 1: htb default 20 r2q 100
tc class add dev eth0 parent 1: classid 1:1 htb rate {SHAPED_BPS:.0f}bit burst 3k cburst 3k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil {SHAPED_BPS:.0f}bit prio 0 burst 3k cburst 3k
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 17mbit ceil {SHAPED_BPS:.0f}bit prio 1 burst 3k cburst 3k
tc qdisc add dev eth0 parent 1:20 bfifo limit {QUEUE_BYTES}
"""
EXPEDITED: Final = "tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10"


def by_class(user: User, level: str = "cells") -> dict[str, dict[str, Any]]:
    return {row["class"]: row for row in user.rows(level)}


def test_two_classes_run_together_and_have_a_row_each(user: User) -> None:
    scenario = user.scenario(
        "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 1s\nmax_skew: 1s\n"
        "classes:\n  voice: {test: udp, rate: 2M, dscp: EF}\n  bulk: {parallel: 4, congestion: cubic}\n"
    )
    assert "Total time: 1 s (2 tests, 2 at the same time)" in user.rigctl("plan", scenario)
    said = user.rigctl("run", scenario, "--report", "c.html")
    assert "at the same time" in said
    rows = by_class(user)
    assert [(name, row["test"], row["cell"]) for name, row in rows.items()] == [("voice", "udp", 1), ("bulk", "tcp", 2)]
    assert rows["voice"]["rate_mbps"] == 2
    assert 0 < rows["voice"]["goodput_mbps"] < 2.2 < rows["bulk"]["goodput_mbps"]
    assert rows["voice"]["duration_s"] == rows["bulk"]["duration_s"]
    assert [row["flow"] for row in user.rows("flows")] == [1, 1, 2, 3, 4]
    document = json.loads(user.rigctl("show", "--json"))
    assert document["findings"][0]["text"].startswith("At the same time: voice ")
    page = (user.folder / "c.html").read_text()
    assert "voice" in page
    assert "bulk" in page


@pytest.mark.quiet
def test_a_class_with_priority_waits_for_a_packet_and_without_it_for_the_queue(user: User) -> None:
    """Round trips are within 15 % of queue ÷ rate; the class with priority waits for less than two packets."""
    (user.folder / "r.yaml").write_text(RIG)
    scenario = user.scenario(QOS)
    user.rigctl("rig", "up", "r.yaml")
    try:
        user.rigctl("rig", "exec", "r.yaml", "a", "--", BANDS)
        user.rigctl("run", scenario, "--no-report")
        waits = {name: row["latency_rise_us"] / 1e6 for name, row in by_class(user).items()}
        assert waits["voice"] == pytest.approx(QUEUE_BYTES * 8 / SHAPED_BPS, rel=0.15)
        assert waits["bulk"] == pytest.approx(QUEUE_BYTES * 8 / SHAPED_BPS, rel=0.15)
        assert "No class goes first" in user.findings()

        user.rigctl("rig", "exec", "r.yaml", "a", "--", EXPEDITED)
        user.rigctl("run", scenario, "--no-report")
        waits = {name: row["latency_rise_us"] / 1e6 for name, row in by_class(user).items()}
        assert waits["bulk"] == pytest.approx(QUEUE_BYTES * 8 / (SHAPED_BPS - VOICE_BPS), rel=0.15)
        assert waits["voice"] < 2 * 1514 * 8 / SHAPED_BPS
        assert "voice goes before bulk" in user.findings()
    finally:
        user.rigctl("rig", "down", "r.yaml")


def test_an_agent_killed_in_a_test_fails_all_its_classes_and_a_resumed_run_measures_them(user: User) -> None:
    scenario = user.scenario(
        "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 3s\nmax_skew: 1s\nrepeat: 2\n"
        "classes:\n  voice: {test: udp, rate: 2M}\n  bulk: {congestion: cubic}\n"
    )
    process = user.start("run", scenario, "--no-report")
    try:
        eventually(lambda: len(user.agents()) >= 2)
        time.sleep(1.5)
        os.kill(user.agents()[0], signal.SIGKILL)
        said = process.communicate(timeout=90)
    finally:
        end(process)
    assert process.returncode == 3, said
    rows = [(row["class"], row["repetition"], row["status"]) for row in user.rows("cells")]
    statuses = {repetition: {status for _, own, status in rows if own == repetition} for repetition in (1, 2)}
    assert len(rows) == 4
    assert [len(own) for own in statuses.values()] == [1, 1], rows
    assert {"failed"} in statuses.values()
    user.rigctl("run", scenario, "--no-report", "--resume")
    assert {(row["class"], row["repetition"], row["status"]) for row in user.rows("cells")} == {
        (name, number, "ok") for name in ("voice", "bulk") for number in (1, 2)
    }
