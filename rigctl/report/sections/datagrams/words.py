"""Sentences about the datagrams of one test."""

from collections.abc import Iterator

from rigctl.analysis.summary import CellSummary, StreamSummary
from rigctl.records import RunInfo
from rigctl.report.words.bottlenecks import bottleneck_text
from rigctl.report.words.exclusions import exclusion_text
from rigctl.report.words.goodput import goodput_text
from rigctl.report.words.text import count_text, rate_text
from rigctl.settings import RATE

STEADY = 0.98
"""From this share of the offered load on, the sender kept to it."""


def explain(info: RunInfo, cell: CellSummary) -> list[str]:
    """The sentences of one test."""
    notes = [exclusion_text(excluded) for excluded in cell.exclusions]
    if not cell.counted:
        return notes
    said = [goodput_text(info, cell), load_text(cell)]
    said += [_loss(stream, len(cell.streams) > 1) for stream in cell.streams]
    said += [*_order(cell), *_drops(info, cell), bottleneck_text(cell), *notes]
    return [sentence for sentence in said if sentence]


def load_text(cell: CellSummary) -> str:
    """Where the senders did not achieve the offered load that was requested."""
    sent = [stream.datagrams.sent_mbps for stream in cell.streams if stream.datagrams is not None]
    known = [rate_mbps for rate_mbps in sent if rate_mbps is not None]
    rate = cell.cell[RATE]
    if not isinstance(rate, int) or not known:
        return ""
    asked = rate * cell.cell.parallel / 1e6
    if min(known) >= STEADY * asked:
        return ""
    return (
        f"{rate_text(asked)} Mbit/s were requested on each pair; the slowest sender achieved {rate_text(min(known))}: "
        "what was received says nothing about the network's limit."
    )


def _loss(stream: StreamSummary, several: bool) -> str:
    counted = stream.datagrams
    if counted is None or counted.sent is None or counted.lost is None:
        return ""
    where = f" on {stream}" if several else ""
    if counted.lost == 0:
        return f"All {count_text(counted.sent)} datagrams arrived{where}."
    longest = f", at most {count_text(counted.burst_max)} in a row" if counted.burst_max else ""
    share = f"{100 * counted.lost / counted.sent:.2g} %{longest}."
    if counted.sent_burst:
        share += f" The sender's longest burst was {count_text(counted.sent_burst)}."
    return f"{count_text(counted.lost)} of {count_text(counted.sent)} datagrams were lost{where}, {share}"


def _order(cell: CellSummary) -> Iterator[str]:
    for name, what in (("reordered", "reordered"), ("duplicates", "duplicates")):
        known = [getattr(stream.datagrams, name) or 0 for stream in cell.streams if stream.datagrams is not None]
        if sum(known):
            yield f"{count_text(sum(known))} {what}."


def _drops(info: RunInfo, cell: CellSummary) -> Iterator[str]:
    """Which of the losses were not the network's."""
    counted = [stream.datagrams for stream in cell.streams if stream.datagrams is not None]
    refused = sum(datagrams.sender_drops or 0 for datagrams in counted)
    overflow = sum(datagrams.receiver_drops or 0 for datagrams in counted)
    if refused:
        yield f"The senders' own queues refused {count_text(refused)} more; these were never sent and are not counted."
    if overflow:
        pieces = ", a piece of several datagrams as one" if info.plan.virtual == "namespaces" else ""
        yield (
            f"The receivers' full socket buffers dropped {count_text(overflow)} (as their kernels count them{pieces}): "
            "a loss at the host, not in the network. A larger window, which sets the buffer, may help."
        )
