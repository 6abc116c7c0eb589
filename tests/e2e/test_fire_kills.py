"""Runs under fire at random moments: nothing finished is lost, nothing is left, and they are completed.

Controllers and agents are killed, connections cut, nodes frozen, switch ports flap, the disk under the store fills up.
"""

import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

from fire import CELLS, CONDITIONS, MARKS, NODES, Ground, ground, lab_ground, whole
from openssh_lab import Lab, sh
from processes import mounted, signal_all
from torture import SEED, TIMES, told, wait_at_random
from user import User

KILLS = 10 * TIMES  # 300 in `make torture`
FILLED = TIMES // 2
BLOWS = 6 * TIMES  # 180 in `make torture`
SCENARIO = f"{CELLS}repeat: 2\n{CONDITIONS}"
# Tests follow each other; the controller reaches its nodes over the links that carry the data: their MTU stays.
IN_A_LAB = f"""{CELLS}repeat: 3
conditions:
  one: {{sysctl: {{net.ipv4.tcp_sack: 0, net.ipv4.tcp_rmem: "4096 65536 1048576"}}, offload: {{gro: off}}}}
  two: {{resize: true}}
matrix: {{window: [64K], parallel: [1, 2]}}
"""
CLOSED = "table ip fire { chain i { type filter hook input priority 0; tcp dport 22 drop; }; \
chain o { type filter hook output priority 0; tcp sport 22 drop; }; }"
pytestmark = MARKS


def test_controllers_killed_at_random_moments_lose_nothing_and_leave_nothing(user: User) -> None:
    with ground(user, SCENARIO) as made:
        expected = whole(made)
        moments = random.Random(SEED)
        kills = hits = runs = 0
        latest_s = 4.0
        while kills < KILLS:
            process = made.begin(*made.run_words())
            wait_at_random(moments, 0.05, latest_s)
            killed = made.kill(process)
            hit = killed and made.was_measuring()
            made.aftermath()
            kills, hits = kills + killed, hits + hit
            if not (killed and hit):
                latest_s *= 1.2 if killed else 1 / 1.2  # a busy machine takes longer to get somewhere
            if not killed:
                made.ends_as(expected)
                runs += 1
                made.fresh()
                told("so far", kills=kills, while_measuring=hits, runs_completed=runs)
        made.ends_as(expected)
        told("controllers killed", seed=SEED, kills=kills, while_measuring=hits, runs_completed=runs + 1)
        assert hits > KILLS / 3  # else this test has shown nothing


def test_agents_killed_at_random_moments_lose_nothing_and_leave_nothing(user: User) -> None:
    with ground(user, SCENARIO) as made:
        expected = whole(made)
        moments = random.Random(SEED)
        kills = guards = runs = 0
        while kills < KILLS:
            process = made.begin(*made.run_words())
            while process.is_alive() and kills < KILLS:
                wait_at_random(moments, 0.1, 1.5)
                with_guards = moments.random() < 0.2
                hit = _kill_agent(made, moments, with_guards)
                kills, guards = kills + hit, guards + (hit and with_guards)
            process.join(900)  # by itself: complete, or with repetitions that failed
            assert process.exitcode in (0, 3), process.exitcode
            made.ends_as(expected)
            runs += 1
            made.fresh()
            told("so far", kills=kills, runs_completed=runs)
        told("agents killed", seed=SEED, kills=kills, with_their_guards=guards, runs_completed=runs)


def _kill_agent(made: Ground, moments: random.Random, with_guards: bool) -> bool:
    """SIGKILL for one agent, and now and then for all guards of settings, which would otherwise restore them."""
    agents = sorted(made.agents())
    if not agents:
        return False
    victims = [moments.choice(agents), *(made.agents(guards=True) if with_guards else ())]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # a guard that sees its agent die in between would restore
        signal_all(victims, number)
    return True


def test_a_store_on_a_full_disk(user: User) -> None:
    chance, full = random.Random(SEED), 0
    with mounted(user.folder / "full", "size=4m") as disk:
        user.environment["RIGCTL_STORE"] = str(disk / "store.db")
        with ground(user, f"{CELLS}repeat: 1\n{CONDITIONS}") as made:
            expected = whole(made)
            for _ in range(FILLED):
                _sized(disk, f"{chance.randrange(16, 400, 4)}k")
                code, errors = made.run()
                (user.folder / "errors").write_text(errors)
                assert "Traceback" not in errors
                if code != 0:
                    assert f"rigctl: store {made.store} cannot be " in errors.splitlines()[-1]
                    full += 1
                _sized(disk, "4m")
                made.aftermath()
                made.ends_as(expected)
                made.fresh()
                told("so far", full=full)
    told("full disk under the store", seed=SEED, tried=FILLED, full=full)
    assert full > FILLED / 4


def _sized(disk: Path, size: str) -> None:
    # tmpfs(5) refuses a size below what is in use: then it stays as it is.
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=False, stderr=subprocess.DEVNULL)


def test_connections_cut_nodes_frozen_and_ports_flapping(user: User) -> None:
    moments = random.Random(SEED)
    kinds: Counter[str] = Counter()
    runs = 0
    with lab_ground(user, IN_A_LAB) as (made, lab):
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
        signal_all(pids, signal.SIGSTOP)
        wait_at_random(moments, least_s, most_s)
        signal_all(pids, signal.SIGCONT)
    else:
        sh(*lab.inside("switch", "ip", "link", "set", node, "down"))
        wait_at_random(moments, least_s / 2, most_s / 2)
        sh(*lab.inside("switch", "ip", "link", "set", node, "up"))
    return kind
