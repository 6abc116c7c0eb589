"""Messages, requests and multicast as a user runs them, repetitions that `retest` asks for, two variants in turn."""

import json
from collections import Counter

import pytest
from user import User, ended

from rigctl.virtual.links import burst_bytes, port_limit_bytes

MESSAGES = "rig: gigablox\ntest: {}\npairs: [pi1 -> pi2]\nduration: 60s\n"
GIGABIT = 1e9 / 8
STREAMS = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 1s\nrepeat: 4\nmatrix: {mss: [1240]}\n"
WHOLE = [900.0, 903.0, 897.0, 900.0]


def test_a_ping_pong_is_measured_tabled_and_exported(guest: User) -> None:
    settings = "heads: {Mean: AVG, RTT mean: RTT}\nrepeat: 2\nmatrix: {size: [1, 1448, 1M], iterations: 100}\n"
    log = ("--log-file", "run.jsonl", "--log-format", "json")
    said = guest.rigctl("run", guest.scenario(MESSAGES.format("pingpong") + settings), "--report", "p.html", *log)
    assert "median round trip " in said
    page = (guest.folder / "p.html").read_text()
    assert ">AVG " in page  # as on the lab's page
    assert "RTT mean" not in page.partition("<h2>Method")[0]
    flows = guest.rows("flows", invalid=True)
    every = [(cell, repetition, 100) for cell in (1, 2, 3) for repetition in (1, 2)]
    assert [(row["cell"], row["repetition"], row["messages"]) for row in flows] == every
    for row in flows:
        assert row["app_rtt_min_us"] <= row["app_rtt_p50_us"] * 1.005
        assert row["app_rtt_p50_us"] <= row["app_rtt_p99_us"] <= row["app_rtt_max_us"] * 1.005
        assert row["app_rtt_mean_us"] * 100 / 1e6 == pytest.approx(row["elapsed_s"])
    # Long messages take their frames' time at a gigabit, there and back; short ones pass a bucket at once.
    assert min(row["app_rtt_p50_us"] for row in flows[4:]) > 0.8 * 2 * 2**20 / GIGABIT * 1e6
    assert "messages-shaped" in guest.findings()
    assert guest.rows("cells", invalid=True)[0]["goodput_mbps"] is None
    trips: Counter[tuple[int, int]] = Counter()
    for row in guest.rows("histogram", invalid=True):
        trips[row["cell"], row["repetition"]] += row["count"]
    assert list(trips.values()) == [100] * 6
    lines = map(json.loads, (guest.folder / "run.jsonl").read_text().splitlines())
    let_go = {(line["run"], line["node"]) for line in lines if line["message"].endswith(": let go")}
    assert let_go == {(flows[0]["run"], "pi1"), (flows[0]["run"], "pi2")}


def test_a_blast_is_counted_whole_and_no_faster_than_its_link(guest: User) -> None:
    scenario = guest.scenario(MESSAGES.format("blast") + "matrix: {size: [64, 128K], iterations: 100}\n")
    assert "s: up to " in guest.rigctl("run", scenario, "--no-report")
    small, large = guest.rows("flows", invalid=True)
    assert (small["messages"], large["messages"]) == (100, 100)
    sent = 100 * 2**17 - burst_bytes(10**9, 1500)
    assert sent / large["elapsed_s"] < 1.02 * GIGABIT * 1448 / 1538  # how near: tests/bench/bench_fidelity.py


def test_requests_are_timed_from_when_they_were_to_begin(guest: User) -> None:
    """On a busy machine the sender may be late, and a request is then as long as it is late."""
    settings = "matrix: {size: 100, reply: [200, 10K], per_second: 500, parallel: 2, iterations: 200}\n"
    expect = 'expect: {requests: ">= 400"}\n'
    said = guest.rigctl("run", guest.scenario(MESSAGES.format("requests") + settings + expect), "--report", "p.html")
    assert "all were answered" in said
    assert "expectation-not-met" not in guest.findings()
    flows = guest.rows("flows", invalid=True)
    known = [(row["cell"], row["flow"], row["requests"], row["requests_due"], row["reply_bytes"]) for row in flows]
    assert known == [(cell, flow, 200, 200, size) for cell, size in ((1, 200), (2, 10_240)) for flow in (1, 2)]
    for row in flows:
        assert row["request_min_us"] <= row["request_p50_us"] * 1.005
        assert row["request_p50_us"] <= row["request_p90_us"] <= row["request_max_us"] * 1.005
        assert row["request_late_max_us"] <= row["request_max_us"]
        assert (row["request_p99_us"], row["requests_unanswered"], row["requests_unsent"]) == (None, 0, 0)
        assert row["nodelay"] is True
    counted: Counter[int] = Counter()
    for row in guest.rows("histogram", invalid=True):
        counted[row["cell"]] += row["count"]
    assert counted == {1: 400, 2: 400}


def test_the_most_requests_within_a_time_are_searched(guest: User) -> None:
    """A bound of 30 s is kept at every rate whose requests are answered, but a busy machine's sender may be late."""
    settings = "size: 100\nper_second: max\nmax_latency: 30s\nduration: 200ms\n"
    text = MESSAGES.format("requests").replace("duration: 60s\n", settings)
    said = " ".join(guest.rigctl("run", guest.scenario(text), "--report", "p.html").split())
    trials = guest.rows("flows", invalid=True)
    assert [row["repetition"] for row in trials] == list(range(1, len(trials) + 1))
    assert trials[0]["per_second"] == 5000  # the lowest rate at which 200 ms have 1,000 requests
    intervals_ns = [10**9 // row["per_second"] for row in trials]  # the agent's are whole
    assert [row["requests_due"] for row in trials] == [pytest.approx(2e8 / each_ns, abs=1) for each_ns in intervals_ns]
    (decided,) = [row for row in trials if row["counted"]]
    passed = f"{decided['requests_per_s']:,.0f} requests/s within 30 s (p99)"
    assert (passed in said) is ("requests-search" in guest.findings())
    assert "The search for the most requests, trial by trial" in (guest.folder / "p.html").read_text()


def test_a_group_is_sent_once_and_reaches_others_only_where_the_switch_floods(guest: User) -> None:
    """On a busy machine the sender may send less, and a receiver may lose datagrams."""
    codes = {}
    for does in ("floods", "queries"):
        words = (
            "--rig-set",
            f"switches.bridge.multicast={does}",
            "--duration",
            "5s",
            "--repeat",
            "1",
            "--set",
            "rate=2M",
        )
        guest.rigctl("run", "multicast", *words, "--report", "p.html")
        codes[does] = guest.findings()
        *receivers, bystander = guest.rows("flows", invalid=True)
        assert len({row["datagrams_sent"] for row in receivers}) == 1
        for row in receivers:
            assert 0 < row["received_mbps"] < 4
            assert row["join_us"] > 0
            assert row["report_version"].startswith("IGMPv")
        assert (bystander["received_mbps"], bystander["loss_pct"], bystander["join_us"]) == (None, None, None)
        assert (bystander["outside_pct"] > 90) is (does == "floods")
    assert "multicast-flooded-unqueried" in codes["floods"]
    assert not {"multicast-flooded", "multicast-flooded-unqueried", "multicast-unwatched"} & {*codes["queries"]}
    (cells,) = guest.rows("cells", invalid=True)
    assert cells["datagrams_sent"] == receivers[0]["datagrams_sent"]


def test_what_varies_is_measured_again_in_a_table_of_its_own(replayed: User) -> None:
    replayed.replay.says(measured={"1": [100, 110, 104, 105, 106], "2": [200]})
    more = 'repeat: 2\nretest: {when: "variation > 1%", repeat: 3}\nmatrix: {size: [1, 4K], iterations: 100}\n'
    said = replayed.rigctl("run", replayed.scenario(MESSAGES.format("pingpong") + more), "--report", "p.html")
    table = "Measured again: tests whose repetitions varied by more than 1 %"
    assert table not in said
    page = (replayed.folder / "p.html").read_text()
    assert "Test 1 varied by 4.8 % over 2 repetitions; over 3 more by 0.63 %, with the same mean" in page
    once = [(test, number) for test in (1, 2) for number in (1, 2)]
    again = [(1, number) for number in (3, 4, 5)]
    assert [(test, number) for test, number, _ in replayed.replay.began] == [*once, *again]
    flows = replayed.rows("flows", invalid=True)
    assert [(row["cell"], row["repetition"]) for row in flows] == sorted([*once, *again])


def test_two_variants_are_measured_in_turn_and_the_worse_one_is_exit_code_1(replayed: User) -> None:
    replayed.replay.says(measured={"1": WHOLE, "2": [mbps / 2 for mbps in WHOLE]})
    scenario = replayed.scenario(STREAMS)
    assert "with mss 1240 and 100 in turn (ABBA)" in replayed.rigctl("plan", scenario, "--against", "mss=100")
    said = replayed.rigctl("run", scenario, "--against", "mss=100", "--report", "c.html", code=1)
    assert "worse: goodput −50.0 % (" in said
    assert [test for test, _, _ in replayed.replay.began] == [1, 2, 2, 1, 1, 2, 2, 1]
    rows = {(row["cell"], row["mss"], row["repetition"]) for row in replayed.rows("cells")}
    assert rows == {(cell, mss, number) for cell, mss in ((1, 1240), (2, 100)) for number in range(1, 5)}
    done = ended(("compare", "--json"), replayed.folder, replayed.environment)
    against = json.loads(done.stdout)["against"]
    assert (done.returncode, against) == (1, {"setting": "mss", "before": "1240", "after": "100"})
    page = replayed.folder / "c.html"
    assert "mss 100 against 1240" in page.read_text().replace("MSS", "mss")
    replayed.rigctl("report", "-o", "again.html")
    assert (replayed.folder / "again.html").read_text() == page.read_text()
    replayed.replay.says(measured={"*": WHOLE})
    replayed.rigctl("run", scenario, "--against", "mss=100", "--no-report")  # both alike: exit code 0


def test_bursts_show_the_buffer_of_a_port_as_it_is_set(guest: User) -> None:
    """A port of 10 Mbit/s has a queue of 132,572 bytes and a bucket of four frames (rigctl.virtual.links).

    A busy machine may hold up a sender, so that more of a burst passes, but none of the queue is ever missing.
    """
    rate_bps, frame = 10_000_000, 1514
    room = port_limit_bytes(rate_bps, 1500) // frame + burst_bytes(rate_bps, 1500) // frame
    (guest.folder / "slow.yaml").write_text("virtual: namespaces\nnodes: {n1: {rate: 1G}, n2: {rate: 10M}}\n")
    text = "rig: ./slow.yaml\ntest: burst\npairs: [n1 -> n2]\nduration: 2s\nsize: 1472\nmatrix: {length: [20, 400]}\n"
    expect = 'expect: [{where: {length: 20}, burst_loss: "<= 0%"}]\n'
    scenario = guest.scenario(text.replace("rig: ./slow.yaml", f"rig: {guest.folder / 'slow.yaml'}") + expect)
    said = guest.rigctl("run", scenario, "--report", "p.html")
    assert "a buffer of" in said
    short, long = guest.rows("cells", invalid=True)
    assert (short["burst_length"], short["bursts_lossless"]) == (20, short["bursts"])
    assert short["buffer_frames"] is None
    assert (long["burst_length"], long["bursts_lossless"]) == (400, 0)
    assert long["buffer_frames"] <= room + 1.5
    assert long["bursts"] * 400 - long["datagrams_lost"] >= long["bursts"] * room - long["bursts"]
    assert "buffer-shown" in guest.findings()
    assert "Loss against the length of a burst" in (guest.folder / "p.html").read_text()
