"""A port's name in the rig file against the names that the switch has for its interfaces."""

import pytest

from rigctl.probe.switches.reading import resolved

KNOWN = {
    1: ("Gi1/1", "GigabitEthernet1/1", "node001"),
    2: ("Gi1/11", "GigabitEthernet1/11", ""),
    3: ("Te1/1", "TenGigabitEthernet1/1", "to the core"),
    4: ("Gi 2/1", "GigabitEthernet 2/1", ""),
}


@pytest.mark.parametrize(
    ("name", "index"),
    [("Gi1/1", 1), ("gigabitethernet1/1", 1), ("node001", 1), ("Gig1/11", 2), ("Ten1/1", 3), ("to the core", 3),
     ("Gi2/1", 4), ("GigabitEthernet 2/1", 4)],
)  # fmt: skip
def test_a_name_is_found_whole_or_by_how_its_word_begins(name: str, index: int) -> None:
    assert resolved([name], KNOWN) == ({name: index}, {})


@pytest.mark.parametrize("name", ["Gi1", "1/1", "Gi1/2", "Fa1/1", "", "/1"])
def test_a_name_that_fits_none_is_missing_with_the_nearest(name: str) -> None:
    found, missing = resolved([name], KNOWN)
    assert found == {}
    assert len(missing[name]) in (1, 2, 3)


def test_a_name_that_fits_two_is_missing() -> None:
    two = {1: ("Gi1/1", "", ""), 2: ("Gig1/1", "", "")}
    assert resolved(["G1/1"], two)[0] == {}
    assert resolved(["Gi1/1"], two)[0] == {"Gi1/1": 1}  # the same name wins
