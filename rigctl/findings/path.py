"""Sentences on the path between two nodes: routes, addresses, ports and firewalls."""

from typing import Final

from rigctl.findings import Weight, error, good, warning

ROUTES: Final = good("routes", "data leave by the data interface.")
ROUTE_ELSEWHERE: Final = error(
    "route-elsewhere",
    "data to {peer} ({address}) leave by {device}{via}, not by {interface}.",
    "If {device} is right, set data_interface: {device} in the rig file. Else on the node, as root: {command}",
)
NO_ROUTE: Final = error("no-route", "no route to {peer} ({address}): {reason}.", "On the node: {command}")
ROUTE_FORBIDS: Final = error(
    "route-forbids",
    "no route to {peer} ({address}): the route {route} of type {kind} covers the address ({reason}).",
    "On the node, as root: ip route del {kind} {route}",
)
PORTS_PASS: Final = good("ports-pass", "TCP and UDP pass.")
LOOK_AT_OWN: Final = "On {node}, {rights}: {firewall} (chains with hook output); allow the data ports."
_BETWEEN: Final = "On {peer} and on the devices between, {peer_rights}: {peer_firewall}; allow the data ports"
DROPPED: Final = error(
    "port-dropped", "dropped without an answer", f"{_BETWEEN} (data_ports in the rig file makes them a fixed range)."
)
FIREWALL_IN: Final = error(
    "firewall-inbound",
    "dropped without an answer; the firewall of {peer} is on ({profiles})",
    "On {peer}, {peer_rights}: {peer_firewall}. If that does not help, look at the devices between",
)
FIREWALL_OTHER: Final = error(
    "firewall-other",
    "dropped without an answer, although Microsoft's firewall of {peer} is off: a firewall other than Microsoft's may "
    "be on there",
    "On {peer}: Windows Security, “Firewall & network protection” names it. Allow {program} in it. If that does not "
    "help, look at the devices between",
)
REJECTED: Final = error(
    "port-rejected", "rejected, {how} came back, although the agent of {peer} listens there", f"{_BETWEEN}."
)
UNRESOLVED: Final = error(
    "port-unresolved",
    "not sent, {address} did not answer {asking}",
    "Look at cable, switch port and VLAN between {node} and {peer}; does {peer} have {address}?",
)
OWN_FIREWALL: Final = error("port-own-firewall", "refused by the sender's own firewall ({refusal})", LOOK_AT_OWN)
UNSENT: Final = error("port-unsent", "cannot be sent ({refusal})", "On {node}: {command}; is its interface up?")
NO_OWN_PORT: Final = error(
    "no-own-port",
    "cannot be sent ({refusal}): the sender has no free port of its own",
    "On {node}: {ports} shows who uses its ports; widen net.ipv4.ip_local_port_range if it is small.",
)
NO_FREE_PORT: Final = error(
    "no-free-port",
    "the node cannot receive data: {why}.",
    "Free a port there ({command}), or give {node} other data_ports in the rig file.",
)
ADDRESS_ABSENT: Final = error(
    "address-absent",
    "its data address {address} cannot be used on the host: {why}.",
    "Give an address of the host as data_address in the rig file (ip address shows them; dadfailed: another host has "
    "the address).",
)
NOT_NEEDED: Final = "No test needs this way: answers to connections pass."
ADDRESS_FAMILIES: Final = error(
    "address-families",
    "one of {one} and {other} is IPv4, the other is IPv6: no packet goes between them.",
    "Give both a data_address of one IP version in the rig file.",
)
ADDRESS_SHARED: Final = error(
    "address-shared",
    "these nodes have one data address, {address}: packets to it reach one of the nodes, or none.",
    "Give each node an address of its own, or correct data_address or data_interface in the rig file.",
)
ADDRESS_LOOPBACK: Final = error(
    "address-loopback",
    "its data address {address} is a loopback address: no other host can send to it.",
    "Name the interface that carries its data in the rig file: data_interface.",
)
MAC_SHARED: Final = error(
    "mac-shared",
    "the data interfaces of these nodes have one MAC address, {mac}: frames for one may reach another.",
    "Give each node a MAC address of its own, as root: {command}",
)
NEIGHBOUR_SILENT: Final = error(
    "neighbour-silent",
    "no answer to {asking} for {address} of {peer}, sent over {interface}.",
    "Look at cable, switch port and VLAN between {node} and {peer}; is {address} on {peer_interface}?",
)
NEIGHBOUR_OTHER: Final = error(
    "neighbour-other",
    "{mac}, {who}, answers for {address} of {peer}; {peer_interface} of {peer} has {own}.",
    "Find the host with {mac} (see the switch's MAC address table), and give it another IP address.",
)
VALUE_CHANGED: Final = warning(
    "value-changed",
    "{asked} arrived as {others} on {pairs}: {cause}. Of {packets:,} {units} {counts}.",
    "{remedy}",
    Weight.GRANTED,
)
