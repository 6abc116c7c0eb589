"""What carries the frames of bridges, bonds and VLANs: outputs recorded in a machine, and a few that it cannot have."""

import pytest
from layered import FILE, STATES, Recorded, recorded

from rigctl.hosts.facts import FACTS
from rigctl.hosts.network.layers import Carrier, carrier_of, parse_layers
from rigctl.model.bonds import Bond, bond_of_facts

G = 10**9
RECORDED = recorded(FILE.read_text())
BOTH = ("eth2", "eth3")
EXPECTED = {
    "card": Carrier(("eth2",), G, "full"),
    "bond active-backup": Carrier(BOTH, G, "full", 0, Bond(2, G, G, "active-backup", "layer2")),
    "bond rr": Carrier(BOTH, 2 * G, "full", 0, Bond(2, G, 2 * G, "balance-rr", "layer2")),
    "bond alb": Carrier(BOTH, 2 * G, "full", 0, Bond(2, G, 2 * G, "balance-alb", "layer2")),
    "bond layer2": Carrier(BOTH, 2 * G, "full", 0, Bond(2, G, 2 * G, "802.3ad", "layer2")),
    "bond layer3+4": Carrier(BOTH, 2 * G, "full", 0, Bond(2, G, 2 * G, "802.3ad", "layer3+4")),
    "vlan on bond": Carrier(BOTH, 2 * G, "full", 1, Bond(2, G, 2 * G, "balance-xor", "layer2+3")),
    "bridge on vlan on bond": Carrier(BOTH, 2 * G, "full", 1, Bond(2, G, 2 * G, "802.3ad", "layer2")),
    "bridge": Carrier(("eth2",), G, "full"),
    "bridge of two cards": Carrier(BOTH, G, "full"),
    "bridge without a card": Carrier(),
    "vlan in vlan": Carrier(("eth2",), G, "full", 2),
    "macvlan": Carrier(("eth2",), G, "full"),
    "vrf": Carrier(("eth2",), G, "full"),
    "vxlan": Carrier(("eth2",)),  # its frames are longer on the card
}


@pytest.mark.parametrize("state", STATES)
def test_a_recorded_interface_has_the_speed_of_the_cards_that_carry_its_frames(state: str) -> None:
    here = RECORDED[state]
    assert carrier_of(here.interface, parse_layers(here.layers)) == EXPECTED[state]


@pytest.mark.parametrize("state", STATES)
def test_sysfs_says_what_ip_says_of_kind_mode_hash_and_what_is_below(state: str) -> None:
    here = RECORDED[state]
    for name, layer in parse_layers(here.layers).items():
        link = here.links[name]
        info = link.get("linkinfo", {})
        data = info.get("info_data", {})
        assert layer.kind in (None, info.get("info_kind"))  # macvlan and vrf have no DEVTYPE in this kernel
        assert layer.mode == (data.get("mode") if layer.kind == "bond" else None)
        assert layer.policy == data.get("xmit_hash_policy")
        ports = {each["ifname"] for each in here.links.values() if each.get("master") == name}
        assert set(layer.below) == ports | ({link.get("link"), data.get("link")} - {None})


def shown(*lines: str) -> Carrier:
    """Return the carrier of the interface in the first line: name, state, Mbit/s, driver, hardware, below, and bond."""
    full = [f"{name}|{state}|{mbps}|full|1500||{rest}|" for name, state, mbps, rest in (one.split() for one in lines)]
    layers = parse_layers("\n".join(full))
    return carrier_of(next(iter(layers)), layers)


def test_a_card_without_a_link_counts_neither_in_a_bridge_nor_in_a_bond() -> None:
    cards = ("eno1 up 1000 r8169|yes|||||", "eno2 down -1 r8169|yes|||||")
    assert shown("vmbr0 up 1000 |no|,eno1,eno2|bridge|||", *cards) == Carrier(("eno1",), G, "full")
    assert shown("bond0 up 1000 |no|,eno1,eno2|bond|balance-rr|layer2|", *cards) == Carrier(("eno1",), G, "full")


def test_a_bridge_of_unlike_cards_and_a_bond_of_a_card_without_a_speed_have_no_speed() -> None:
    cards = ("eno1 up 1000 r8169|yes|||||", "eno2 up 2500 r8169|yes|||||", "vir0 up -1 virtio_net|yes|||||")
    assert shown("vmbr0 up 2500 |no|,eno1,eno2|bridge|||", *cards).speed_bps is None
    found = shown("bond0 up -1 |no|,eno1,vir0|bond|802.3ad|layer3+4|", *cards)
    assert (found.speed_bps, found.bond) == (None, Bond(2, None, None, "802.3ad", "layer3+4"))


def test_the_spread_of_a_driver_without_a_mode_is_unknown_and_a_member_that_lacp_leaves_out_is_not_counted() -> None:
    cards = ("eno1 up 100 e1000e|yes|||||", "eno2 up 100 e1000e|yes|||||")
    team = shown("team0 up 200 |no|,eno1,eno2|team|||", *cards)
    assert team.bond == Bond(2, 10**8, 2 * 10**8)
    alone = shown("bond0 up 100 |no|,eno1,eno2|bond|802.3ad|layer2|", *cards)
    assert (alone.speed_bps, alone.bond) == (10**8, Bond(2, 10**8, 10**8, "802.3ad", "layer2"))


def test_an_active_backup_of_unlike_cards_has_the_speed_of_the_active_one() -> None:
    cards = ("ten up 10000 ixgbe|yes|||||", "one up 1000 igb|yes|||||")
    for active, speed_bps in (("one", G), ("ten", 10 * G)):
        assert shown(f"bond0 up 9 |no|,one,ten|bond|active-backup|layer2|{active}", *cards).speed_bps == speed_bps


def test_interfaces_below_each_other_in_a_circle_end() -> None:
    assert shown("a up 1 |no|,b||||", "b up 1 |no|,a||||") == Carrier()


def test_a_bond_is_stored_as_a_fact_and_read_again() -> None:
    for state in ("bond layer3+4", "bridge on vlan on bond", "bond rr"):
        stored = {key: FACTS[key].parse(RECORDED[state].layers) for key in ("bond", "cards", "vlan_tags")}
        bond, known = bond_of_facts(stored), EXPECTED[state].bond
        assert known is not None and bond is not None
        assert (bond.cards, bond.card_bps, bond.total_bps, bond.mode) == (2, G, 2 * G, known.mode)
        assert bond.policy == (known.policy if known.mode == "802.3ad" else None)
        assert stored["cards"] == ["eth2", "eth3"]
    assert bond_of_facts({}) is bond_of_facts({"bond": {"cards": "2"}}) is None


def test_a_recording_is_of_another_kernel_than_none() -> None:
    assert FILE.read_text().startswith("# Recorded by tests/support/layered.py: Linux 6.1")
    assert all(isinstance(each, Recorded) and each.layers and each.links for each in RECORDED.values())
    assert RECORDED.keys() == STATES.keys()
