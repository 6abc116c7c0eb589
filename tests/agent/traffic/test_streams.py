"""Streams: the window that is held, bytes with and without copies, the rate that paces them, bins of their bytes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cases import from_file
from processes import eventually, output_of
from talk import (
    AGENTS,
    LONG_MS,
    Start,
    Talk,
    arrived,
    begin,
    completed,
    flowing,
    joined,
    ran,
    report_of,
    shown,
    started,
)

WINDOW = 65536
MANY = 1_000_000


@pytest.mark.parametrize(
    ("work", "how"),
    [("", ""), ("test=blast size=16000000", "iterations=100000"), ("test=file size=1000000000000 disk=0", "")],
)
def test_the_window_is_held_where_linux_would_advertise_more(start: Start, work: str, how: str) -> None:
    # Linux 6.18 would come to advertise 115 KB of jumbo segments.
    _, sender, port = flowing(start, how, extra=f"window={WINDOW} mss=8960 {work}".strip(), interval_ms=10)
    arrived(sender, port, 1000 * WINDOW)
    # Less while bytes wait to be taken, which may be so at the end: whether it comes back is seen while they flow.
    # ss prints no window that is 0.
    eventually(lambda: WINDOW - 8960 <= max(shown(sender, port, "snd_wnd"), default=0) <= WINDOW)
    assert sender.ask("stop endpoint=1")["ok"]
    sender.event("ended")
    report = report_of(sender)
    samples = [dict(zip(report.columns, row, strict=True)) for row in report.rows[0]]
    held = [sample["advertised_window"] for sample in samples if sample["bytes"] > 100 * WINDOW]
    assert max(held) <= WINDOW


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("zerocopy", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_every_byte_arrives_whoever_copies_it(start: Start, address: str, zerocopy: bool, copy: bool) -> None:
    how: dict[str, Any] = {"listen": f"copy={int(copy)}", "connect": f"zerocopy={int(zerocopy)}"}
    received, sent = (report.totals for report in ran(start, until=MANY, address=address, flows=2, **how))
    for flow in (0, 1):
        assert received[flow]["bytes"] == sent[flow]["bytes"] >= MANY
        assert received[flow]["copied"] is copy
        assert (sent[flow]["copied"], sent[flow]["max_pacing_bps"]) == (None, None)
        # The kernel copies what stays on one machine, and says so.
        assert sent[flow]["uncopied_sends"] == (0 if zerocopy else None)
        assert sent[flow]["sends"] > 0
        assert received[flow]["sends"] is None


def test_a_sender_without_a_copy_is_stopped_while_nobody_reads(receiver: Talk, sender: Talk) -> None:
    port = joined(receiver, sender, connect="zerocopy=1")
    begin(sender)
    arrived(sender, port)
    assert receiver.ask("close endpoint=1")["ok"]
    assert sender.event("ended")["error"] is not None
    totals = report_of(sender).totals[0]
    assert 0 <= totals["uncopied_sends"] <= totals["sends"]


@from_file
def test_a_stream_never_exceeds_its_rate_and_queues_little(start: Start, rate: int, flows: int, extra: str) -> None:
    """The kernel would take megabytes, which would arrive long after the end.

    docs/measured/pacing.md tells how near to its rate a stream comes.
    """
    what: dict[str, Any] = {"connect" if extra.startswith("zerocopy") else "extra": extra}
    received, sent = ran(start, f"rate={rate}", duration_ms=300, flows=flows, **what)
    for flow in range(flows):
        assert sent.totals[flow]["max_pacing_bps"] == rate
        assert received.totals[flow]["max_pacing_bps"] is None
        # The bytes of the duration, what the hold of 1 ms and the first send add, and two pieces in the queue.
        assert sent.totals[flow]["bytes"] <= 0.3 * rate / 8 + 1448 + 4 * max(2896, rate / 1600)
        assert received.totals[flow]["bytes"] == sent.totals[flow]["bytes"]


def bins_of(agent: Talk) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for line in (one for one in agent.answer(agent.send("report endpoint=1")) if "bins" in one):
        assert line["from"] == len(found.setdefault(line["flow"], []))
        found[line["flow"]] += line["bins"]
    return [found[flow] for flow in sorted(found)]


@pytest.mark.parametrize("what", ["", "transport=udp size=1000"])
def test_bins_add_up_to_the_bytes_and_lie_where_they_came(receiver: Talk, sender: Talk, what: str) -> None:
    port = joined(receiver, sender, flows=2, extra=what)
    at_ns = started(receiver, sender, 300 if what else LONG_MS, f"bin_us=500 rate={8_000_000 if what else 10**9}")
    if not what:
        arrived(sender, port, MANY, flows=2)
        assert sender.ask("stop endpoint=1")["ok"]
    completed(receiver, sender)
    for bins, totals in zip(bins_of(receiver), report_of(receiver).totals.values(), strict=True):
        assert sum(bins) == totals["bytes"] > 0
        assert len(bins) == (totals["last_byte_ns"] - at_ns) // 500_000 + 1
        assert next(at for at, value in enumerate(bins) if value) == (totals["first_byte_ns"] - at_ns) // 500_000
    assert bins_of(sender) == []


def test_a_bin_holds_more_than_4_gib_and_no_byte_is_outside_of_all_bins(sanitized: Path, tmp_path: Path) -> None:
    """A byte from before the start, by the receiver's clock, is in the first bin; one after the last bin is in it."""
    program, harness = tmp_path / "wide_bins", Path(__file__).with_name("wide_bins.c")
    sources = [path.stem for path in AGENTS.glob("*.c") if path.stem != "main"]
    objects = [path for path in (sanitized.parent / "sanitized").glob("*.o") if path.stem in sources]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-pthread"]
    subprocess.run(["cc", *flags, f"-I{AGENTS}", "-o", program, harness, *objects], check=True)
    counted = {-2_500_000_000: 1, 0: 5_000_000_000, 999_999_999: 2**40, 3_000_000_000: 7, 9_000_000_000: 2**33}
    lines = output_of([program, *(str(word) for pair in counted.items() for word in pair)]).splitlines()
    parts = [json.loads(line) for line in lines]
    (bins,) = (part["bins"] for part in parts if "bins" in part)
    assert bins == [1 + 5_000_000_000 + 2**40, 0, 0, 7 + 2**33]
    assert sum(bins) == parts[0]["bytes"] == sum(counted.values())
