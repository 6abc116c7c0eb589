"""Multicast through switches that are known: what rigctl says of each, against what its design does.

`python tests/bench/bench_multicast_switch.py [NAME…]`, as root, about six minutes. `rigctl run` measures nodes at the
known switch (tests/support/known_switch) over SSH: a sends, b and c receive, d does not join. The model counts how
many frames of the group it sends to each port; those to d must be what rigctl says came there. Codes of findings are
without `multicast-`; they were written before the first run. IGMP only: the known switch has no MLD.
"""

from dataclasses import dataclass
from typing import Any, Final

from at_known_switches import Row, run_cases
from known_switch.model import Design, Link
from known_switch.multicast import Snooping
from known_switch.rig import Nodes, introduce, known_switch, shown
from user import User

MBIT: Final = 1_000_000
RATE: Final = 20 * MBIT
GROUP: Final = "239.255.77.1"
RUN_S: Final = 120.0
ASKS: Final[dict[str, Any]] = {"query_interval_s": 3.0}
"""A querier that asks within each test."""


@dataclass(frozen=True)
class Case:
    """A switch, and the codes of findings that it is to get."""

    name: str
    codes: str
    multicast: Snooping | None = None
    links: "tuple[tuple[str, Link], ...]" = ()
    duration_s: float = 10
    keys: str = "leave: 3.5s"
    pairs: str = "a -> b, a -> c, a -> d"
    unjoined: int = 1
    fields: "tuple[tuple[str, Any], ...]" = ()

    @property
    def design(self) -> Design:
        links = {port: Link(RATE) for port in "abcd"} | dict(self.links)
        return Design(links, 200_000, multicast=self.multicast, **dict(self.fields))


CASES: Final = (
    Case("floods", "flooded-unqueried"),
    Case("floods, b alone receives", "flooded-unqueried", pairs="a -> b, a -> c, a -> d", unjoined=2),
    Case("snoops, is the querier", "querier snooped", Snooping(**ASKS)),
    Case("snoops, asked before the test only", "snooped", Snooping()),
    Case("snoops, no querier, members by their reports", "snooped", Snooping(querier_after_s=None)),
    Case("snoops only with a querier, none", "flooded-unqueried", Snooping(querier_after_s=None, needs_querier=True)),
    Case(
        "snoops only with a querier, settles in the test",
        "flooded-at-first querier",
        Snooping(needs_querier=True, settle_s=12.0, **ASKS),
        duration_s=20,
        keys="join: 1s, leave: 3.5s",
    ),
    Case("floods groups without members", "flooded-unregistered querier", Snooping(floods_unknown=True, **ASKS)),
    Case(
        "floods groups without members, no querier",
        "flooded-unregistered",
        Snooping(floods_unknown=True, querier_after_s=None),
    ),
    Case(
        "floods groups without members, two do not join",
        "flooded-unregistered querier",
        Snooping(floods_unknown=True, **ASKS),
        unjoined=2,
    ),
    Case("forgets members, no querier", "snooped stopped", Snooping(querier_after_s=None, membership_s=4.0)),
    Case(
        "slow after a leave",
        "leave-slow querier snooped",
        Snooping(leave_s=5.0, **ASKS),
        duration_s=12,
        keys="leave: 7s",
    ),
    Case("at once after a leave", "querier snooped", Snooping(leave_s=0.0, **ASKS)),
    Case("leave longer than watched", "leave-open querier snooped", Snooping(**ASKS), keys="leave: 1.5s"),
    Case("a slow port of a receiver", "lost-at-one querier snooped", Snooping(**ASKS), links=(("b", Link(2 * MBIT)),)),
    Case(
        "a policer at the sender's port",
        "lost-at-all querier snooped",
        Snooping(**ASKS),
        links=(("a", Link(RATE, police_bps=3 * MBIT, police_bytes=30_000)),),
    ),
    Case("nobody is left out, floods", "flooded-unqueried", pairs="a -> b, a -> c", unjoined=0),
    Case("nobody is left out, snoops", "querier snooped", Snooping(**ASKS), pairs="a -> b, a -> c", unjoined=0),
    Case("queues at the inputs, floods", "flooded-unqueried", fields=(("queues_at", "input"),)),
    Case("queues at the inputs, snoops", "querier snooped", Snooping(**ASKS), fields=(("queues_at", "input"),)),
)
FURTHER: Final = (
    Case(
        "floods groups without members, leave at the end",
        "flooded-at-first leave-open querier",
        Snooping(floods_unknown=True, **ASKS),
        keys="leave: 1s",
    ),
    Case(
        "floods groups without members, a slow port",
        "flooded-unregistered lost-at-one querier",
        Snooping(floods_unknown=True, **ASKS),
        links=(("b", Link(2 * MBIT)),),
    ),
    Case(
        "forgets members, then floods",
        "flooded-unqueried",
        Snooping(floods_unknown=True, querier_after_s=None, membership_s=3.0),
    ),
    Case("floods, a slow port", "flooded-unqueried lost-at-one", links=(("c", Link(2 * MBIT)),)),
    Case(
        "a policer at the sender's port and a slow port",
        "lost querier snooped",
        Snooping(**ASKS),
        links=(("a", Link(RATE, police_bps=3 * MBIT, police_bytes=30_000)), ("b", Link(2 * MBIT))),
    ),
    Case("asks often, forgets soon", "querier snooped", Snooping(query_interval_s=1.0, membership_s=4.0)),
    Case("snoops, two do not join", "querier snooped", Snooping(**ASKS), unjoined=2),
    Case("floods, half lost at d", "flooded-unqueried", links=(("d", Link(2 * MBIT)),)),
    Case("at once after a leave, short", "querier snooped", Snooping(leave_s=0.0, **ASKS), keys="leave: 500ms"),
)
"""Made after the rules were mended by `CASES`, and before they were run."""
HEADS: Final = ("switch", "expected", "came", "as expected", "to d: rigctl", "switch")


def measured(case: Case, nodes: Nodes, user: User) -> tuple[set[str], int | None, int]:
    """Return the codes of a run's findings, and the datagrams to d as rigctl and as the switch counted them."""
    keys = "\n".join(case.keys.split(", "))
    text = (
        f"test: multicast\npairs: [{case.pairs}]\nunjoined: {case.unjoined}\nsize: 1000\nrate: 4M\nburst: 1\n"
        f"group: {GROUP}\nduration: {case.duration_s}s\n{keys}\nmax_skew: 300ms\n"
    )
    with known_switch(nodes, case.design) as running:
        introduce(nodes, "abcd")
        run = shown(user, running, text, RUN_S)
        counted = running.counted()
    sent = counted["groups"]["known"].get(GROUP, {}).get("d", 0) - counted["drops"].get("d output", 0)
    codes = {finding["code"] for finding in run["findings"]}
    with user.store() as store:
        (repetition,) = store.repetitions(run["run"])
    own = [flow.membership for flow in repetition.flows if flow.pair.destination == "d"]
    came = own[0].before if own and own[0] is not None else None
    return {code for code in codes if code.startswith("multicast-")}, came, sent


def judge(case: Case, nodes: Nodes, user: User) -> Row:
    codes, came, sent = measured(case, nodes, user)
    found = {code.removeprefix("multicast-") for code in codes}
    alike = found == set(case.codes.split()) and (came is None or abs(came - sent) <= 2)
    return alike, (
        case.name,
        case.codes.replace(" ", ", "),
        ", ".join(sorted(found)),
        "yes" if alike else "NO",
        "–" if came is None else f"{came}",
        f"{sent}",
    )


if __name__ == "__main__":
    run_cases("Multicast at known switches", HEADS, (*CASES, *FURTHER), judge)
