"""A stream's bytes by the time they were taken, in fine bins."""

import pytest
from talk import Line, Start, Talk, joined, started


def bins_of(agent: Talk) -> list[list[int]]:
    """By flow."""
    found: dict[int, list[int]] = {}
    for line in agent.answer(agent.send("report endpoint=1")):
        if "bins" in line:
            known = found.setdefault(line["flow"], [])
            assert line["from"] == len(known)
            known += line["bins"]
    return [found[flow] for flow in sorted(found)]


def totals_of(agent: Talk) -> list[Line]:
    return [line for line in agent.answer(agent.send("report endpoint=1")) if "bytes" in line]


@pytest.mark.parametrize("what", ["", "transport=udp size=1000"])
def test_bins_add_up_to_the_bytes_and_lie_where_they_came(start: Start, what: str) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, flows=2, extra=what)
    at_ns = started([receiver, sender], 300, "bin_us=500" + (" rate=8000000" if what else ""))
    for agent in (receiver, sender):
        assert agent.event("ended", 20)["error"] is None
    for bins, totals in zip(bins_of(receiver), totals_of(receiver), strict=True):
        assert sum(bins) == totals["bytes"]
        assert len(bins) == (totals["last_byte_ns"] - at_ns) // 500_000 + 1
        assert next(at for at, value in enumerate(bins) if value) == (totals["first_byte_ns"] - at_ns) // 500_000
    assert bins_of(sender) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("duration_ms=100 bin_us=99", "bin_us: expected 100 to 1000000"),
        ("duration_ms=400001 bin_us=100", "more than 4000000 bins per flow: ask for a longer bin_us"),
    ],
)
def test_what_cannot_be_kept_is_refused(start: Start, how: str, said: str) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, interval_ms=60000)
    answer = receiver.ask(f"start endpoint=1 at_ns=1 {how}")
    assert (answer["ok"], answer["message"]) == (False, said)
