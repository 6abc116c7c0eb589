"""What was asked of streams and what came of it: counts of both ends, a rate, and processors. One run over IPv6."""

import os
import re
from pathlib import Path

import pytest
from real_runs import Maker, Real, RealRun

RIG = "virtual: namespaces\nip_version: 6\nlinks: {rate: 1G, mtu: 1500}\nnodes: {a: , b: , c: , d: }\n"
CPU_STAT = Path("/sys/fs/cgroup/cpu/cpu.stat")
CPUS = sorted(os.sched_getaffinity(0))
FIRST, LAST = CPUS[0], CPUS[-1]
DURATION_S, OMIT_S = 1.0, 0.3
SCENARIO = f"""
rig: rig.yaml
pairs: [a -> b, c -> d]
duration: {DURATION_S}s
omit: {OMIT_S}s
max_skew: {DURATION_S}s
congestion: cubic
include:
- {{parallel: 3, direction: both}}
- {{parallel: 2, rate: 10M}}
- {{parallel: 2, placement: {{sender: {FIRST}, receiver: [{LAST}]}}}}
- {{parallel: 2, placement: nic}}
"""


def settings(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(RIG)
    maker.measures("settings", SCENARIO, "--no-report", code=3)


@pytest.fixture(scope="module")
def run(real: Real) -> RealRun:
    return real(settings)["settings"]


def test_the_counters_of_both_sides_reconcile_on_an_ipv6_rig(run: RealRun) -> None:
    levels = map(run.rows, ("flows", "pairs", "intervals"))
    flows, pairs, intervals = ([row for row in rows if row["cell"] == 1] for rows in levels)
    assert len(flows) == 2 * 2 * 3
    assert all(0 < row["duration_s"] <= DURATION_S - OMIT_S for row in flows)
    assert {row["direction"] for row in pairs} == {"forward", "reverse"}
    assert sum(row["bytes"] for row in flows) == sum(row["bytes"] for row in pairs)
    assert sum(row["bytes"] for row in intervals) == pytest.approx(sum(row["bytes"] for row in pairs), rel=1e-6)
    assert {(row["mss_effective"], row["congestion"]) for row in pairs} == {(1428, "cubic")}


def test_a_paced_stream_keeps_to_its_rate_and_its_ceiling_is_that_of_the_link(run: RealRun) -> None:
    rows = [row for row in run.rows() if row["cell"] == 2]
    assert [(row["status"], row["rate_mbps"], row["rate_effective_mbps"]) for row in rows] == [("ok", 10.0, 10.0)] * 2
    for row in rows:
        assert row["ceiling_mbps"] == pytest.approx(928.5, abs=0.05)
        # What is counted in the interval has been sent since the start of the flows.
        assert 0 < row["bytes"] * 8e-6 <= 1.05 * 2 * row["rate_mbps"] * DURATION_S


def test_flows_run_where_they_were_asked_to_run(run: RealRun) -> None:
    _, free, placed, refused = run.rows("cells")
    assert (placed["placement"], placed["status"]) == (f"{FIRST}/{LAST}", "ok")
    assert (placed["processors_sender"], placed["processors_receiver"]) == (f"{FIRST}: 100 %", f"{LAST}: 100 %")
    assert refused["status"] == "failed"
    told = "listen: placement: nic: this system does not tell the NUMA node of eth0"
    assert re.match(f"(b|d|b, d): {told}", refused["reason"])  # the first to refuse it ends the test
    assert (free["placement"], free["status"]) == (None, "ok")
    assert "%" in free["processors_sender"]
    assert f"Two flows share processor {FIRST} of " in " ".join(run.findings.split())


@pytest.mark.skipif(not CPU_STAT.exists(), reason="needs control groups of version 1")
def test_nodes_see_the_quota_that_the_machine_gives_them(run: RealRun) -> None:
    usage = [node for repetition in run.repetitions if repetition.status == "ok" for node in repetition.nodes]
    assert len(usage) >= 3 * 4
    assert None not in {node.throttled_us for node in usage}
