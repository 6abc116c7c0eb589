"""Sentences on congestion control and Multipath TCP: what nodes support, what was requested, and what was used."""

from typing import Final

from rigctl.findings import Weight, error, good, note, warning

SAME_CONGESTION: Final = good("congestion", "the default congestion control is {name}.")
CONGESTION_MISSING: Final = error(
    "congestion-missing",
    "congestion control {name} is not loaded, and {asking} it; available: {known}.",
    "On the node, as root: modprobe tcp_{name}",
)
CONGESTION_FORBIDDEN: Final = error(
    "congestion-forbidden",
    "only root may use congestion control {name}, and {asking} it.",
    "On the node, as root: sysctl -w net.ipv4.tcp_allowed_congestion_control='{names}'",
)
CONGESTIONS_DIFFER: Final = warning(
    "congestions-differ",
    "the default congestion controls differ, {values}.",
    "Set congestion in the scenario, or give the nodes the same default.",
)
CONGESTION_UNLIKE: Final = warning(
    "congestion-unlike",
    "the default congestion control is {name}; most nodes have {usual}.",
    "On the node, as root: sysctl -w net.ipv4.tcp_congestion_control={usual}; or set congestion in the scenario.",
)
CONGESTION_DEFAULT: Final = note(
    "congestion-default",
    "No congestion control was requested; the nodes' {used} used.",
    "Set `congestion:` to compare with results of other nodes.",
)
PROBE_RTT: Final = note(
    "bbr-dips",
    "Dips of goodput about every 10 s are expected with bbr ({tests}): bbr lowers its window for about 0.2 s to "
    "measure the round trip (PROBE_RTT).",
    "cubic has no such dips.",
)
CONGESTION_NOT_GRANTED: Final = warning(
    "congestion-not-granted",
    "Congestion control {asked} was requested, but {used} was used: {tests}.",
    "Load its kernel module on the senders: `{load}{asked}`.",
    Weight.GRANTED,
)

NO_MPTCP: Final = error(
    "mptcp-missing",
    "its kernel has no Multipath TCP, and {asking} it.",
    "Leave mptcp out, or use Linux from 5.6 on with CONFIG_MPTCP.",
)
MPTCP_OFF: Final = warning(
    "mptcp-off",
    "{sysctl} is 0, and {asking} Multipath TCP: connections will fall back to TCP.",
    "On the node, as root: sysctl -w {sysctl}=1",
)
FELL_BACK: Final = warning("mptcp-fallback", "{pairs} fell back to TCP: {cause}; {tests}.", "{remedy}", Weight.GRANTED)
_SINGLE: Final = "{pairs} used one subflow of MPTCP:"
NO_OTHER_SUBFLOW: Final = note(
    "subflow-only",
    f"{_SINGLE} there is no second address or `ip mptcp` endpoint; {{tests}}.",
    "On the sender, as root: ip mptcp endpoint add ADDRESS dev INTERFACE subflow; see ip mptcp limits.",
    Weight.GRANTED,
)
SUBFLOWS_UNUSED: Final = note(
    "subflows-unused",
    f"{_SINGLE} no other subflow carried data; {{tests}}.",
    "Check that other subflows reach their addresses, and that no endpoint of theirs is a `backup`: ip mptcp endpoint.",
    Weight.GRANTED,
)
SUBFLOW_FAILED: Final = warning(
    "subflow-failed",
    "{pair}: the subflow {source} → {destination} {how}: {bytes:,} bytes came over it, {bytes_of_others:,} over the "
    "others; test {test}.",
    "Check the link, and that the address stays on its interface.",
    Weight.LOSS,
)
