"""Sentences on processors: frequency, throttling, interrupts, NUMA nodes, idle states and placement of flows."""

from typing import Final

from rigctl.findings import Weight, good, note, warning

GOVERNOR_FOLLOWS_LOAD: Final = note(
    "governor",
    "CPU governor {governor}: the frequency follows the load.",
    "On the node, as root: cpupower frequency-set -g performance; or a condition: governor: performance",
)
NOT_THROTTLED: Final = good("not-throttled", "neither under-voltage nor throttling.")
CPU_THROTTLED: Final = note(
    "throttled",
    "{flags} (vcgencmd get_throttled).",
    "Check power supply and cooling; repetitions during which it is throttled do not count.",
)
INTERRUPTS: Final = warning(
    "interrupts-on-one",
    "all interrupts of {interface} go to processor {processor} of {count}: it alone takes all packets.",
    "On the node, as root: systemctl start irqbalance; or a condition: rps: all",
)
QUEUE: Final = warning(
    "interrupts-on-one",
    INTERRUPTS.text,
    "Give the card more queues (ethtool -l {interface} shows how many), a condition: channels; or a condition: rps: "
    "all",
)
NUMA_FAR: Final = note(
    "numa-far", "{what} on NUMA node {there}, the card of {interface} is on node {card_numa_node}.", "{remedy}"
)
NUMA_SEVERAL: Final = note(
    "numa-several",
    "{what} on NUMA nodes {there}, the card of {interface} is on node {card_numa_node}.",
    "placement: nic runs them on the node of the card, processors {own}.",
)
NUMA_DIFFERS: Final = warning(
    "numa-differs",
    "{end} and card of {node} are on different NUMA nodes, {numa_node} and {card_numa_node}: {tests}.",
    "placement: {{{role}: nic}} runs the {role} on the node of its card.",
    Weight.GRANTED,
)
SHARED: Final = note(
    "processor-shared",
    "{many} flows share processor {processor} of {node}: {tests}.",
    "Give placement as many processors as there are flows, or leave it to the scheduler.",
    Weight.GRANTED,
)
IDLE_STATE: Final = note(
    "idle-state",
    "idle processors enter {state}, which takes {idle_latency_us} µs to leave{unless}: latencies include this time.",
    "On the node, as root: cpupower idle-set -D {deep_us} (afterwards cpupower idle-set -E){polling}",
)
EMULATED: Final = warning(
    "processors-emulated",
    "The processors of {nodes} are emulated: the results do not apply to real hardware.",
)
