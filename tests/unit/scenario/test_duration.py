"""How long a plan takes: exact for streams, and for messages as far as their round trips are known."""

from dataclasses import replace

import builders
import message_runs
import pytest
from message_runs import PING

from rigctl.records import MOST_TRIALS, Link, Retest, Until
from rigctl.results.message_times import last_message_times
from rigctl.scenario.duration import longest_s, planned_time, repetition_times
from rigctl.settings import RATE, Settings
from rigctl.store import open_store

STREAMS = builders.plan([builders.cell(1), builders.cell(2, duration_s=5.0)], repeat=3)
PINGED, MEASURED = message_runs.measured("pingpong", PING)
MESSAGES = PINGED.plan
RETEST = Retest(0.05, 15)
UNTIL = Until(0.01, 50)


def test_streams_take_their_duration_and_the_idle_baseline_of_probes() -> None:
    assert planned_time(STREAMS).total_s == 45.0
    probed = tuple(replace(cell, latency_ms=20) for cell in STREAMS.cells)
    assert planned_time(replace(STREAMS, cells=probed)).total_s == 45.0 + 6 * 1.0


def test_a_time_that_may_be_passed_is_a_least_one() -> None:
    searched = replace(STREAMS.cells[0], settings=Settings({RATE: "max"}))
    assert planned_time(STREAMS).exactness == "exact"
    open_ended = (replace(STREAMS, until=UNTIL), replace(STREAMS, retest=RETEST), replace(STREAMS, cells=(searched,)))
    assert {planned_time(plan).exactness for plan in open_ended} == {"at least"}


def test_messages_of_unknown_speed_take_at_most_the_duration_and_at_least_the_time_of_the_link() -> None:
    found = planned_time(replace(MESSAGES, retest=RETEST))
    assert (found.exactness, found.total_s) == ("at most", 600.0)
    assert found.least_s == pytest.approx(5 * 8 * (100_000 * 1 + 1000 * 2048) / 1e8)
    without_rates = dict.fromkeys(MESSAGES.links, Link(None, 1500))
    assert planned_time(replace(MESSAGES, links=without_rates)).least_s == 0.0


def test_a_round_trip_of_the_rig_file_is_that_of_both_links() -> None:
    far = replace(MESSAGES, links={"dublin": Link(10**8, 1500, rtt_s=1e-4), "cork": Link(10**8, 1500, rtt_s=2e-4)})
    found = planned_time(far)
    assert found.exactness == "about"
    assert found.total_s == pytest.approx(5 * (100_000 + 1000) * 3e-4 + 5 * 0.17184)


def test_the_last_run_of_the_scenario_tells_how_long_its_messages_take() -> None:
    fewer = (replace(MESSAGES.cells[0], duration_s=30.0, settings=MESSAGES.cells[1].settings), MESSAGES.cells[1])
    with open_store("sqlite://") as store:
        assert last_message_times(store, MESSAGES) == ("", {})
        run = builders.put(store, PINGED, MEASURED)
        builders.put(store, replace(PINGED, plan=replace(MESSAGES, rig_name="other")), MEASURED, PINGED.started_at + 60)
        named, known = last_message_times(store, replace(MESSAGES, cells=fewer))
    assert named == run
    assert known == pytest.approx({1: 14.172e-5, 2: 10.33e-3})
    found = planned_time(replace(MESSAGES, cells=fewer), known)
    assert found.exactness == "about"
    assert found.total_s == pytest.approx(5 * (1000 * 14.172e-5 + 1000 * 10.33e-3))
    slow = planned_time(replace(MESSAGES, cells=fewer), {1: 1.0, 2: 1.0})
    assert slow.total_s == 5 * (30.0 + 60.0)  # no test takes longer than its duration
    assert planned_time(MESSAGES, {1: 1e-4}).exactness == "at most"


def test_a_run_takes_at_most_every_retest_and_trial_and_the_longest_repetition_twice() -> None:
    assert longest_s(STREAMS) == 3 * (15.0 + 2 * 5.0) + 10.0
    assert longest_s(replace(STREAMS, until=UNTIL)) == 50 * (15.0 + 2 * 5.0) + 10.0
    assert longest_s(replace(MESSAGES, retest=RETEST)) == 20 * 2 * 65.0 + 60.0
    searched = replace(STREAMS, cells=(replace(STREAMS.cells[0], settings=Settings({RATE: "max"})),))
    assert longest_s(searched) == 3 * MOST_TRIALS * 15.0 + 10.0  # its repeat is 3
    assert planned_time(searched).total_s == 10.0  # one trial, at least


def test_the_classes_of_a_test_run_at_the_same_time() -> None:
    one, other = (builders.cell(number, duration_s=1.0, traffic_class=f"c{number}", group=1) for number in (1, 2))
    (time,) = repetition_times(builders.plan([one, replace(other, latency_ms=20)])).values()
    assert time.expected_s == time.most_s == 2.0
