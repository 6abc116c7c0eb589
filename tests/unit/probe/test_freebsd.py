"""Facts of FreeBSD. The outputs are written after ifconfig(8), sysctl(8) and the Handbook, not recorded."""

from typing import Any

import pytest

from rigctl.probe import freebsd
from rigctl.probe.facts import FACTS, parse, script

IFCONFIG = """\
ix0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 9000
\toptions=e53fbb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,VLAN_HWCSUM,TSO4,TSO6,WOL_UCAST,WOL_MCAST>
\tether 0c:c4:7a:12:34:56
\tinet 10.0.0.1 netmask 0xffffff00 broadcast 10.0.0.255
\tinet6 fe80::ec4:7aff:fe12:3456%ix0 prefixlen 64 scopeid 0x1
\tinet6 2001:db8::1 prefixlen 64
\tmedia: Ethernet autoselect (10Gbase-T <full-duplex,rxpause,txpause>)
\tstatus: active
\tnd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
"""
NO_CARRIER = """\
em0: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 00:25:90:00:00:01
\tmedia: Ethernet autoselect
\tstatus: no carrier
"""
GIGABIT = IFCONFIG.replace("10Gbase-T <full-duplex,rxpause,txpause>", "1000baseT <full-duplex>")


@pytest.mark.parametrize(
    ("parser", "output", "value"),
    [
        (freebsd.addresses, IFCONFIG, ["10.0.0.1", "2001:db8::1"]),
        (freebsd.addresses, NO_CARRIER, None),
        (freebsd.mtu, IFCONFIG, 9000),
        (freebsd.mtu, "", None),
        (freebsd.mac, IFCONFIG, "0c:c4:7a:12:34:56"),
        (freebsd.speed_bps, IFCONFIG, 10**10),
        (freebsd.speed_bps, GIGABIT, 10**9),
        (freebsd.speed_bps, NO_CARRIER, None),
        (freebsd.duplex, IFCONFIG, "full"),
        (freebsd.duplex, NO_CARRIER, None),
        (freebsd.offloads, IFCONFIG, {"tso": True, "lro": False, "rx": True, "tx": True}),
        (freebsd.offloads, NO_CARRIER, None),
        (freebsd.driver, "ix0\n", "ix"),
        (freebsd.driver, "\n", None),
        (freebsd.virtual, "ix0\n", False),
        (freebsd.virtual, "epair0a\n", True),
        (freebsd.virtual, "", None),
        (freebsd.guest, "none\n", False),
        (freebsd.guest, "kvm\n", True),
        (freebsd.guest, "", None),
        (
            freebsd.sysctls,
            "kern.ipc.maxsockbuf: 2097152\nnet.inet.tcp.cc.algorithm: cubic\nsysctl: unknown oid 'x'\n",
            {"kern.ipc.maxsockbuf": "2097152", "net.inet.tcp.cc.algorithm": "cubic"},
        ),
    ],
)
def test_what_freebsd_says_is_read(parser: Any, output: str, value: object) -> None:
    assert parser(output) == value


def test_facts_of_freebsd_have_the_keys_of_linux() -> None:
    assert list(freebsd.FACTS) == list(FACTS)


def test_a_freebsd_node_is_read_by_its_own_parsers() -> None:
    said = {"kernel": "FreeBSD 14.1-RELEASE amd64", "interface": "ix0", "driver": "ix0", "virtual": "ix0"}
    said |= dict.fromkeys(("addresses", "speed_bps", "duplex", "mtu", "mac", "offloads"), IFCONFIG)
    output = "".join(f"\n@@rigctl {key}\n{text}\n" for key, text in said.items()) + "\n@@rigctl freebsd\n"
    facts = parse(output)
    assert (facts["mtu"], facts["speed_bps"], facts["driver"]) == (9000, 10**10, "ix")
    assert (facts["governor"], facts["throttled"], facts["cpus"]) == (None, None, None)
    assert facts["notes"] == []


def test_one_script_asks_either_system() -> None:
    asked = script(None, "10.0.0.1")
    assert "ifconfig -l" in asked
    assert "ip -o addr" in asked
