"""Tests limited by the window and by losses: real ones, on a virtual rig whose hosts are 5 ms apart."""

from user import User, kept_up

from rigctl.analysis.bottleneck import limit
from rigctl.store import open_store

SCENARIO = """
rig: stratus
pairs: [near -> far]
duration: 2s
"""
ONE_PERCENT = (
    "printf 'table netdev loss { chain some { type filter hook ingress device eth0 priority 0;\\n"
    "ip protocol tcp ip length > 500 numgen random mod 100 < 1 drop\\n}\\n}\\n' | nft -f -"
)


def bound_by(user: User, scenario: str) -> tuple[str, str, str]:
    """The limit of a run, what it would be without a look at processors, and the page."""
    user.rigctl("run", user.scenario(scenario), "--report", "r.html")
    (row,) = user.rows("cells")
    with open_store(str(user.folder / "store.db")) as store:
        (one,) = store.repetitions(store.run(None).run)
    assert row["status"] == "ok"
    others = limit(row["efficiency"], row["goodput_mbps"], flows=one.flows)
    return row["limit"], others, (user.folder / "r.html").read_text()


def test_a_full_window_and_losses_are_named_as_the_limit(user: User) -> None:
    with kept_up(user, "stratus"):
        bound, others, page = bound_by(user, SCENARIO + "matrix: {congestion: reno, window: 32K}")
        assert others == "window"
        # A machine that other tests keep busy may be what limits, before all else.
        assert bound == "machine" or (bound == "window" and "Limited by the window: test 1" in page)
        user.rigctl("rig", "exec", "stratus", "far", "--", ONE_PERCENT)
        bound, others, page = bound_by(user, SCENARIO + "matrix: {congestion: reno}")
        assert others == "loss"
        assert bound == "machine" or (bound == "loss" and "Limited by losses: test 1" in page)
