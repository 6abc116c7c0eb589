"""What a bond carries between two nodes, by mode, hash and number of flows."""

from cases import from_file

from rigctl.model.bonds import Bond

M = 10**6


@from_file
def test_flows_between_two_nodes_get_one_card_or_one_each_or_all(
    mode: str | None, policy: str | None, sending: list[int], receiving: list[int]
) -> None:
    bond = Bond(2, 100 * M, 200 * M if mode != "active-backup" else 100 * M, mode, policy)
    flows = (1, 2, 8)
    assert [bond.bound_bps(count, sends=True) for count in flows] == [mbps * M for mbps in sending]
    assert [bond.bound_bps(count, sends=False) for count in flows] == [mbps * M for mbps in receiving]


def test_a_bond_of_cards_of_unknown_speed_has_no_bound() -> None:
    assert Bond(2, None, None, "802.3ad", "layer2").bound_bps(1, sends=True) is None


def test_a_rate_describes_a_bond_that_gives_any_number_of_flows_the_same() -> None:
    plain = [
        Bond(2, 100, 100, "active-backup"),
        Bond(2, 100, 200, "balance-rr"),
        Bond(1, 100, 100, "802.3ad", "layer2"),
    ]
    assert [bond.is_plain for bond in plain] == [True] * 3
    assert not any(Bond(2, 100, 200, mode, "layer2").is_plain for mode in ("802.3ad", "balance-alb", None))
