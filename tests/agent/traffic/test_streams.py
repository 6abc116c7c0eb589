"""Streams: the window that is held, bytes with and without copies, the rate that paces them, bins of their bytes."""

import pytest
from talk import Report, Start, Talk, completed, joined, ran, report_of, started

WINDOW = 65536


@pytest.mark.parametrize(
    ("work", "how"),
    [("", ""), ("test=blast size=16000000", "iterations=100000"), ("test=file size=1000000000000 disk=0", "")],
)
def test_the_window_is_held_where_linux_would_advertise_more(start: Start, work: str, how: str) -> None:
    receiver, sender = start(), start()
    # Linux 6.18 would come to advertise 115 KB of jumbo segments.
    joined(receiver, sender, extra=f"window={WINDOW} mss=8960 {work}".strip(), interval_ms=20)
    started([receiver, sender], 500, how)
    sender.event("ended")
    report = report_of(sender)
    assert report.totals[0]["bytes"] > 100 * WINDOW
    advertised = [dict(zip(report.columns, row, strict=True))["advertised_window"] for row in report.rows[0]]
    assert len(advertised) > 10
    # Less, while bytes wait to be taken.
    assert max(advertised[2:]) <= WINDOW
    assert max(advertised) >= WINDOW - 8960


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("zerocopy", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_every_byte_arrives_whoever_copies_it(start: Start, address: str, zerocopy: bool, copy: bool) -> None:
    receiver, sender = ran(
        start, 300, address=address, flows=2, listen=f"copy={int(copy)}", connect=f"zerocopy={int(zerocopy)}"
    )
    received, sent = report_of(receiver).totals, report_of(sender).totals
    for flow in (0, 1):
        assert received[flow]["bytes"] == sent[flow]["bytes"]
        assert received[flow]["copied"] is copy
        assert (sent[flow]["copied"], sent[flow]["max_pacing_bps"]) == (None, None)
        # The kernel copies what stays on one machine, and says so.
        assert sent[flow]["uncopied_sends"] == (0 if zerocopy else None)
        assert (sent[flow]["sends"] > 0) == (sent[flow]["bytes"] > 0)
        assert received[flow]["sends"] is None


def test_a_sender_without_a_copy_is_stopped_while_nobody_reads(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, connect="zerocopy=1")
    started([sender], 300)
    assert receiver.ask("close endpoint=1")["ok"]
    assert sender.event("ended")["error"] is not None
    totals = report_of(sender).totals[0]
    assert 0 <= totals["uncopied_sends"] <= totals["sends"]


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
    completed(receiver, sender)
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


def bins_of(agent: Talk) -> list[list[int]]:
    """Return the bins of each flow."""
    found: dict[int, list[int]] = {}
    for line in agent.answer(agent.send("report endpoint=1")):
        if "bins" in line:
            known = found.setdefault(line["flow"], [])
            assert line["from"] == len(known)
            known += line["bins"]
    return [found[flow] for flow in sorted(found)]


@pytest.mark.parametrize("what", ["", "transport=udp size=1000"])
def test_bins_add_up_to_the_bytes_and_lie_where_they_came(start: Start, what: str) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=2, extra=what)
    at_ns = started([receiver, sender], 300, "bin_us=500" + (" rate=8000000" if what else ""))
    completed(receiver, sender)
    for bins, totals in zip(bins_of(receiver), report_of(receiver).totals.values(), strict=True):
        assert sum(bins) == totals["bytes"]
        assert len(bins) == (totals["last_byte_ns"] - at_ns) // 500_000 + 1
        assert next(at for at, value in enumerate(bins) if value) == (totals["first_byte_ns"] - at_ns) // 500_000
    assert bins_of(sender) == []
