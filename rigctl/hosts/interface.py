"""Facts on the data interface of a node, its network card, and the cards below a bridge, bond or VLAN."""

import re
from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from rigctl.hosts import freebsd
from rigctl.hosts.fact import Fact, everywhere, file_fact, find_first, take_line, take_number
from rigctl.hosts.network import parse_addresses
from rigctl.hosts.network.layers import LAYERS, Carrier, carrier_of, parse_layers
from rigctl.rig.fields import is_address

_NET: Final = "/sys/class/net/$IF"
_IF: Final = '[ -n "$IF" ] && '
_CARD: Final = f'{_IF}[ -e "{_NET}/device" ] && '
_NAME: Final = 'echo "$IF"'
_DRIVER: Final = f'{{ ethtool -i "$IF" || readlink "{_NET}/device/driver"; }}'
_IS_VIRTUAL: Final = f'{{ [ -e "{_NET}/device" ] && echo no || echo yes; }}'
_NO_BOUND: Final = 2**31 - 1
_DIGITS: Final = "[0-9]{1,12}"
_OFFLOADS: Final = {
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "scatter-gather": "sg",
    "tx-checksumming": "tx",
    "rx-checksumming": "rx",
}
"""Names of offloads in `ethtool -k` → their short names in `ethtool -K`."""
_PCIE: Final = {
    "current_link_speed": "speed_gts",
    "current_link_width": "width",
    "max_link_speed": "speed_max_gts",
    "max_link_width": "width_max",
}
_SLOT: Final = f'for f in {" ".join(_PCIE)}; do echo "$f=$(cat "{_NET}/device/$f")"; done'

_parse_firmware: Final = find_first(r"^firmware-version:[ \t]*(?![Nn]/[Aa]\s*$)(\S.{0,255})", str.strip)
_parse_virtual: Final = find_first("(yes|no)", lambda said: said == "yes")
_parse_up: Final = find_first(r"\A\s*0x([0-9a-fA-F]{1,8})\s*\Z", lambda flags: bool(int(flags, 16) & 1))
"""Tells whether the interface is up: flag IFF_UP in /sys/class/net/…/flags."""


def _parse_ssh_address(output: str) -> str | None:
    """Return the node's address in SSH_CONNECTION, the third word (sshd(8)); None without SSH."""
    words = output.split()
    return words[2] if len(words) == 4 and is_address(words[2].partition("%")[0]) else None


def _parse_own(output: str) -> list[str] | None:
    """Return the global addresses in `ip -o addr`: IPv4 first, and lasting ones first; None if there are none.

    An address that is not (yet) usable, such as one that another host has (`dadfailed`), comes last.
    """
    lasting = list(chain.from_iterable(parse_addresses(output, lasting=True).values()))
    held = [*lasting, *chain.from_iterable(parse_addresses(output).values())]
    return [str(each.ip) for each in sorted(dict.fromkeys(held), key=lambda each: each.version)] or None


def _parse_driver(output: str) -> str | None:
    match = re.search(r"^driver:[ \t]*(\S{1,256})", output, re.MULTILINE)
    return match[1] if match else (take_line(output) or "").rpartition("/")[2] or None


def _parse_offloads(output: str) -> dict[str, bool] | None:
    """Tell for each offload in `ethtool -k`, by its short name, whether it is on; None if there are none."""
    found = dict(re.findall(r"^([a-z-]+): (on|off)\b", output, re.MULTILINE))
    return {short: found[name] == "on" for name, short in _OFFLOADS.items() if name in found} or None


def _parse_rings(output: str) -> dict[str, int] | None:
    """Return the ring sizes in `ethtool -g`: the current `rx` and `tx`, and the maxima `rx_max` and `tx_max`."""
    most, _, now = output.partition("Current hardware settings")
    found: dict[str, int] = {}
    for part, ending in ((most, "_max"), (now, "")):
        for name, value in re.findall(rf"^(RX|TX):[ \t]*({_DIGITS})", part, re.MULTILINE):
            found[name.lower() + ending] = int(value)
    return found or None


def _parse_coalescing(output: str) -> dict[str, str] | None:
    found = dict(re.findall(rf"^((?:rx|tx)-usecs):[ \t]*({_DIGITS})", output, re.MULTILINE))
    match = re.search(r"^Adaptive RX:[ \t]*(on|off)[ \t]+TX:[ \t]*(on|off)", output, re.MULTILINE)
    if match:
        found |= {"adaptive-rx": match[1], "adaptive-tx": match[2]}
    return found or None


def _parse_fixed_offloads(output: str) -> dict[str, str]:
    """Return `on` or `off` for each offload that the driver cannot change (`[fixed]`), by short name."""
    fixed = re.findall(r"^([a-z-]+): (on|off) \[fixed\]", output, re.MULTILINE)
    return {_OFFLOADS[name]: value for name, value in fixed if name in _OFFLOADS}


def _parse_coalescing_taken(output: str) -> tuple[str, ...] | None:
    """Return the coalescing parameters that a driver supports, named as in a condition; None if it reports none."""
    # Before version 5.10, ethtool prints 0 for an unsupported parameter; then all parameters are returned.
    named = re.findall(rf"^((?:rx|tx)-(?:usecs|frames)):[ \t]*({_DIGITS}|n/a)", output, re.MULTILINE)
    match = re.search(r"^Adaptive RX:[ \t]*(on|off|n/a)[ \t]+TX:[ \t]*(on|off|n/a)", output, re.MULTILINE)
    named += [("adaptive_rx", match[1]), ("adaptive_tx", match[2])] if match else []
    return tuple(name.replace("-", "_") for name, value in named if value != "n/a") if named else None


def _parse_mtu_bounds(output: str) -> tuple[int, int] | None:
    """Return the smallest and the largest MTU in `ip -d link`; a largest of 0 has no bound."""
    match = re.search(r" minmtu ([0-9]{1,6}) maxmtu ([0-9]{1,6})\b", output)
    return (int(match[1]), int(match[2]) or _NO_BOUND) if match else None


def _parse_pcie(output: str) -> dict[str, float] | None:
    """Return the card's PCIe link from sysfs: `speed_gts`, `width` and the maxima `speed_max_gts`, `width_max`."""
    said = re.findall(r"^(\w{1,30})=([0-9]{1,4}(?:\.[0-9]{1,3})?)", output, re.MULTILINE)
    return {_PCIE[name]: float(value) for name, value in said if name in _PCIE and float(value) > 0} or None


def _parse_pause(output: str) -> dict[str, bool] | None:
    """Tell whether the card heeds (`rx`) and sends (`tx`) pause frames, from `ethtool -a`; None if unknown."""
    # The result of autonegotiation, which newer versions of ethtool print, has precedence.
    pattern = r"^(RX|TX){}:[ \t]*(on|off)"
    asked, agreed = (re.findall(pattern.format(word), output, re.MULTILINE) for word in ("", " negotiated"))
    return {way.lower(): value == "on" for way, value in (*asked, *agreed)} or None


def _parse_eee(output: str) -> str | None:
    """Return the state in `ethtool --show-eee`: `active`, `inactive` (the other end lacks it), `off`; None if unknown.

    A driver without support says so also while the other end of the cable makes use of it (raspberrypi/linux#6065).
    """
    match = re.search(r"^[ \t]*EEE status: (disabled|enabled - active|enabled - inactive)[ \t]*$", output, re.MULTILINE)
    return None if match is None else "off" if match[1] == "disabled" else match[1].removeprefix("enabled - ")


def _parse_offered(output: str) -> int | None:
    """Return the highest rate, in bit/s, that both ends of the link offer in `ethtool`; None if one end is unknown."""
    own, partner = (_rates_in(output, end) for end in ("Advertised", "Link partner advertised"))
    return max(own & partner, default=None)


def _rates_in(output: str, end: str) -> set[int]:
    match = re.search(rf"^[ \t]*{end} link modes:((?:\s+[0-9]+base\w+/(?:Full|Half))+)", output, re.MULTILINE)
    return {int(rate) * 1_000_000 for rate in re.findall(r"([0-9]{1,7})base", match[1])} if match else set()


def _carrier_fact(take: Callable[[Carrier], Any], twin: Fact | None = None) -> Fact:
    """Return a fact that `take` reads from what carries the frames of the data interface, and its twin."""

    def parse(output: str) -> Any:  # noqa: ANN401 — facts have values of any type
        layers = parse_layers(output)
        return take(carrier_of(next(iter(layers), ""), layers))

    return Fact(LAYERS, parse, twin=twin)


def _cards_below(output: str) -> list[str] | None:
    """Return the cards that carry the frames of the data interface; None if it is a card, or has none."""
    layers = parse_layers(output)
    name = next(iter(layers), "")
    cards = carrier_of(name, layers).cards
    return list(cards) if cards and cards != (name,) else None


FACTS: Final[dict[str, Fact]] = {
    "interface": Fact(_NAME, take_line, "ip", twin=Fact(_NAME, take_line)),
    "ssh_address": everywhere(Fact("echo $SSH_CONNECTION", _parse_ssh_address)),
    "addresses": Fact(f'{_IF}ip -o addr show dev "$IF"', _parse_own, "ip", twin=freebsd.ifconfig(freebsd.parse_own)),
    "driver": Fact(f"{_IF}{_DRIVER}", _parse_driver, "ethtool", twin=Fact(_NAME, freebsd.parse_driver)),
    "firmware": Fact(f'{_CARD}ethtool -i "$IF"', _parse_firmware, "ethtool"),
    "speed_bps": _carrier_fact(lambda carrier: carrier.speed_bps, freebsd.ifconfig(freebsd.parse_speed)),
    "duplex": _carrier_fact(lambda carrier: carrier.duplex, freebsd.ifconfig(freebsd.parse_duplex)),
    "cards": Fact(LAYERS, _cards_below),
    "bond": _carrier_fact(lambda carrier: carrier.bond and carrier.bond.as_fact()),
    "vlan_tags": _carrier_fact(lambda carrier: carrier.tags or None, freebsd.ifconfig(freebsd.parse_vlan_tags)),
    "mtu": file_fact("$NET/mtu", take_number, freebsd.ifconfig(freebsd.parse_mtu)),
    "mac": file_fact("$NET/address", take_line, freebsd.ifconfig(freebsd.parse_mac)),
    "virtual": Fact(f"{_IF}{_IS_VIRTUAL}", _parse_virtual, twin=Fact(_NAME, freebsd.parse_virtual)),
    "pause": Fact(f'{_CARD}ethtool -a "$IF"', _parse_pause, "ethtool"),
    "eee": Fact(f'{_CARD}ethtool --show-eee "$IF"', _parse_eee, "ethtool"),
    "offloads": Fact(f'{_IF}ethtool -k "$IF"', _parse_offloads, "ethtool", twin=freebsd.ifconfig(freebsd.parse_used)),
}
"""Facts that are stored with every run."""
OFFLOADS_FIXED: Final = Fact(f'{_IF}ethtool -k "$IF"', _parse_fixed_offloads)
CHECK_FACTS: Final[dict[str, Fact]] = {
    "up": file_fact("$NET/flags", _parse_up, freebsd.ifconfig(freebsd.parse_up)),
    "carrier": file_fact("$NET/carrier", take_number, freebsd.ifconfig(freebsd.parse_carrier)),
    "offered_bps": Fact(f'{_CARD}ethtool "$IF"', _parse_offered, "ethtool"),
    "rings": Fact(f'{_CARD}ethtool -g "$IF"', _parse_rings, "ethtool"),
    "coalescing": Fact(f'{_CARD}ethtool -c "$IF"', _parse_coalescing, "ethtool"),
    "offloads_fixed": OFFLOADS_FIXED,
    "pcie": Fact(f"{_IF}{_SLOT}", _parse_pcie, twin=Fact(f'{_IF}pciconf -lc "$IF"', freebsd.parse_pcie)),
}
"""Further facts that only a check reads."""
MTU_BOUNDS: Final = Fact(f'{_IF}ip -d -o link show dev "$IF"', _parse_mtu_bounds, "ip")
COALESCING_TAKEN: Final = Fact(f'{_IF}ethtool -c "$IF"', _parse_coalescing_taken)
