"""The window a receiver advertises is the one that was asked for, whatever Linux computes to fit into the buffer."""

import pytest
from talk import Start, joined, report_of, started

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
