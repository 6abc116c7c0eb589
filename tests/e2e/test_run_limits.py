"""Tests limited by the window, losses and a shaper: real ones, on a virtual rig whose hosts are 5 ms apart."""

from pathlib import Path

import pytest
from user import User, kept_up

from rigctl.store import open_store

CPU_STAT = Path("/sys/fs/cgroup/cpu/cpu.stat")
SCENARIO = """
rig: stratus
pairs: [near -> far]
duration: 2s
"""
SMALL = """
conditions:
  small: {sysctl: {net.ipv4.tcp_rmem: "4096 16384 40000"}}
matrix: {congestion: reno, parallel: 2}
"""
ONE_PERCENT = (
    "printf 'table netdev loss { chain some { type filter hook ingress device eth0 priority 0;\\n"
    "ip protocol tcp ip length > 500 numgen random mod 100 < 1 drop\\n}\\n}\\n' | nft -f -"
)
MARKED = ONE_PERCENT.replace("mod 100 < 1 drop", "mod 300 < 1 ip ecn set ce")
ECN = "conditions: {ecn: {sysctl: {net.ipv4.tcp_ecn: 1}}}\n"
NO_LOSS = "nft delete table netdev loss"
SHAPED = "tc qdisc replace dev eth0 root tbf rate 20mbit burst 70kb limit 250kb"


def bound_by(user: User, scenario: str) -> tuple[str, str]:
    """Run a scenario of one test; return its limit and the page."""
    user.rigctl("run", user.scenario(scenario), "--report", "r.html")
    (row,) = user.rows("cells")
    assert row["status"] == "ok"
    if CPU_STAT.exists():  # nodes see the machine's control groups, so that a quota is found
        with open_store(str(user.folder / "store.db")) as store:
            (repetition,) = store.repetitions(store.run(None).run)
        assert [node.throttled_us for node in repetition.nodes] == [0, 0]
    return row["limit"], (user.folder / "r.html").read_text()


@pytest.mark.quiet
def test_windows_losses_and_a_shaper_are_named_as_the_limit(user: User) -> None:
    reno = SCENARIO + "matrix: {congestion: reno}"
    with kept_up(user, "stratus"):
        bound, page = bound_by(user, SCENARIO + "matrix: {congestion: reno, window: 32K}")
        assert bound == "window"
        assert "Limited by the receive window" in page
        bound, page = bound_by(user, SCENARIO + SMALL)
        assert bound == "window"
        assert "Raise net.ipv4.tcp_rmem (its third value) on far." in page
        user.rigctl("rig", "exec", "stratus", "far", "--", ONE_PERCENT)
        bound, page = bound_by(user, reno.replace("2s", "5s"))  # 2 s may hold too few losses for an answer
        assert bound == "loss"
        assert "Limited by losses: test 1" in page
        user.rigctl("rig", "exec", "stratus", "far", "--", NO_LOSS)
        user.rigctl("rig", "exec", "stratus", "far", "--", MARKED)
        bound, page = bound_by(user, ECN + reno.replace("2s", "5s"))
        assert bound == "path"
        assert "a queue on the way marks packets instead of dropping them" in page
        user.rigctl("rig", "exec", "stratus", "far", "--", NO_LOSS)
        user.rigctl("rig", "exec", "stratus", "near", "--", SHAPED)
        bound, page = bound_by(user, reno)
        assert bound == "path"
        assert "a shaper or a slower hop" in page
