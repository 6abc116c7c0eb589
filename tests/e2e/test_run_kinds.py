"""Files, round trips beside streams and datagrams as a user measures them: virtual rigs, real SSH, real agents."""

import json

from user import User

LATENCY = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\nmatrix: {latency: [false, 5ms], congestion: cubic}\n"


def test_a_file_is_put_from_disk_to_disk_beside_the_stream(guest: User) -> None:
    scenario = guest.scenario(
        "rig: gigablox\ntest: file\npairs: [pi1 -> pi2]\nduration: 20s\n"
        "matrix: {size: 10M, read: [disk, memory], write: [disk, memory]}\n"
    )
    said = guest.rigctl("run", scenario, "--report", "f.html", deadline_s=90).replace("\n", " ")
    assert "The fastest transfer of 10 MiB" in said
    assert "% of memory to memory" in said
    assert "Sync" in (guest.folder / "f.html").read_text()


def test_latency_is_measured_beside_the_streams_where_it_is_asked_for(guest: User) -> None:
    scenario = guest.scenario(LATENCY)
    plan = guest.rigctl("plan", scenario, "--duration", "1s")
    assert "Total time: 3 s (2 tests)" in plan  # the idle baseline of the second is counted
    options = ("--duration", "1s", "--set", "max_skew=1s", "--report", "l.html")  # other tests run beside this one
    said = guest.rigctl("run", scenario, *options)
    assert "Latency under load" in said
    page = (guest.folder / "l.html").read_text()
    assert "Round trips over time of test 2" in page
    rows = guest.rows()
    assert [(row["cell"], row["latency_idle_p50_us"] is None, row["latency_rpm"] is None) for row in rows] == [
        (1, True, True), (1, True, True), (2, False, False), (2, False, False),
    ]  # fmt: skip
    for row in rows[2:]:
        assert 0 < row["latency_idle_p50_us"] <= row["latency_idle_p99_us"]
        assert 0 < row["latency_loaded_p50_us"] <= row["latency_loaded_p99_us"]
        assert 0 <= row["latency_lost_pct"] <= 100
        assert row["goodput_mbps"] > 0
    assert "nder load the round trip of" in guest.findings() or "nder load the round trip stays" in guest.findings()


def test_a_rate_is_kept_and_the_highest_one_is_found(guest: User) -> None:
    options = ["--set", "size=1472", "--set", "rate=20M,max", "--duration", "500ms", "--report", "u.html"]
    options += ["--set", "max_skew=1s"]  # other tests run beside this one
    said = guest.rigctl("run", "udp", *options, deadline_s=120)
    assert "Test 2 (datagrams of 1472 bytes): " in said
    assert "PDR (loss 0.1 %, trials of 500 ms) is " in said.replace("\n", " ")
    assert "The search for the highest rate, trial by trial" in (guest.folder / "u.html").read_text()
    rows = guest.rows("cells")
    first = next(row for row in rows if row["cell"] == 1)
    assert (first["rate_mbps"], first["transport"], first["status"]) == (20.0, "udp", "ok")
    assert 10 < first["sent_mbps"] < 41
    assert 0 <= first["datagrams_lost"] < 0.3 * first["datagrams_sent"]  # a busy machine may lose some
    trials = [row for row in rows if row["cell"] == 2]
    assert trials[0]["rate_mbps"] is None
    numbers = [row["repetition"] for row in trials]
    assert numbers == sorted(set(numbers))


def test_a_ping_pong_of_datagrams_and_one_of_tcp_side_by_side(guest: User) -> None:
    options = ["--set", "size=64", "--set", "iterations=200", "--set", "transport=tcp,udp", "--repeat", "1"]
    scenario = guest.scenario("rig: gigablox\ntest: pingpong\npairs: [pi1 -> pi2]\nduration: 5s\nmatrix: {size: 1}\n")
    said = guest.rigctl("run", scenario, *options, "--no-report", deadline_s=60)
    assert "Transport" in said
    rows = json.loads(guest.rigctl("export", "--format", "json", "--level", "flows"))
    assert [(row["transport"], row["messages"]) for row in rows] == [("tcp", 200), ("udp", 200)]
