"""Streams with a rate: the kernel holds them to it, and a slow sender queues little."""

import pytest
from talk import Report, Start, joined, ran, report_of, started

HOLD_NS = 4_000_000


def goodput_bps(received: Report, flow: int, at_ns: int, duration_ms: int) -> float:
    """Return the goodput until the last sample within the duration."""
    end_ns = at_ns + duration_ms * 1_000_000
    t_ns, count = [(row[0], row[1]) for row in received.rows[flow] if row[0] <= end_ns][-1]
    return count * 8e9 / (t_ns - at_ns - HOLD_NS)


@pytest.mark.quiet
@pytest.mark.parametrize(("rate", "flows"), [(2_000_000, 4), (50_000_000, 4), (20_000_000, 1)])
def test_goodput_follows_the_rate(start: Start, rate: int, flows: int) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=flows, extra="mss=1460", interval_ms=20)
    at_ns = started([receiver, sender], 2000, f"rate={rate} hold_us={HOLD_NS // 1000}")
    for agent in (receiver, sender):
        assert agent.event("ended")["error"] is None
    received, sent = report_of(receiver), report_of(sender)
    for flow in range(flows):
        assert sent.totals[flow]["max_pacing_bps"] == rate
        assert received.totals[flow]["max_pacing_bps"] is None
        assert received.totals[flow]["bytes"] == sent.totals[flow]["bytes"]
        assert goodput_bps(received, flow, at_ns, 2000) == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("extra", ["", "mss=536", "window=4096", "zerocopy=1"])
def test_a_slow_sender_queues_little(start: Start, extra: str) -> None:
    """The kernel would take megabytes, which would arrive long after the end."""
    window = {"extra": extra} if extra.startswith("window") else {"connect": extra}
    receiver, sender = ran(start, 600, "rate=1000000", flows=2, **window)
    received, sent = report_of(receiver), report_of(sender)
    for flow in (0, 1):
        # The bytes of the duration, what the hold of 1 ms and the first send add, and two pieces in the queue.
        assert sent.totals[flow]["bytes"] <= 0.6 * 1_000_000 / 8 + 1448 + 4 * 2896
        assert received.totals[flow]["bytes"] == sent.totals[flow]["bytes"]


def test_without_a_rate_no_flow_is_held(start: Start) -> None:
    _, sender = ran(start, 200)
    assert report_of(sender).totals[0]["max_pacing_bps"] is None


@pytest.mark.parametrize(
    ("what", "how", "said"),
    [("test=blast size=64", "rate=1000", "rate: for streams only"), ("", "rate=1000 burst=8", "burst: for streams of")],
)
def test_a_rate_that_a_test_cannot_have_is_refused(start: Start, what: str, how: str, said: str) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, extra=what)
    answer = sender.ask(f"start endpoint=1 at_ns=1 duration_ms=10 {how}")
    assert answer["message"].startswith(said)
