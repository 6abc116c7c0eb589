"""Streams, datagrams and classes as a user measures them: real SSH, real agents, on the rig gigablox.

Each run is made once, and the tests read it.
"""

import re
from pathlib import Path

from real_runs import Maker, Real
from user import User

from rigctl.model.capture import segments

TRAFFIC = """
rig: gigablox
pairs: [pi1 -> pi2, pi3 -> pi2]
duration: 1s
bins: 0.5ms
max_skew: 1s
include:
- {parallel: 1, latency: false}
- {parallel: 2, latency: 5ms}
"""
TWO = """
rig: gigablox
pairs: [pi1 -> pi2]
duration: 1s
max_skew: 1s
classes: {voice: {test: udp, rate: 2M, dscp: EF}, bulk: {parallel: 4, congestion: cubic}}
"""


def streams(maker: Maker) -> None:
    scenario = maker.scenario(TRAFFIC)
    assert "Total time: 3 s (2 tests)" in maker.rigctl("plan", scenario)  # the idle baseline of the second is counted
    maker.measures("streams", TRAFFIC, "--capture", "2", "--report", "streams.html")


def datagrams(maker: Maker) -> None:
    words = ["--set", "size=1472", "--set", "rate=20M,max", "--duration", "500ms", "--set", "max_skew=500ms"]
    maker.measures("datagrams", "udp", *words, "--no-report")


def classes(maker: Maker) -> None:
    assert "Total time: 1 s (2 tests, 2 at the same time)" in maker.rigctl("plan", maker.scenario(TWO))
    maker.measures("classes", TWO, "--no-report")


def test_latency_and_fine_bins_are_measured_where_they_are_asked_for(real: Real, host: User) -> None:
    streamed = real(streams, host)["streams"]
    assert "Loaded" in streamed.said
    rows = streamed.rows()
    known = [(row["cell"], row["latency_idle_p50_us"] is None, row["latency_rpm"] is None) for row in rows]
    assert known == [(1, True, True)] * 2 + [(2, False, False)] * 2
    for row in rows[2:]:
        assert 0 < row["latency_idle_p50_us"] <= row["latency_idle_p99_us"]
        assert 0 < row["latency_loaded_p50_us"] <= row["latency_loaded_p99_us"]
        assert 0 <= row["latency_lost_pct"] <= 100
        assert row["goodput_mbps"] > 0
    assert {"latency-rise", "latency-short"} & streamed.findings.keys()
    assert "Throughput over time, in bins of 0.5 ms" in (streamed.folder / "streams.html").read_text()
    bins = streamed.rows("bins")
    assert {(row["cell"], row["source"]) for row in bins} == {(cell, pi) for cell in (1, 2) for pi in ("pi1", "pi3")}


def test_a_capture_of_both_ends_lies_beside_the_report(real: Real, host: User, tmp_path: Path) -> None:
    streamed = real(streams, host)["streams"]
    captures = sorted(streamed.folder.glob("*.pcap"))
    ends = [file.name.partition("-test2-1-")[2].removesuffix(".pcap") for file in captures]
    assert ends == [f"{pair}-at-{end}" for pair in ("pi1-to-pi2", "pi3-to-pi2") for end in sorted(pair.split("-to-"))]
    for file in captures:
        assert file.name in streamed.said  # in the table of captures
        assert len({one.flow for one in segments(file.read_bytes()) if one.payload > 100}) == 2
    # Two gigabits meet at one port, which drops: what the captures say of it is compared with TCP's own count.
    page = (streamed.folder / "streams.html").read_text()
    assert "2 captures at senders confirm TCP&#39;s counters" in page or "of 2 captures differ from what TCP" in page
    again = tmp_path / "again.html"
    streamed.user.rigctl("report", streamed.run, "--output", str(again))
    assert captures[0].name in again.read_text()


def test_a_rate_is_kept_and_the_highest_one_is_searched(real: Real, host: User) -> None:
    run = real(datagrams, host)["datagrams"]
    assert "Test 2 (datagrams of 1472 bytes): " in run.said
    assert {"search", "search-none"} & run.findings.keys()  # no rate passed: a busy machine may lose some
    rows = run.rows("cells")
    first = next(row for row in rows if row["cell"] == 1)
    assert (first["rate_mbps"], first["transport"], first["status"]) == (20.0, "udp", "ok")
    assert 0 <= first["datagrams_lost"] < first["datagrams_sent"]
    assert first["datagrams_sent"] * 1472 * 8 <= 1.05 * 2 * 20e6 * 0.5  # two pairs for half a second
    trials = [row for row in rows if row["cell"] == 2]
    assert trials[0]["rate_mbps"] is None
    numbers = [row["repetition"] for row in trials]
    assert numbers == sorted(set(numbers))


def test_two_classes_run_together_and_have_a_row_each(real: Real, host: User) -> None:
    run = real(classes, host)["classes"]
    assert re.search(r"^ +1/2 +voice .*\n +2/2 +bulk ", run.said, re.MULTILINE)
    rows = {row["class"]: row for row in run.rows("cells")}
    assert [(name, row["test"], row["cell"]) for name, row in rows.items()] == [("voice", "udp", 1), ("bulk", "tcp", 2)]
    voice, bulk = rows["voice"], rows["bulk"]
    assert voice["rate_mbps"] == 2
    assert 0 < voice["bytes"] * 8e-6 < 1.05 * 2  # in a second
    assert bulk["goodput_mbps"] > 0
    assert voice["duration_s"] == bulk["duration_s"]
    assert [row["flow"] for row in run.rows("flows")] == [1, 1, 2, 3, 4]
    answer = run.document["findings"][0]
    assert (answer["code"], list(answer["numbers"])) == ("classes", ["voice_goodput_mbps", "bulk_goodput_mbps"])


def test_what_fails_in_a_test_fails_all_its_classes_and_a_resumed_run_measures_them(replayed: User) -> None:
    scenario = replayed.scenario(TWO + "repeat: 2\n")
    for failing, status, more, code in (({"1": "gone"}, "failed", (), 3), ({}, "ok", ("--resume",), 0)):
        replayed.replay.says(failing=failing)
        replayed.rigctl("run", scenario, "--no-report", *more, code=code)
        measured = {(row["class"], row["repetition"], row["status"]) for row in replayed.rows("cells")}
        assert measured == {(name, number, status) for name in ("voice", "bulk") for number in (1, 2)}
