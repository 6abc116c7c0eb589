"""Multipath TCP from the command line: over two links, after a fallback, with one address, and with a cut link."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from processes import end, eventually
from two_links import Namespace, link, namespace_of, use
from user import User, kept_up

RIG = "virtual: namespaces\nlinks: {rate: 100M, mtu: 1500}\nnodes: {near: , far: }\n"
HEAD = "rig: ./rig.yaml\npairs: [near -> far]\nmax_skew: 1s\n"


@contextmanager
def rig(user: User) -> Iterator[tuple[Namespace, Namespace]]:
    """Two nodes with a second link of 100 Mbit/s, which no connection uses yet."""
    (user.folder / "rig.yaml").write_text(RIG)
    with kept_up(user, "rig.yaml"), ExitStack() as stack:
        near, far = (inside(user, node, stack) for node in ("near", "far"))
        link(near, far, 1)
        yield near, far


def inside(user: User, node: str, stack: ExitStack) -> Namespace:
    inode = user.rigctl("rig", "exec", "rig.yaml", node, "--", "readlink", "/proc/self/ns/net").strip()
    sleeper = user.start("rig", "exec", "rig.yaml", node, "--", "sleep", "300")
    stack.callback(sleeper.communicate, timeout=10)
    stack.callback(end, sleeper)
    eventually(lambda: namespace_of(inode, "sleep") is not None)
    found = namespace_of(inode, "sleep")
    assert found is not None
    return found


def findings(user: User) -> dict[str, dict[str, object]]:
    """Those about connections of MPTCP, by their sentences."""
    found = json.loads(user.rigctl("show", "--json"))["findings"]
    return {each["text"]: each for each in found if re.search("fell back|of MPTCP|the subflow", each["text"])}


def received(row: dict[str, str]) -> dict[str, int]:
    """The bytes of each subflow by its addresses."""
    parts = [part.rsplit(": ", 1) for part in row["subflow_bytes"].split(", ")]
    return {ends: int(count) for ends, count in parts}


@pytest.mark.quiet
def test_two_links_give_the_sum_of_both_and_the_ceiling_of_one_does_not_hold(user: User) -> None:
    scenario = user.scenario(HEAD + "duration: 2s\nmatrix: {mptcp: [default, true], parallel: 2, congestion: cubic}\n")
    with rig(user) as (near, far):
        use(near, far, 1)
        plan = json.loads(user.rigctl("plan", scenario, "--json"))
        assert [test["settings"]["mptcp"] for test in plan["tests"]] == [None, True]
        assert [test["ceiling_mbps"] and round(test["ceiling_mbps"]) for test in plan["tests"]] == [94, None]
        user.rigctl("run", scenario)
        for level in ("cells", "pairs"):
            one, both = user.rows(level)
            assert (one["mptcp_effective"], one["subflows"], one["subflow_bytes"]) == (None, None, None)
            assert one["ceiling_mbps"] == pytest.approx(94.1, rel=0.01)
            assert (both["mptcp"], both["mptcp_effective"], both["subflows"]) == (True, True, 2)
            assert 1.3 * 94 < both["goodput_mbps"] < 2 * 100
            assert (both["ceiling_mbps"], both["efficiency"]) == (None, None)
            assert both["limit"] not in ("line-rate", "window", "loss", "path", "shared-link", "other-traffic", "mtu")
            assert (both["mss_effective"], both["rtt_us"]) == (None, None)
            counts = received(both)
            assert set(counts) == {"10.77.0.1 > 10.77.0.2", "10.78.1.1 > 10.78.1.2"}
            assert sum(counts.values()) >= both["bytes"]
            assert min(counts.values()) > both["bytes"] / 5
        assert findings(user) == {}
        assert "2 subflows" in user.rigctl("show", "--all")


def test_a_fallback_names_the_end_that_has_it_switched_off(user: User) -> None:
    scenario = user.scenario(HEAD + "duration: 800ms\nmatrix: {mptcp: true, congestion: cubic}\n")
    with rig(user) as (near, far):
        far.switch_off()
        checked = json.loads(user.rigctl("check", scenario, "--json"))["findings"]
        (told,) = (each for each in checked if "net.mptcp.enabled" in each["text"])
        assert (told["level"], told["subject"]["names"]) == ("warning", ["far"])
        user.rigctl("run", scenario)
        ((text, finding),) = findings(user).items()
        assert text.startswith("near → far fell back to TCP: the receiver's kernel (far) has net.mptcp.enabled = 0")
        assert finding["remedy"] == "On far, as root: sysctl -w net.mptcp.enabled=1"
        (row,) = user.rows()
        assert (row["mptcp"], row["mptcp_effective"], row["subflows"]) == (True, False, 0)
        assert row["ceiling_mbps"] == pytest.approx(94.1, rel=0.01)
        assert row["mss_effective"] == 1448

        near.switch_off()
        user.rigctl("run", scenario)
        assert "the sender's kernel (near) and the receiver's kernel (far) have" in next(iter(findings(user)))


def test_a_link_that_is_cut_in_mid_test_is_told_and_the_test_ends(user: User) -> None:
    scenario = user.scenario(HEAD + "duration: 5s\nmatrix: {mptcp: true, congestion: cubic}\n")
    with rig(user) as (near, far):
        use(near, far, 1)
        running = user.start("run", scenario, "--no-report")
        try:
            eventually(lambda: sent(near, "w1") > 3_000_000)
            near.run("ip", "link", "set", "w1", "down")
            out, errors = running.communicate(timeout=60)
        finally:
            end(running)
        assert running.returncode == 0, (out, errors)
        (row,) = user.rows()
        ((text, finding),) = findings(user).items()
    assert text.startswith("near → far: the subflow 10.78.1.1 → 10.78.1.2 ")
    counts = received(row)
    numbers = finding["numbers"]
    assert isinstance(numbers, dict)
    assert numbers["bytes"] == counts["10.78.1.1 > 10.78.1.2"] > 1_000_000
    assert numbers["bytes_of_others"] == counts["10.77.0.1 > 10.77.0.2"] > numbers["bytes"]
    assert sum(counts.values()) >= row["bytes"]


def sent(node: Namespace, interface: str) -> int:
    (link,) = json.loads(node.run("ip", "-j", "-s", "link", "show", interface))
    return int(link["stats64"]["tx"]["bytes"])
