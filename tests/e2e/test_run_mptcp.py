"""Multipath TCP from the command line: over two links, after a fallback, and with a link that is cut."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from processes import eventually
from real_runs import Maker, Real
from two_links import Namespace, link, of_node, use
from user import User, carried, kept_up, running

RIG = "virtual: namespaces\nlinks: {rate: 100M, mtu: 1500}\nnodes: {near: , far: }\n"
HEAD = "\nrig: rig.yaml\npairs: [near -> far]\nmax_skew: 60s\n"
BOTH = f"{HEAD}duration: 1s\nmatrix: {{mptcp: [default, true], parallel: 2, congestion: cubic}}\n"
FALLBACK = f"{HEAD}duration: 800ms\nmatrix: {{mptcp: true, congestion: cubic}}\n"
# A file takes as long as its links let it.
FILE = f"{HEAD}test: file\nread: memory\nwrite: memory\nduration: 60s\nmatrix: {{mptcp: true, size: 20M}}\n"


@contextmanager
def rig(user: User) -> Iterator[tuple[Namespace, Namespace]]:
    """Two nodes with a second link of 100 Mbit/s, which connections may use, too."""
    (user.folder / "rig.yaml").write_text(RIG)
    with kept_up(user, "rig.yaml"):
        near, far = (of_node(user.holder(), node) for node in ("near", "far"))
        link(near, far, 1)
        use(near, far, 1)
        yield near, far


def mptcp(maker: Maker) -> None:
    with rig(maker) as (_, far):
        plan = json.loads(maker.rigctl("plan", maker.scenario(BOTH), "--json"))
        assert [test["settings"]["mptcp"] for test in plan["tests"]] == [None, True]
        assert [test["ceiling_mbps"] and round(test["ceiling_mbps"]) for test in plan["tests"]] == [94, None]
        maker.measures("both", BOTH)
        far.switch_off()
        checked = json.loads(maker.rigctl("check", maker.scenario(FALLBACK), "--json"))["findings"]
        (told,) = (each for each in checked if "net.mptcp.enabled" in each["text"])
        assert (told["level"], told["subject"]["names"]) == ("warning", ["far"])
        maker.measures("fallback", FALLBACK)


def findings(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Those about connections of MPTCP, by their sentences."""
    found = document["findings"]
    return {each["text"]: each for each in found if re.search("fell back|of MPTCP|the subflow", each["text"])}


def received(row: dict[str, Any]) -> dict[str, int]:
    """The bytes of each subflow by its addresses."""
    parts = [part.rsplit(": ", 1) for part in row["subflow_bytes"].split(", ")]
    return {ends: int(count) for ends, count in parts}


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
        counts = received(both)
        assert set(counts) == {"10.77.0.1 > 10.77.0.2", "10.78.1.1 > 10.78.1.2"}
        assert sum(counts.values()) >= both["bytes"] > 0
        assert min(counts.values()) > 0
    assert findings(run.document) == {}
    assert "2 subflows" in run.user.rigctl("show", run.run, "--all")


def test_a_fallback_names_the_end_that_has_it_switched_off(real: Real) -> None:
    run = real(mptcp)["fallback"]
    ((text, finding),) = findings(run.document).items()
    assert text.startswith("near → far fell back to TCP: the receiver's kernel (far) has net.mptcp.enabled = 0")
    assert finding["remedy"] == "On far, as root: sysctl -w net.mptcp.enabled=1"
    (row,) = run.rows()
    assert (row["mptcp"], row["mptcp_effective"], row["subflows"]) == (True, False, 0)
    assert row["ceiling_mbps"] == pytest.approx(94.1, rel=0.01)
    assert row["mss_effective"] == 1448


def test_a_link_that_is_cut_in_mid_test_is_told_and_the_test_ends(user: User) -> None:
    with rig(user) as (near, _):
        for interface in ("eth0", "w1"):  # at this rate it would take longer than it may
            near.run(*f"tc qdisc replace dev {interface} root tbf rate 1mbit burst 8kb limit 16kb".split())
        with running(("run", user.scenario(FILE), "--no-report"), user.folder, user.environment) as run:
            eventually(lambda: any(carried(pid, "w1") > 100_000 for pid in user.agents()))
            near.run("ip", "link", "set", "w1", "down")
            # Timeouts in a row are what is told of a subflow.
            eventually(lambda: re.search(r"10\.78\.1\.2:.*\n.*backoff:[3-9]", near.run("ss", "-tinH")))
            near.run("tc", "qdisc", "del", "dev", "eth0", "root")
            done = run.ended()
        assert done.returncode == 0, done.stderr
        (row,) = user.rows()
        ((text, finding),) = findings(json.loads(user.rigctl("show", "--json"))).items()
    assert text.startswith("near → far: the subflow 10.78.1.1 → 10.78.1.2 ")
    counts = received(row)
    numbers = finding["numbers"]
    assert numbers["bytes"] == counts["10.78.1.1 > 10.78.1.2"] > 0
    assert numbers["bytes_of_others"] == counts["10.77.0.1 > 10.77.0.2"] > numbers["bytes"]
    assert sum(counts.values()) >= row["message_bytes"]
