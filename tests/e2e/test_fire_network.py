"""Connections cut, nodes frozen, switch ports flapping: a run ends by itself, nothing is left, and it is completed."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable

import pytest
from fire import CELLS, NODES, Ground, ground, lab_ground, whole
from openssh_lab import Lab, sh
from torture import SEED, TIMES, told
from user import User

CUTS = 10 * TIMES // 3  # 100 in `make torture`
OTHERS = TIMES
PER_RUN = 6
# Tests follow each other; the controller reaches its nodes over the links that carry the data: their MTU stays.
SCENARIO = f"""{CELLS}repeat: 3
conditions:
  one: {{sysctl: {{net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}}, offload: {{gro: off}}}}
  two: {{resize: true}}
matrix: {{window: [64K], parallel: [1, 2]}}
"""
CLOSED = "table ip fire { chain i { type filter hook input priority 0; tcp dport 22 drop; }; \
chain o { type filter hook output priority 0; tcp sport 22 drop; }; }"
pytestmark = [
    pytest.mark.torture,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces"),
    pytest.mark.timeout(0),
]


def battered(made: Ground, row: str, times: int, blow: Callable[[random.Random], str]) -> None:
    """Runs that are hit `times` in all by `blow`, which gives the kind; each is looked at, completed, and compared."""
    expected = whole(made)
    moments = random.Random(SEED)
    kinds: dict[str, int] = {}
    runs = 0
    while sum(kinds.values()) < times:
        process = made.begin(*made.run_words())
        hits = 0
        time.sleep(moments.uniform(0.3, 3))
        while process.is_alive() and hits < PER_RUN and sum(kinds.values()) < times:
            kind = blow(moments)
            kinds[kind] = kinds.get(kind, 0) + 1
            hits += 1
            time.sleep(moments.uniform(0.1, 3))
        process.join(900)
        errors = (made.user.folder / "errors").read_text()
        assert process.exitcode in (0, 3), errors
        made.aftermath()
        made.complete()
        made.aftermath()
        made.same_as(expected)
        runs += 1
        made.fresh()
        told("so far", **kinds, runs_completed=runs)
    told(row, seed=SEED, **kinds, runs_completed=runs)


def a_while(moments: random.Random) -> float:
    """Mostly short; one in five longer than the watchdogs of agent (15 s) and lock (20 s)."""
    return moments.uniform(14, 25) if moments.random() < 0.2 else moments.uniform(0.02, 4)


def test_ssh_connections_cut_by_reset_and_by_silence(user: User) -> None:
    with lab_ground(user, SCENARIO) as (made, lab):

        def blow(moments: random.Random) -> str:
            node = moments.choice(NODES)
            if moments.random() < 0.5:
                # Both ends get it, and nothing can be sent between (ss(8), -K).
                sh(*lab.inside(node, "ss", "-K", "state", "established", "sport", "=", ":22"))
                return "reset"
            lasts_s = a_while(moments)
            sh(*lab.inside(node, "nft", CLOSED))
            time.sleep(lasts_s)
            sh(*lab.inside(node, "nft", "delete table ip fire"))
            return "silent_for_over_14s" if lasts_s > 14 else "silent"

        battered(made, "SSH connections cut", CUTS, blow)


def test_nodes_frozen_and_thawed(user: User) -> None:
    with lab_ground(user, SCENARIO) as (made, lab):

        def blow(moments: random.Random) -> str:
            node, lasts_s = moments.choice(NODES), a_while(moments)
            pids = _pids(lab, node)
            _signal(pids, signal.SIGSTOP)
            time.sleep(lasts_s)
            _signal(pids, signal.SIGCONT)
            return "for_over_14s" if lasts_s > 14 else "short"

        battered(made, "nodes frozen", OTHERS, blow)


def test_switch_ports_that_flap_under_data_and_ssh(user: User) -> None:
    with lab_ground(user, SCENARIO) as (made, lab):

        def blow(moments: random.Random) -> str:
            port, lasts_s = moments.choice(NODES), a_while(moments) / 2
            sh(*lab.inside("switch", "ip", "link", "set", port, "down"))
            time.sleep(lasts_s)
            sh(*lab.inside("switch", "ip", "link", "set", port, "up"))
            return "for_over_7s" if lasts_s > 7 else "short"

        battered(made, "switch ports down and up", OTHERS, blow)


def test_switch_ports_that_flap_under_data_alone(user: User) -> None:
    with ground(user, SCENARIO) as made:
        ports = made.place.script("ip -o link show type veth | sed 's/^[0-9]*: //; s/@.*//'").split()
        assert len(ports) == len(NODES)

        def blow(moments: random.Random) -> str:
            port = moments.choice(ports)
            made.place.script(f"ip link set {port} down; sleep {moments.uniform(0.01, 1.5):.3f}; ip link set {port} up")
            return "times"

        battered(made, "ports of a virtual rig down and up", OTHERS, blow)


def _pids(lab: Lab, node: str) -> list[int]:
    return [int(pid) for pid in sh("ip", "netns", "pids", lab.host(node)).split()]


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
