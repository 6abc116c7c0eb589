"""Ping-pong and blast as a user runs them: on a virtual rig of fast Ethernet, through SSH and real agents."""

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from user import User, kept_up


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    made = User(tmp_path_factory.mktemp("host"))
    with kept_up(made, "fast-ethernet"):
        yield made


def test_a_ping_pong_is_measured_tabled_and_exported(guest: User) -> None:
    options = ["--set", "size=1,1448,64K", "--set", "iterations=300", "--repeat", "2"]
    said = guest.rigctl("run", "nettest-pingpong", *options, "--report", "p.html", deadline_s=120)
    assert "A round trip of 1 byte takes" in said
    page = (guest.folder / "p.html").read_text()
    assert "Round-trip time against message size" in page
    assert ">AVG<" in page  # as on the lab's page
    assert "RTT mean" not in page.partition("<h2>Method")[0]
    flows = json.loads(guest.rigctl("export", "--format", "json", "--level", "flows"))
    flows = [row for row in flows if row["repetition"] <= 2]  # what varied was measured again
    assert [(row["cell"], row["repetition"], row["messages"]) for row in flows] == [
        (cell, repetition, 300) for cell in (1, 2, 3) for repetition in (1, 2)
    ]
    for row in flows:
        assert row["app_rtt_min_us"] <= row["app_rtt_p50_us"] * 1.005
        assert row["app_rtt_p50_us"] <= row["app_rtt_p99_us"] <= row["app_rtt_max_us"] * 1.005
        assert row["app_rtt_mean_us"] * 300 / 1e6 == pytest.approx(row["elapsed_s"])
    # Long messages take their frames' time at 100 Mbit/s, there and back; short ones pass a bucket at once.
    assert min(row["app_rtt_p50_us"] for row in flows[4:]) > 0.8 * 2 * 65536 * 8 / 100
    assert "token buckets" in guest.findings()
    assert json.loads(guest.rigctl("export", "--format", "json", "--level", "cells"))[0]["goodput_mbps"] is None
    trips: Counter[tuple[int, int]] = Counter()
    for row in json.loads(guest.rigctl("export", "--format", "json", "--level", "histogram")):
        trips[row["cell"], row["repetition"]] += row["count"]
    assert set(trips.values()) == {300}
    assert len(trips) >= 6


def test_what_varies_is_measured_again_in_a_table_of_its_own(guest: User) -> None:
    scenario = guest.scenario(
        "rig: fast-ethernet\ntest: pingpong\npairs: [dublin -> cork]\nrepeat: 2\nduration: 5s\n"
        'retest: {when: "variation > 0.0001%", repeat: 3}\nmatrix: {size: [1, 4K], iterations: 100}\n'
    )
    said = guest.rigctl("run", scenario, "--report", "p.html")
    assert "Measured again: tests whose repetitions varied by more than 0.0001 %" in said
    page = (guest.folder / "p.html").read_text()
    body = page.partition(">Results<")[2]  # behind the contents
    assert "Measured again: tests" in body
    assert re.search(
        r"Test 1 varied by \d\S* % over 2 repetitions; over 3 more by \d\S* %, (its|with the same) mean", page
    )
    flows = json.loads(guest.rigctl("export", "--format", "json", "--level", "flows"))
    assert [(row["cell"], row["repetition"]) for row in flows] == [
        (cell, nth) for cell in (1, 2) for nth in range(1, 6)
    ]


def test_a_cell_is_measured_until_its_mean_is_known(guest: User) -> None:
    scenario = guest.scenario(
        "rig: fast-ethernet\npairs: [dublin -> cork]\nrepeat: 2\nduration: 800ms\nmax_skew: 1s\n"
        "until: {when: ci95 < 0.0001%, most: 4}\n"
    )
    said = guest.rigctl("run", scenario, "--no-report")
    assert "After 4 repetitions half the 95 % confidence interval is not below 0.0001 % in test 1" in said
    cells = json.loads(guest.rigctl("export", "--format", "json", "--level", "cells"))
    assert {row["repetition"] for row in cells} == {1, 2, 3, 4}


@pytest.mark.quiet
def test_a_blast_of_large_messages_comes_close_to_the_ceiling(guest: User) -> None:
    options = ["--set", "size=64,128K", "--set", "iterations=100", "--repeat", "1"]
    said = guest.rigctl("run", "nettest-blast", *options, "--no-report", deadline_s=120)
    assert "The highest throughput is" in said
    _, large = json.loads(guest.rigctl("export", "--format", "json", "--level", "flows"))
    throughput = large["messages"] * large["message_bytes"] / large["elapsed_s"]
    assert 0.9 < throughput / (12_500_000 * 1448 / 1538) < 1.02


def test_messages_that_do_not_fit_their_time_fail_and_say_what_to_do(guest: User) -> None:
    options = ["--set", "size=64K", "--set", "iterations=100000", "--duration", "300ms", "--repeat", "1"]
    said = guest.rigctl("run", "nettest-pingpong", *options, "--no-report", code=3, deadline_s=60)
    assert re.search(r"dublin -> cork: \d+ of 100,000 messages in its 0\.3 s\. Give it a longer duration", said)
