"""Round trips beside streams as a user runs them: on the virtual gigablox, through SSH and real agents."""

from user import User

SCENARIO = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\nmatrix: {latency: [false, 5ms], congestion: cubic}\n"


def test_latency_is_measured_beside_the_streams_where_it_is_asked_for(user: User) -> None:
    scenario = user.scenario(SCENARIO)
    plan = user.rigctl("plan", scenario, "--duration", "1s")
    assert "Total time: 3 s (2 tests)" in plan  # the idle baseline of the second is counted
    options = ("--duration", "1s", "--set", "max_skew=1s", "--report", "l.html")  # other tests run beside this one
    said = user.rigctl("run", scenario, *options)
    assert "Latency under load" in said
    page = (user.folder / "l.html").read_text()
    assert "Round trips over time of test 2" in page
    rows = user.rows()
    assert [(row["cell"], row["latency_idle_p50_us"] is None, row["latency_rpm"] is None) for row in rows] == [
        (1, True, True), (1, True, True), (2, False, False), (2, False, False),
    ]  # fmt: skip
    for row in rows[2:]:
        assert 0 < row["latency_idle_p50_us"] <= row["latency_idle_p99_us"]
        assert 0 < row["latency_loaded_p50_us"] <= row["latency_loaded_p99_us"]
        assert 0 <= row["latency_lost_pct"] <= 100
        assert row["goodput_mbps"] > 0
    assert "nder load the round trip of" in user.findings() or "nder load the round trip stays" in user.findings()
