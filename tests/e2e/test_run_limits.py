"""Tests limited by the window, losses and a shaper: real ones, on a virtual rig whose hosts are 5 ms apart."""

from dataclasses import replace
from pathlib import Path

from user import User, kept_up

from rigctl.analysis.rows.frames import load
from rigctl.model.limits.verdicts import judged
from rigctl.store import open_store

CPU_STAT = Path("/sys/fs/cgroup/cpu/cpu.stat")
SCENARIO = """
rig: stratus
pairs: [near -> far]
duration: 2s
max_skew: 1s  # other tests run beside this one
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
NO_LOSS = "nft delete table netdev loss"
SHAPED = "tc qdisc replace dev eth0 root tbf rate 20mbit burst 70kb limit 250kb"
BUSY = ("machine", "unknown")


def bound_by(user: User, scenario: str) -> tuple[str, str, str]:
    """The limit of a run, what it would be without a look at processors, and the page."""
    user.rigctl("run", user.scenario(scenario), "--report", "r.html")
    (row,) = user.rows("cells")
    with open_store(str(user.folder / "store.db")) as store:
        info = store.run(None)
        repetitions = store.repetitions(info.run)
        frames = load(info, repetitions)
    ((seen,),) = (streams.values() for streams in frames.derived.seen.values())
    assert row["status"] == "ok"
    if CPU_STAT.exists():  # nodes see the machine's control groups, so that a quota is found
        assert [node.throttled_us for node in repetitions[0].nodes] == [0, 0]
    assert row["limit_detail"] == frames.derived.cells[0]["limit_detail"]
    return row["limit"], judged(replace(seen, processors=None)).limit, (user.folder / "r.html").read_text()


def test_windows_losses_and_a_shaper_are_named_as_the_limit(user: User) -> None:
    with kept_up(user, "stratus"):
        bound, others, page = bound_by(user, SCENARIO + "matrix: {congestion: reno, window: 32K}")
        assert others == "window"
        # A machine that other tests keep busy may be what limits, before all else.
        assert bound in BUSY or (bound == "window" and "Limited by the receive window" in page)
        bound, others, page = bound_by(user, SCENARIO + SMALL)
        assert others == "window"
        assert bound in BUSY or "Raise net.ipv4.tcp_rmem (its third value) on far." in page
        user.rigctl("rig", "exec", "stratus", "far", "--", ONE_PERCENT)
        for _ in range(6):  # beside other tests, samples may come too late to tell losses from a policer
            bound, others, page = bound_by(user, SCENARIO + "matrix: {congestion: reno}")
            if others == "loss":
                break
        assert others == "loss"
        assert bound in BUSY or (bound == "loss" and "Limited by losses: test 1" in page)
        user.rigctl("rig", "exec", "stratus", "far", "--", NO_LOSS)
        user.rigctl("rig", "exec", "stratus", "near", "--", SHAPED)
        for _ in range(6):
            bound, others, page = bound_by(user, SCENARIO + "matrix: {congestion: reno}")
            if others == "path":
                break
        assert others == "path"
        assert bound in BUSY or (bound == "path" and "a shaper or a slower hop" in page)
