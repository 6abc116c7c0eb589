"""Sentences on losses, on counters and captures that confirm them or not, on buffers, and on groups."""

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

_OUTSIDE: Final = "{nodes} had not joined the group, and {pct} % of its datagrams reached {them} in {tests}:"
_QUERIER_REMEDY: Final = "Turn on an IGMP and MLD querier in the network, and snooping at the switch."
GROUP_SNOOPED: Final = good(
    "multicast-snooped",
    "No datagram of the group reached {nodes} in {tests}, where {they} had not joined it: the switch snoops.",
    weight=Weight.COMPARISON,
)
GROUP_FLOODED: Final = warning(
    "multicast-flooded",
    f"{_OUTSIDE} the switch floods it, although {{querier}} asks for members.",
    "Turn on IGMP and MLD snooping at the switch, for this VLAN.",
    Weight.BOTTLENECK,
)
GROUP_FLOODED_UNQUERIED: Final = warning(
    "multicast-flooded-unqueried",
    f"{_OUTSIDE} the switch floods it. No querier asked for members in {{watched}}, without which most switches flood; "
    "or snooping is off.",
    f"{_QUERIER_REMEDY} A querier asks every 125 s as a rule: a test of 260 s shows it.",
    Weight.BOTTLENECK,
)
GROUP_FLOODED_UNREGISTERED: Final = note(
    "multicast-flooded-unregistered",
    f"{_OUTSIDE} they came while nobody was a member. The switch snoops, but floods groups without members.",
    "If no host relies on it, let the switch drop unregistered multicast.",
    Weight.COMPARISON,
)
GROUP_FLOODED_AT_FIRST: Final = note(
    "multicast-flooded-at-first",
    f"{_OUTSIDE} the last one {{until}} after the start. From then on the switch snooped{{since}}.",
    weight=Weight.COMPARISON,
)
GROUP_FLOODED_NEW_QUERIER: Final = note(
    "multicast-flooded-new-querier",
    f"{_OUTSIDE} {{querier}} asked for members only {{asked}} after the start, and hosts had {{response}} to answer. A "
    "switch does not snoop before.",
    "Measure again.",
    Weight.COMPARISON,
)
GROUP_FLOODED_TO_SOME: Final = warning(
    "multicast-flooded-to-some",
    f"{_OUTSIDE} not to {{others}}, which had not joined either. The switch takes such a port for a router's, or "
    "another switch is on the way.",
    "Look at the ports to routers (mrouter) of the switch.",
    Weight.BOTTLENECK,
)
GROUP_UNWATCHED: Final = note(
    "multicast-unwatched",
    "What reached {nodes} without membership is unknown in {tests}: the agent may not watch the interface there "
    "(CAP_NET_RAW).",
    "Log in as root, or give the nodes `sudo: true` in the rig file.",
    Weight.GRANTED,
)
QUERIER_MISSING: Final = warning(
    "multicast-querier-missing",
    "No querier asked for members in {watched} ({tests}): there is none. A switch that snoops then forgets the "
    "members, and floods or drops the group.",
    _QUERIER_REMEDY,
    Weight.BOTTLENECK,
)
QUERIER_SEEN: Final = good(
    "multicast-querier", "Querier: {querier} ({tests}); receivers reported by {reported}.", weight=Weight.DETAIL
)
GROUP_NOTHING: Final = warning(
    "multicast-nothing",
    "{stream}: nothing arrived in {tests} after {receiver} had joined{others}.",
    "Check that the switch takes the version of the reports ({reported}), and look for a filter of groups at the port.",
    Weight.MISSING,
)
GROUP_STOPPED: Final = warning(
    "multicast-stopped",
    "At {receivers} the datagrams stopped up to {time} before the leave in {tests}, and the sender went on{cause}.",
    _QUERIER_REMEDY,
    Weight.LOSS,
)
GROUP_LOST_AT_ONE: Final = warning(
    "multicast-lost-at-one",
    "Only {receiver} lost datagrams in {tests}, {pct} % of them: the loss is at its port, its link or in the host.",
    weight=Weight.LOSS,
)
GROUP_LOST_AT_ALL: Final = warning(
    "multicast-lost-at-all",
    "All receivers lost about the same share in {tests}, {pct} %: it is lost before the switch copies it.",
    "Look at the link of {sender}, and at its port on the switch.",
    Weight.LOSS,
)
GROUP_LOST: Final = warning("multicast-lost", "{each} of the datagrams were lost in {tests}.", weight=Weight.LOSS)
JOIN_SLOW: Final = warning(
    "multicast-join-slow",
    "{receivers} waited up to {time} for the first datagram after the join in {tests}: the first report was lost or "
    "not taken. Hosts send it again within 1 s (IGMPv3, MLDv2) or 10 s (IGMPv2, MLDv1), and when a querier asks.",
    weight=Weight.LOSS,
)
LEAVE_SLOW: Final = warning(
    "multicast-leave-slow",
    "Datagrams came for {time} after {receivers} had left the group in {tests}; {asked}.",
    "Look at the last-member query interval and at immediate leave (fast leave) of the switch.",
    Weight.LOSS,
)
LEAVE_OPEN: Final = note(
    "multicast-leave-open",
    "Datagrams came until the end, {time} after {receivers} had left the group in {tests}. About 2 s are usual, and "
    "260 s where nobody asks after a leave.",
    "Measure with a longer `leave`.",
    Weight.LOSS,
)
BUFFER_SHOWN: Final = note(
    "buffer-shown",
    "{ports}: {lossy} bursts with loss, {lengths}, show {span} frames of {frame} bytes{error}; the longest burst "
    "without loss had {longest}, the shortest with loss {shortest}.",
    weight=Weight.COMPARISON,
)
BUFFER_AT_LEAST: Final = note(
    "buffer-at-least",
    "{ports}: no burst lost a datagram, up to {longest} of {size} bytes: the buffer may hold more than the {least} "
    "frames ({bytes}) that these needed.",
    "Send longer bursts (length).",
    Weight.COMPARISON,
)
BUFFERS_DISAGREE: Final = warning(
    "buffers-disagree",
    "{ports}: bursts with loss show buffers of {low} to {high} frames, which differ by more than their error.",
    "Other traffic may share the buffer, or the port may drop early (RED). Repeat the tests while nothing else sends.",
)
BURSTS_NOT_FASTER: Final = warning(
    "bursts-not-faster",
    "In {tests} bursts came no faster ({arrival} Mbit/s) than the port drains ({drain} Mbit/s): no queue grows, and "
    "nothing follows on its buffer.",
    "Name a further sender to the same receiver, or a receiver with a slower link.",
)
BURSTS_APART: Final = note(
    "bursts-apart",
    "In {tests} bursts came to the ports one after another (at once in {pct} % of their time): ports that share a "
    "buffer divide it by the order in which they fill.",
    "Give each port a sender of its own, as one link sends its bursts one after another.",
    Weight.SUSPECT,
)
BURSTS_SPACED: Final = note(
    "bursts-spaced",
    "In {tests} the senders did not fill their links: bursts came at {arrival} of {links} Mbit/s.",
    "A larger datagram needs fewer calls for the same rate; a faster processor makes shorter gaps.",
    Weight.SUSPECT,
)
BURSTS_UNTIMED: Final = warning(
    "bursts-untimed",
    "In {tests} the senders' kernels do not tell when datagrams left: no buffer follows from these bursts.",
    "Use Linux senders, with a driver that gives time stamps in software (`ethtool -T INTERFACE`).",
)
BURSTS_PAUSED: Final = warning(
    "bursts-paused",
    "Pause frames were counted in {tests}: they hold frames back at the sender, which hides loss. No buffer follows "
    "from these bursts.",
    "Switch pause off: conditions: {{no pause: {{pause: {{autoneg: off, rx: off, tx: off}}}}}}.",
)
BURSTS_SOCKET_FULL: Final = warning(
    "bursts-socket-full",
    "Socket buffers of receivers were full in {tests}: a loss at the host, not at the port. No buffer follows from "
    "these bursts.",
    "A larger window sets a larger socket buffer.",
)
BURSTS_LEFT_OUT: Final = note(
    "bursts-left-out",
    "Senders left out bursts in {tests}, as they came to them too late: {sent} of {due} count.",
    "A longer interval gives a busy sender more time.",
)
