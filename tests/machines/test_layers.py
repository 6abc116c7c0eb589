"""Bonds, bridges and VLANs of Debian's kernel: what is recorded for the unit tests, and the facts of real bonds."""

import subprocess
from collections.abc import Iterator

import pytest
from layered import FILE, STATES, carded_machine, recorded, script

from rigctl.hosts.fact import command_for
from rigctl.hosts.facts import FACTS, read_facts
from rigctl.hosts.network.layers import carrier_of, parse_layers
from rigctl.model.bonds import bond_of_facts

pytestmark = [pytest.mark.machines, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with carded_machine(tmp_path_factory.mktemp("layered")) as words:
        yield words


def on(ssh: list[str], commands: str) -> str:
    """Return the output of commands in the machine, whatever their exit code, as rigctl reads facts."""
    done = subprocess.run([*ssh, "sh -s"], input=commands, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 255, done.stderr  # of ssh itself
    return done.stdout


def test_the_kernel_still_prints_what_is_recorded(ssh: list[str]) -> None:
    before, now = recorded(FILE.read_text()), recorded(on(ssh, script()))
    assert now.keys() == before.keys() == STATES.keys()
    for state, here in now.items():
        print(state, carrier := carrier_of(here.interface, parse_layers(here.layers)))
        assert carrier == carrier_of(here.interface, parse_layers(before[state].layers)), here.layers


@pytest.mark.parametrize(("policy", "one", "four"), [("layer2", 1, 1), ("layer2+3", 1, 1), ("layer3+4", 1, 2)])
def test_one_flow_over_a_real_bond_has_one_card_and_four_have_what_its_hash_gives(
    ssh: list[str], policy: str, one: int, four: int
) -> None:
    bond = "ip link add bond0 type bond miimon 100 mode balance-xor"
    on(
        ssh,
        f"ip link del bond0 2>/dev/null; {bond} xmit_hash_policy {policy}; "
        "for card in eth2 eth3; do ip link set $card down; ip link set $card master bond0; done; "
        "ip link set bond0 up; ip addr add 10.9.0.1/24 dev bond0; "
        "for look in $(seq 150); do [ $(cat /sys/class/net/bond0/speed) = 2000 ] && break; sleep 0.2; done",
    )
    # By its name, and by its address alone.
    for interface, address in (("bond0", None), (None, "10.9.0.1")):
        facts = read_facts(on(ssh, command_for(FACTS, interface, address)))
        assert (facts["interface"], facts["speed_bps"], facts["duplex"]) == ("bond0", 2 * 10**9, "full")
        assert (facts["cards"], facts["vlan_tags"]) == (["eth2", "eth3"], None)
        found = bond_of_facts(facts)
        assert found is not None
        assert [found.bound_bps(flows, sends=True) for flows in (1, 4)] == [one * 10**9, four * 10**9]
