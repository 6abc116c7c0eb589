"""Runs on rigs of their own: counters of real switches beside real flows, a mesh with a node that is slower, IPv6.

The run over IPv6 has what was asked of streams and what came of it: counts of both ends, a rate, and processors.
Multipath TCP goes over two links, and over one after a fallback.
"""

import json
import os
import re
import subprocess
from itertools import permutations
from typing import Any

import pytest
from real_runs import Maker, Real
from two_links import link, of_node, use
from user import User, kept_up

SWITCHES = """\
switches:
  left: {title: Left, mtu: 9216, snmp: {version: 2c}}
  right: {title: Right, mtu: 9216, snmp: {version: 2c}}
trunk: {rate: 1G}
virtual: namespaces
links: {rate: 100M, mtu: 1500}
nodes:
  a: {switch: left}
  b: {switch: right}
"""
COUNTED = """
rig: rig.yaml
pairs: [a -> b]
duration: 1500ms
max_skew: 1500ms
matrix: {dscp: [default, AF11], parallel: 2, congestion: cubic}
"""
LOSS = "ip dscp af11 ip length > 500 numgen random mod 100 < 2 counter drop"
"""What the switch loses: nothing of the first test."""


# On a busy machine, too, the other nodes are nowhere near as slow as n3.
RIG = 'virtual: namespaces\nnodes: {"n[1..2]": {rate: 100M}, n3: {rate: 10M}}\n'
MESH = "\nrig: rig.yaml\npairs: mesh\nduration: 500ms\nmax_skew: 500ms\n"
OF_FOUR = "virtual: namespaces\nlinks: {rate: 100M}\nnodes: {n1: , n2: , n3: , n4: }\n"
OF_IPV6 = "virtual: namespaces\nip_version: 6\nlinks: {rate: 1G, mtu: 1500}\nnodes: {a: , b: , c: , d: }\n"
CPUS = sorted(os.sched_getaffinity(0))
FIRST, LAST = CPUS[0], CPUS[-1]
DURATION_S, OMIT_S = 1.0, 0.3
SETTINGS = f"""
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


def counted(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(SWITCHES)
    table = f"table bridge loss {{ chain some {{ type filter hook forward priority 0; oifname b {LOSS}\n}}\n}}\n"
    with kept_up(maker, "rig.yaml"):
        subprocess.run(["nsenter", "-t", maker.holder(), "-n", "nft", "-f", "-"], input=table, text=True, check=True)
        maker.measures("counted", COUNTED, "--no-report")


def test_counters_agree_with_the_flows_and_losses_in_a_switch_are_found_at_its_port(real: Real) -> None:
    run = real(counted)["counted"]
    assert re.search(r"counters show .*: a difference of (less than 0\.1|0\.[1-9]) %", run.findings["counters"]["text"])
    place = run.findings["loss-place"]["text"]
    assert re.search(r"(All of|Of) about \d.* retransmits .* were lost at switch right, port b", place)


ONE_PORT = "virtual: namespaces\ndata_ports: 5200-5200\nlinks: {rate: 100M}\nnodes: {a: , b: }\n"
BRIEF = "\nrig: rig.yaml\npairs: [a -> b]\nduration: 500ms\nmax_skew: 500ms\nmatrix: {parallel: [1, 10]}\n"


def one_port(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(ONE_PORT)
    with kept_up(maker, "rig.yaml"):
        for name in ("first", "second"):
            maker.measures(f"{name}-tcp", BRIEF)
            maker.measures(f"{name}-udp", f"{BRIEF}test: udp\nrate: 1M\nsize: 500\n")


def test_runs_follow_each_other_at_once_on_the_only_data_port_and_each_flow_gets_its_datagrams(real: Real) -> None:
    runs = real(one_port)
    assert [row["status"] for run in runs.values() for row in run.rows()] == ["ok"] * 8
    for run in (runs["first-udp"], runs["second-udp"]):
        flows = run.rows("flows")
        assert [flow["loss_pct"] for flow in flows] == [0] * 11
        assert all(flow["datagrams_sent"] > 0 for flow in flows)


def mesh(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(RIG)
    with kept_up(maker, "rig.yaml"):
        maker.measures("mesh", MESH)


def test_a_mesh_measures_every_ordered_pair_and_names_the_slow_node_once(real: Real) -> None:
    run = real(mesh)["mesh"]
    assert " 3/6  n2 → n1 " in run.said
    assert "Client by server" in run.said
    measured = {(row["source"], row["destination"]) for row in run.rows()}
    assert measured == set(permutations(("n1", "n2", "n3"), 2))
    _, *others = run.document["findings"]
    slow = [finding for finding in others if finding["subject"] == {"kind": "node", "names": ["n3"]}]
    assert [finding["numbers"]["roles"] for finding in slow] == ["sending and receiving"]
    assert [(finding["code"], finding["level"]) for finding in slow] == [("node-slow", "note")]  # its link is slower


def test_a_parallel_mesh_measures_the_same_pairs_in_six_rounds_and_can_be_resumed(replayed: User) -> None:
    (replayed.folder / "rig.yaml").write_text(OF_FOUR)
    scenario = replayed.scenario(MESH.replace("mesh", "mesh-parallel"))
    said = replayed.rigctl("run", scenario, "--no-report")
    assert " 1/6  n1 → n4, n2 → n3 " in said
    rows = replayed.rows()
    assert {(row["source"], row["destination"]) for row in rows} == set(permutations(("n1", "n2", "n3", "n4"), 2))
    assert {row["cell"] for row in rows} == set(range(1, 7))
    said = replayed.rigctl("run", scenario, "--no-report", "--resume", rows[0]["run"])
    assert " 1/6 " not in said
    assert "Client by server" in said


def settings(maker: Maker) -> None:
    (maker.folder / "rig.yaml").write_text(OF_IPV6)
    maker.measures("settings", SETTINGS, "--no-report", code=3)


def test_on_an_ipv6_rig_the_counters_of_both_sides_reconcile_and_a_paced_stream_keeps_to_its_rate(real: Real) -> None:
    run = real(settings)["settings"]
    levels = map(run.rows, ("flows", "pairs", "intervals"))
    flows, pairs, intervals = ([row for row in rows if row["cell"] == 1] for rows in levels)
    assert len(flows) == 2 * 2 * 3
    assert all(0 < row["duration_s"] <= DURATION_S - OMIT_S for row in flows)
    assert {row["direction"] for row in pairs} == {"forward", "reverse"}
    assert sum(row["bytes"] for row in flows) == sum(row["bytes"] for row in pairs)
    assert sum(row["bytes"] for row in intervals) == pytest.approx(sum(row["bytes"] for row in pairs), rel=1e-6)
    assert {(row["mss_effective"], row["congestion"]) for row in pairs} == {(1428, "cubic")}
    rows = [row for row in run.rows() if row["cell"] == 2]
    assert [(row["status"], row["rate_mbps"], row["rate_effective_mbps"]) for row in rows] == [("ok", 10.0, 10.0)] * 2
    for row in rows:
        assert row["ceiling_mbps"] == pytest.approx(928.5, abs=0.05)
        # What is counted in the interval has been sent since the start of the flows.
        assert 0 < row["bytes"] * 8e-6 <= 1.05 * 2 * row["rate_mbps"] * DURATION_S


def test_flows_run_where_they_were_asked_to_run(real: Real) -> None:
    run = real(settings)["settings"]
    _, free, placed, refused = run.rows("cells")
    ends = "/".join(dict.fromkeys((f"{FIRST}", f"{LAST}")))  # the same processor, on a machine with one
    assert (placed["placement"], placed["status"]) == (ends, "ok")
    assert (placed["processors_sender"], placed["processors_receiver"]) == (f"{FIRST}: 100 %", f"{LAST}: 100 %")
    assert refused["status"] == "failed"
    told = "listen: placement: nic: this system does not tell the NUMA node of eth0"
    assert re.match(f"(b|d|b, d): {told}", refused["reason"])  # the first to refuse it ends the test
    assert (free["placement"], free["status"]) == (None, "ok")
    assert "%" in free["processors_sender"]
    shared = [each["numbers"] for each in run.document["findings"] if each["code"] == "processor-shared"]
    assert {"processor": FIRST, "flows": 2} in shared


TWO_NODES = "virtual: namespaces\nlinks: {rate: 100M, mtu: 1500}\nnodes: {near: , far: }\n"
HEAD = "\nrig: rig.yaml\npairs: [near -> far]\nmax_skew: 60s\n"
BOTH = f"{HEAD}duration: 1s\nmatrix: {{mptcp: [default, true], parallel: 2, congestion: cubic}}\n"
FALLBACK = f"{HEAD}duration: 800ms\nmatrix: {{mptcp: true, congestion: cubic}}\n"


def mptcp(maker: Maker) -> None:
    """On two nodes with a second link of 100 Mbit/s, which connections may use, too."""
    (maker.folder / "rig.yaml").write_text(TWO_NODES)
    with kept_up(maker, "rig.yaml"):
        near, far = (of_node(maker.holder(), node) for node in ("near", "far"))
        link(near, far, 1)
        use(near, far, 1)
        plan = json.loads(maker.rigctl("plan", maker.scenario(BOTH), "--json"))
        assert [test["settings"]["mptcp"] for test in plan["tests"]] == [None, True]
        assert [test["ceiling_mbps"] and round(test["ceiling_mbps"]) for test in plan["tests"]] == [94, None]
        maker.measures("both", BOTH)
        far.switch_off()
        checked = json.loads(maker.rigctl("check", maker.scenario(FALLBACK), "--json"))["findings"]
        (told,) = (each for each in checked if each["code"] == "mptcp-off")
        assert (told["level"], told["subject"]["names"]) == ("warning", ["far"])
        maker.measures("fallback", FALLBACK)


def findings(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in document["findings"] if each["code"].startswith(("mptcp", "subflow"))]


def test_over_two_links_the_ceiling_of_one_does_not_hold(real: Real) -> None:
    run = real(mptcp)["both"]
    for level in ("cells", "pairs"):
        one, both = run.rows(level)
        assert (one["mptcp_effective"], one["subflows"], one["subflow_bytes"]) == (None, None, None)
        assert one["ceiling_mbps"] == pytest.approx(94.1, rel=0.01)
        assert (both["mptcp"], both["mptcp_effective"], both["subflows"]) == (True, True, 2)
        assert (both["ceiling_mbps"], both["efficiency"]) == (None, None)
        assert both["limit"] not in ("line-rate", "window", "loss", "path", "shared-link", "other-traffic", "mtu")
        assert (both["mss_effective"], both["rtt_us"]) == (None, None)
        counts = {ends: int(count) for ends, count in re.findall(r"(\S+ > \S+): (\d+)", both["subflow_bytes"])}
        assert set(counts) == {"10.77.0.1 > 10.77.0.2", "10.78.1.1 > 10.78.1.2"}
        assert sum(counts.values()) >= both["bytes"] > 0
        assert min(counts.values()) > 0
    assert findings(run.document) == []
    assert "2 subflows" in run.user.rigctl("show", run.run, "--all")


def test_a_fallback_names_the_end_that_has_it_switched_off(real: Real) -> None:
    run = real(mptcp)["fallback"]
    (finding,) = findings(run.document)
    assert (finding["code"], finding["subject"]["names"]) == ("mptcp-fallback", ["near → far"])
    assert finding["numbers"]["enabled_receiver"] == "0"
    assert finding["remedy"] == "On far, as root: sysctl -w net.mptcp.enabled=1"
    (row,) = run.rows()
    assert (row["mptcp"], row["mptcp_effective"], row["subflows"]) == (True, False, 0)
    assert row["ceiling_mbps"] == pytest.approx(94.1, rel=0.01)
    assert row["mss_effective"] == 1448
