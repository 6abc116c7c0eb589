"""Multipath TCP from the command line: over two links, and after a fallback."""

import json
import re
from typing import Any

import pytest
from real_runs import Maker, Real
from two_links import link, of_node, use
from user import kept_up

RIG = "virtual: namespaces\nlinks: {rate: 100M, mtu: 1500}\nnodes: {near: , far: }\n"
HEAD = "\nrig: rig.yaml\npairs: [near -> far]\nmax_skew: 60s\n"
BOTH = f"{HEAD}duration: 1s\nmatrix: {{mptcp: [default, true], parallel: 2, congestion: cubic}}\n"
FALLBACK = f"{HEAD}duration: 800ms\nmatrix: {{mptcp: true, congestion: cubic}}\n"


def mptcp(maker: Maker) -> None:
    """On two nodes with a second link of 100 Mbit/s, which connections may use, too."""
    (maker.folder / "rig.yaml").write_text(RIG)
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
