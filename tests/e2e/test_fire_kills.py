"""Controllers and agents SIGKILLed at random moments: nothing finished is lost, nothing is left, runs are completed."""

import contextlib
import os
import random
import signal

from fire import CELLS, CONDITIONS, MARKS, Ground, ground, whole
from torture import SEED, TIMES, told, wait_at_random
from user import User

KILLS = 10 * TIMES  # 300 in `make torture`
SCENARIO = f"{CELLS}repeat: 2\n{CONDITIONS}"
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
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    return True
