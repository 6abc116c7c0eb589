"""A stream's bytes with and without copies: all arrive, all are counted, and what the kernel really did is reported."""

import pytest
from talk import Start, joined, ran, report_of, started


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
        assert sent[flow]["copied"] is None
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
