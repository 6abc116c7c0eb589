"""Connections cut, nodes frozen, switch ports flapping: a run ends by itself, nothing is left, and it is completed."""

import contextlib
import os
import random
import signal
from collections import Counter

from fire import CELLS, MARKS, NODES, lab_ground, whole
from openssh_lab import Lab, sh
from torture import SEED, TIMES, told, wait_at_random
from user import User

BLOWS = 6 * TIMES  # 180 in `make torture`
# Tests follow each other; the controller reaches its nodes over the links that carry the data: their MTU stays.
SCENARIO = f"""{CELLS}repeat: 3
conditions:
  one: {{sysctl: {{net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}}, offload: {{gro: off}}}}
  two: {{resize: true}}
matrix: {{window: [64K], parallel: [1, 2]}}
"""
CLOSED = "table ip fire { chain i { type filter hook input priority 0; tcp dport 22 drop; }; \
chain o { type filter hook output priority 0; tcp sport 22 drop; }; }"
pytestmark = MARKS


def test_connections_cut_nodes_frozen_and_ports_flapping(user: User) -> None:
    """Runs that are hit at random; each is looked at, completed, and compared with an undisturbed one."""
    moments = random.Random(SEED)
    kinds: Counter[str] = Counter()
    runs = 0
    with lab_ground(user, SCENARIO) as (made, lab):
        expected = whole(made)
        while kinds.total() < BLOWS:
            process = made.begin(*made.run_words())
            hits = 0
            wait_at_random(moments, 0.3, 3)
            while process.is_alive() and hits < 6 and kinds.total() < BLOWS:
                kinds[blow(lab, moments)] += 1
                hits += 1
                wait_at_random(moments, 0.1, 3)
            process.join(900)
            assert process.exitcode in (0, 3), (made.user.folder / "errors").read_text()
            made.aftermath()
            made.ends_as(expected)
            runs += 1
            made.fresh()
            told("so far", **kinds, runs_completed=runs)
    told("connections, nodes and ports", seed=SEED, **kinds, runs_completed=runs)


def blow(lab: Lab, moments: random.Random) -> str:
    """Hit a node; return how. One in five blows is longer than the watchdogs of agent (15 s) and lock (20 s)."""
    node = moments.choice(NODES)
    least_s, most_s = (14, 25) if moments.random() < 0.2 else (0.02, 4)
    kind = moments.choice(("reset", "silent", "frozen", "port_down"))
    if kind == "reset":
        # Both ends get it, and nothing can be sent between (ss(8), -K).
        sh(*lab.inside(node, "ss", "-K", "state", "established", "sport", "=", ":22"))
    elif kind == "silent":
        sh(*lab.inside(node, "nft", CLOSED))
        wait_at_random(moments, least_s, most_s)
        sh(*lab.inside(node, "nft", "delete table ip fire"))
    elif kind == "frozen":
        pids = [int(pid) for pid in sh("ip", "netns", "pids", lab.host(node)).split()]
        _signal(pids, signal.SIGSTOP)
        wait_at_random(moments, least_s, most_s)
        _signal(pids, signal.SIGCONT)
    else:
        sh(*lab.inside("switch", "ip", "link", "set", node, "down"))
        wait_at_random(moments, least_s / 2, most_s / 2)
        sh(*lab.inside("switch", "ip", "link", "set", node, "up"))
    return kind


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
