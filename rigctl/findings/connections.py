"""Sentences on connections: congestion control, Multipath TCP, and what becomes of those that a test opens."""

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
PORTS_EXHAUSTED: Final = warning(
    "ports-exhausted",
    "{stream} ran out of ports in {tests}: {connections} failed (EADDRNOTAVAIL). The end that closes first keeps "
    "a port for a minute (TIME-WAIT): Linux's usual {ports:,} ports allow {per_s:,} connections/s.",
    "Set close: reset, or per_second; or the condition sysctl: net.ipv4.ip_local_port_range, up to 1024 65535.",
    Weight.BOTTLENECK,
)
CONNECTIONS_REFUSED: Final = warning(
    "connections-refused",
    "{stream}: {connections} failed in {tests}, refused (ECONNREFUSED) as by a firewall that rejects.",
    "Allow the port in the firewall of {receiver}, and in those between.",
    Weight.BOTTLENECK,
)
CONNECTIONS_UNANSWERED: Final = warning(
    "connections-unanswered",
    "{stream}: {connections} had no answer within 5 s in {tests} (ETIMEDOUT), as with a firewall that drops.",
    "Look at the firewalls between {sender} and {receiver}, and at their tables of connections.",
    Weight.BOTTLENECK,
)
CONNECTIONS_DROPPED: Final = warning(
    CONNECTIONS_UNANSWERED.code,
    "{stream}: {connections} had no answer within 5 s in {tests} (ETIMEDOUT). {receiver} itself dropped connections, "
    "for lack of room in a queue.",
    "Raise the condition sysctl: net.core.somaxconn and net.ipv4.tcp_max_syn_backlog.",
    Weight.BOTTLENECK,
)
CONNECTIONS_UNSERVED: Final = warning(
    CONNECTIONS_UNANSWERED.code,
    "{stream}: {connections} failed in {tests}, established but without an answer within 5 s (ETIMEDOUT): {receiver}'s "
    "agent could not answer, or what followed was dropped.",
    "Look at the load and the open files of {receiver}, and at firewalls that drop established connections.",
    Weight.BOTTLENECK,
)
CONNECTIONS_RESET: Final = warning(
    "connections-reset",
    "{stream}: {connections} failed in {tests}, reset after being established (ECONNRESET).",
    "Look at the firewalls between {sender} and {receiver}: they may limit connections.",
    Weight.BOTTLENECK,
)
CONNECTIONS_FAILED: Final = warning(
    "connections-failed", "{stream}: {connections} failed in {tests} ({error}).", weight=Weight.BOTTLENECK
)
SYNS_LOST: Final = warning(
    "syns-lost",
    "{sender} sent {syns} again in {tests}: connecting then takes a second or more. {receiver} dropped none.",
    "Look for losses on the path, and for a firewall that limits new connections.",
    Weight.LOSS,
)
BACKLOG_FULL: Final = warning(
    "backlog-full",
    "The queue of {receiver}'s listening socket was full {times} in {tests}: it dropped connections.",
    "Raise the condition sysctl: net.core.somaxconn, or give the receiver's threads a processor of their own.",
    Weight.BOTTLENECK,
)
SYN_COOKIES: Final = warning(
    "syn-cookies",
    "{receiver} answered {syns} with a cookie in {tests}: its queue of half-open connections is too short, or its "
    "net.ipv4.tcp_syncookies is 2.",
    "Raise the condition sysctl: net.ipv4.tcp_max_syn_backlog and net.core.somaxconn; or set tcp_syncookies to 1.",
    Weight.BOTTLENECK,
)
CONNTRACK_FULL: Final = warning(
    "conntrack-full",
    "Connection tracking of {node} dropped {packets} in {tests}, as when its table is full.",
    "On the node, as root: sysctl -w net.netfilter.nf_conntrack_max=262144; or leave these ports untracked.",
    Weight.BOTTLENECK,
)
CONNTRACK_CLASH: Final = warning(
    "conntrack-clash",
    "Connection tracking of {node} dropped {packets} in {tests}: their connection clashed with another one, as when "
    "NAT has no free port.",
    "Give the NAT of {node} more addresses or ports, or leave these connections out of it.",
    Weight.BOTTLENECK,
)
CONNECTIONS_LATE: Final = note(
    "connections-late",
    "{stream}: {pct} % of the connections began more than 1 ms after their time in {tests}, as the one before took "
    "too long.",
    "Give the pair more flows (parallel), or a lower per_second.",
    Weight.COMPARISON,
)
