"""Sentences on losses, and on counters and captures that confirm or contradict what the flows counted."""

from typing import Final

from rigctl.findings import Weight, good, note, warning

RETRANSMITS_SUM: Final = note(
    "retransmits", "Retransmits in all measurement intervals together: {count}{share}{several}.", weight=Weight.LOSS
)
DATAGRAMS_LOST: Final = warning(
    "datagrams-lost",
    "Datagrams were lost in {lossy} of {known} tests, most in test {worst}: {loss}.",
    weight=Weight.LOSS,
)
DATAGRAMS_LOST_IN_TEST: Final = warning(
    "datagrams-lost", "{loss} of the datagrams were lost in test {worst}.", weight=Weight.LOSS
)
BUFFERS_FULL: Final = warning(
    "socket-buffers-full",
    "Socket buffers of receivers were full in {tests}: a loss at the host, not in the network.",
    "A larger window sets a larger buffer.",
    Weight.LOSS,
)
DROPS_UNCOUNTED: Final = note(
    "drops-uncounted",
    "{nodes} ({system}) does not count datagrams that a full receive buffer drops: losses in {tests} may be the "
    "host's, not the network's.{buffer}",
    "A larger window sets a larger buffer.",
    Weight.LOSS,
)
LOAD_NOT_SENT: Final = warning(
    "load-not-sent", "The senders did not achieve the offered load in {tests}.", weight=Weight.GRANTED
)
UNANSWERED: Final = warning(
    "unanswered",
    "Test {test}: {datagrams} of {size} did not come back within a second; they are missing from the round trips.",
    weight=Weight.LOSS,
)
PROBES_UNANSWERED: Final = warning(
    "probes-unanswered",
    "No probe of {stream} was answered in {tests}: latency is unknown.",
    "Check whether a firewall drops UDP.",
)
LOSS_PLACE: Final = note(
    "loss-place", "{of} about {retransmits} from the first byte to the last{places}.", weight=Weight.LOSS
)
COUNTERS_SUM: Final = note(
    "counters", "{name} show {counted}, against {expected} of the flows with headers: a difference of {percent}{why}."
)
COUNTERS_DIFFER: Final = warning(
    "counters-differ", "Counters and flows differ by more than {bound:g} % in {tests}: {why}."
)
PORTS_DIFFER: Final = warning(
    "ports-differ", "At individual ports, counters and flows differ by more than {bound:g} % in {tests}."
)
FRAMES_DAMAGED: Final = warning(
    "frames-damaged", "{places}.", "Look at the cable and the plugs between the two ends there, or replace the cable."
)
COUNTERS_MISSING: Final = warning("counters-missing", "{why}: no counters in {measurements}.")
CAPTURES_AGREE: Final = good(
    "captures-agree", "{captures} at senders confirm TCP's counters: {retransmits}.", weight=Weight.DETAIL
)
CAPTURES_DIFFER: Final = warning(
    "captures-differ",
    "Retransmits in {captures_that_differ} of {captures} differ from what TCP counts, most {seen} against {counted} in "
    "test {test} at {node}; {cause}.",
)
CAPTURES_FULL: Final = note(
    "captures-full", "Captures of {tests} were full before the end: their retransmits are not compared."
)
