"""Sentences on nodes and their processors: faults of SSH, rights, clocks and folders, slow nodes, the virtual rig."""

from dataclasses import replace
from typing import Final

from rigctl.findings import Weight, error, good, note, warning

NODES_REACHED: Final = good("reached", "{how}; not in use by another run.")
UNREACHABLE: Final = error("unreachable", "{why}")
AGENT_RUNS: Final = good("agent-runs", "the agent for {machine} runs.")
AGENT_FAILS: Final = error("agent-fails", "the agent does not run: {why}")
AGENT_FOLDER: Final = note(
    "agent-folder", "{note}.", "rigctl avoids home folders that are full or mounted noexec; nothing has to be done."
)
UNRESTORED: Final = warning(
    "settings-unrestored",
    "host settings of an earlier run could not be restored: {settings}.",
    "Restore the settings by hand, or restart the node.",
)
ROOT: Final = good("root", "root's rights for {needs}.")
NO_ROOT: Final = error(
    "no-root", "{needs}: only root can do this.", "Log in as root, or give node {node} `sudo: true` in the rig file."
)
NO_ADMINISTRATOR: Final = error(
    "no-administrator", "{needs}: only an administrator can do this.", "Log in as a user of the group Administrators."
)
REFUSED: Final = error("condition-refused", "{why}.", "On the node, {remedy}")
REHEARSED: Final = good("rehearsed", "prepared the flows of all {wanted} tests, or of tests like them, as a run does.")
REHEARSED_IN_PART: Final = note(
    "rehearsed-in-part",
    "prepared the flows of {done} of {wanted} tests as a run does; the others need nodes or paths that fail, or time.",
    "Mend the errors and check again: what a run is refused is found by preparing its tests.",
)
NOT_REHEARSED: Final = note(
    "not-rehearsed",
    "not tried, because only a change of the host settings would tell: {untried}.",
    "A run with --duration 1s changes them, and tells.",
)
REHEARSAL_REFUSED: Final = error("rehearsal-refused", "{why}. Cannot be measured: {tests}.")
REHEARSAL_UNSURE: Final = warning(
    "rehearsal-unsure", "{why}. Cannot be measured, unless their conditions change this: {tests}."
)
PROOF: Final = {"FreeBSD": "compiled, never run", "Windows": "tested under Wine, never on Windows"}
"""Maps a system on which nobody has run the agent to what was done instead. All texts and pages use these words."""
UNCHECKED: Final = note(
    "unchecked",
    "{system} nodes are experimental ({proof}): {unchecked} are not checked, and {system} does not tell whether an "
    "ICMP message answers a datagram.",
)
POWER_PLAN: Final = warning(
    "power-plan",
    'its power plan is "{plan}": the frequency of the processor follows the load.',
    'On the node: powercfg /setactive SCHEME_MIN (the plan "High performance")',
)
CLOCKS_AGREE: Final = good("clocks-agree", "clocks agree within a second.")
CLOCK_OFF: Final = warning(
    "clock-off",
    "its clock is {apart_s:.1f} s {way} the controller's. Measurements are not affected; times in its logs are.",
    "{command}",
)
CLOCK_COARSE: Final = warning(
    "clock-coarse",
    "its clock is known to ±{clock_error_ms:.1f} ms only (the SSH connection is slow); flows are to start within "
    "{bound_ms:g} ms of each other.",
    "Raise max_skew in the scenario, or run rigctl nearer to the rig.",
)
NO_IPERF3: Final = error(
    "no-iperf3",
    "iperf3 is not installed, and engine: iperf3 needs it.",
    "Install it there, as root: apt-get install iperf3 (Debian, Ubuntu, Raspberry Pi OS), dnf install iperf3 (Fedora, "
    "RHEL), apk add iperf3 (Alpine)",
)
NO_FOLDER: Final = error("no-folder", "there is no folder {folder}.", "On the node: mkdir -p {folder}")
FOLDER_IN_MEMORY: Final = error(
    "folder-in-memory", "{folder} is in memory, not on a disk.", "Name another folder in the scenario."
)
FOLDER_FULL: Final = error(
    "folder-full",
    "{folder} has {free_mb:,.0f} MB free, the files take {wanted_mb:,.0f} MB.",
    "Free some space, or name another folder.",
)
CONDITION_NOT_GRANTED: Final = warning(
    "condition-not-granted",
    "Condition {condition}: {label} {asked} was requested; {value} is in effect on {nodes}.",
    weight=Weight.GRANTED,
)
NODE_SLOW: Final = warning(
    "node-slow",
    "{node}: {rate} {directions} (median), against {others} between the other nodes{where}.{cause}",
    "{remedy}",
    Weight.BOTTLENECK,
)
NODE_BEHIND: Final = note(
    "node-behind",
    "{node}: {rate} {directions} (median), {pct:.0f} % less than the {others} between the other nodes{where}.",
    "Compare the link speed, processors and driver of {node} with those of the others.",
    Weight.BOTTLENECK,
)
NODE_LATE: Final = warning(
    "node-answers-late",
    "{node} answers late: the median round trip to its nearest node is {rtt}, the usual node's is {usual}{where}.",
    weight=Weight.BOTTLENECK,
)
DIRECTIONS: Final = warning(
    "directions-differ",
    "{source} → {destination}: {slower}, {difference_pct:.0f} % below the other direction ({faster}){where}.",
    weight=Weight.COMPARISON,
)
MORE_DIRECTIONS: Final = warning(
    "more-directions-differ",
    "{more} by over {bound:g} % between the directions; the table marks the slower directions.",
    weight=Weight.COMPARISON,
)
IMPORTED: Final = note(
    "imported",
    "The results were imported from {scenario}; rigctl did not measure them. Goodput is what the receiver counted, “–” "
    "if the files do not have it.",
    weight=Weight.RIG,
)
IMPORT_NOTES: Final = warning("contradicting-report", "{notes}", weight=Weight.SUSPECT)
EXPERIMENTAL: Final = {
    system: note(
        system.lower(),
        f"Experimental: {{nodes}} with {system}. The agent for {system} was {proof}.{{retransmits}}",
        weight=Weight.SUSPECT,
    )
    for system, proof in PROOF.items()
}
NAMESPACES: Final = note(
    "virtual-rig", "The rig is virtual: network namespaces with shaped links on one machine.", weight=Weight.RIG
)
NAMESPACES_FAR: Final = replace(
    NAMESPACES, text=f"{NAMESPACES.text} A relay delays frames of {{far}} to reach the round-trip time in the rig file."
)
MACHINES: Final = replace(
    NAMESPACES, text="The rig is virtual: QEMU machines on one machine, joined by a hub. No link is shaped."
)
LOOPBACK: Final = replace(NAMESPACES, text="The rig is the loopback interface of one machine: no link, no switch.")
GOVERNOR_FOLLOWS_LOAD: Final = note(
    "governor",
    "CPU governor {governor}: the frequency follows the load.",
    "On the node, as root: cpupower frequency-set -g performance; or use a condition with governor: performance",
)
NOT_THROTTLED: Final = good("not-throttled", "neither under-voltage nor throttling.")
CPU_THROTTLED: Final = note(
    "throttled",
    "{flags} (vcgencmd get_throttled).",
    "Check power supply and cooling; repetitions during which the node is throttled do not count.",
)
INTERRUPTS: Final = warning(
    "interrupts-on-one",
    "all interrupts of {interface} go to processor {processor} of {count}: this processor handles all packets.",
    "On the node, as root: systemctl start irqbalance; or use a condition with rps: all",
)
QUEUE: Final = warning(
    "interrupts-on-one",
    INTERRUPTS.text,
    "Give the card more queues by a condition with channels (ethtool -l {interface} shows how many), or use a "
    "condition with rps: all",
)
NUMA_FAR: Final = note(
    "numa-far", "{what} on NUMA node {there}, the card of {interface} is on node {card_numa_node}.", "{remedy}"
)
NUMA_SEVERAL: Final = note(
    "numa-several",
    "{what} on NUMA nodes {there}, the card of {interface} is on node {card_numa_node}.",
    "Set placement: nic to run the flows on the card's NUMA node (processors {own}).",
)
NUMA_DIFFERS: Final = warning(
    "numa-differs",
    "{end} and card of {node} are on different NUMA nodes, {numa_node} and {card_numa_node}: {tests}.",
    "Set placement: {{{role}: nic}} to run the {role} on its card's NUMA node.",
    Weight.GRANTED,
)
SHARED: Final = note(
    "processor-shared",
    "{many} flows share processor {processor} of {node}: {tests}.",
    "Name as many processors as flows in placement, or leave placement to the scheduler.",
    Weight.GRANTED,
)
IDLE_STATE: Final = note(
    "idle-state",
    "idle processors enter {state}, which takes {idle_latency_us} µs to leave{unless}: latencies include this time.",
    "On the node, as root: cpupower idle-set -D {deep_us} (afterwards cpupower idle-set -E){polling}",
)
EMULATED: Final = warning(
    "processors-emulated", "The processors of {nodes} are emulated: the results do not apply to real hardware."
)
