"""Finds what carries the frames of an interface: the hardware below a bridge, bond or VLAN, from /sys/class/net.

The kernel makes up the speed of a bridge (that of its fastest port, even a container's), of a bond (the sum of its
cards) and of a veth or tap. So only hardware has a speed here, and each layer says what it makes of it. The files
lower_NAME name the interfaces below one; DEVTYPE in `uevent` is its kind, as `ip -d link` prints it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.base.texts import printable
from rigctl.base.values import common_value, most, total
from rigctl.hosts.fact import find_first, take_number
from rigctl.model.bonds import ONE_CARD, Bond

_MOST_SPEED: Final = 10_000_000  # Mbit/s; the kernel prints 4294967295 (-1) if the speed is unknown
_MOST_DEPTH: Final = 8  # of the kernel: MAX_NEST_DEV
_SHARING: Final = frozenset({"bridge", "macvlan", "ipvlan", "macvtap", "ipvtap"})
"""Kinds that hand on each frame as it is to one interface below."""
_WRAPPING: Final = frozenset({"vxlan", "geneve", "macsec", "hsr", "batadv", "wireguard", "bareudp", "gtp"})
"""Kinds whose frames are longer below: the speed below is not theirs."""
# The class drivers of USB devices fill in no duplex, so that the kernel prints the value 0, which means half. Source:
# usbnet_get_link_ksettings_internal in drivers/net/usb/usbnet.c.
_NO_DUPLEX: Final = frozenset(
    {
        "cdc_ether",
        "cdc_ncm",
        "cdc_mbim",
        "cdc_eem",
        "sierra_net",
        "zaurus",
        "cdc_subset",
        "huawei_cdc_ncm",
        "qmi_wwan",
        "r8153_ecm",
        "rndis_host",
    }
)
# Define `say NAME`: print the line of an interface. `read` is used, as a cat(1) per value would be slow on a host with
# many interfaces. Fields: name, operstate, speed, duplex, MTU, MAC, driver, hardware (yes or no), interfaces below,
# kind; of a bond mode, hash and active member.
SAY_LAYER: Final = """
got() { v=; [ -r "$1" ] && read -r v <"$1"; said="$said$v|"; }
say() {
  d=/sys/class/net/$1; said="$1|"; below=; hw=no; drv=; kind=
  for f in operstate speed duplex mtu address; do got "$d/$f"; done
  for l in "$d"/lower_*; do [ -e "$l" ] && below="$below,${l##*/lower_}"; done
  [ -e "$d/device" ] && hw=yes && drv=$(readlink "$d/device/driver")
  [ -r "$d/uevent" ] && while read -r v; do case "$v" in DEVTYPE=*) kind=${v#*=} ;; esac; done <"$d/uevent"
  said="$said${drv##*/}|$hw|$below|$kind|"
  for f in mode xmit_hash_policy active_slave; do got "$d/bonding/$f"; done
  echo "$said"
}
"""
# Print the lines of $IF and of all interfaces below it that are or have hardware, not of the veths in a bridge.
LAYERS: Final = f"""{SAY_LAYER}
carries() {{
  [ -e "/sys/class/net/$1/device" ] && return
  for u in "/sys/class/net/$1"/lower_*; do [ -e "$u" ] && return; done
  return 1
}}
down() {{
  say "$1"
  [ "$hw" = yes ] || for l in "/sys/class/net/$1"/lower_*; do
    carries "${{l##*/lower_}}" && down "${{l##*/lower_}}"
  done
}}
[ -n "$IF" ] && down "$IF"
"""

parse_duplex: Final = find_first(r"\A\s*(full|half)[ \t\r]*$", str)


def parse_speed(output: str) -> int | None:
    """Return the speed in bit/s from /sys/class/net/…/speed in Mbit/s; None for 0, and for -1 in 16 or 32 bits."""
    speed = take_number(output)
    return speed * 10**6 if speed and speed != 0xFFFF and speed <= _MOST_SPEED else None


@dataclass(frozen=True, slots=True)
class Layer:
    """An interface as the kernel describes it, whatever the values of an interface without hardware are worth."""

    name: str
    state: str
    speed_bps: int | None
    duplex: str | None
    mtu: int | None
    mac: str | None
    driver: str | None
    is_hardware: bool
    below: tuple[str, ...] = ()
    kind: str | None = None
    mode: str | None = None
    policy: str | None = None
    active: str | None = None


@dataclass(frozen=True, slots=True)
class Carrier:
    """The carrier of the frames of an interface. `speed_bps` is of all cards that carry frames at the same time."""

    cards: tuple[str, ...] = ()
    speed_bps: int | None = None
    duplex: str | None = None
    tags: int = 0  # VLAN tags in each frame
    bond: Bond | None = None


def parse_layers(output: str) -> dict[str, Layer]:
    """Return the interfaces by name, from lines of `say`."""
    found: dict[str, Layer] = {}
    for line in output.splitlines():
        fields = [text.strip() for text in printable(line).split("|")]
        if len(fields) != 14:
            continue
        name, state, speed, duplex, mtu, mac, driver, hardware, below, kind, mode, policy, active, _ = fields
        found[name] = Layer(
            name=name,
            state=state,
            speed_bps=parse_speed(speed),
            duplex=None if driver in _NO_DUPLEX and duplex == "half" else parse_duplex(duplex),
            mtu=take_number(mtu),
            mac=mac.lower() if mac.count(":") == 5 and mac != "00:00:00:00:00:00" else None,
            driver=driver or None,
            is_hardware=hardware == "yes",
            below=tuple(name for name in below.split(",") if name),
            kind=kind or None,
            mode=mode.partition(" ")[0] or None,  # as in `802.3ad 4`
            policy=policy.partition(" ")[0] or None,
            active=active or None,
        )
    return found


def carrier_of(name: str, layers: Mapping[str, Layer], depth: int = 0) -> Carrier:
    """Return what carries the frames of an interface; a carrier without cards if no hardware does."""
    layer = layers.get(name)
    if layer is None or depth > _MOST_DEPTH:
        return Carrier()
    if layer.is_hardware:
        return Carrier((name,), layer.speed_bps, layer.duplex)
    below = {each: carrier_of(each, layers, depth + 1) for each in layer.below}
    below = {each: carrier for each, carrier in below.items() if carrier.cards}
    # Without a link, the kernel reports the state `down` and the speed -1.
    below = {each: carrier for each, carrier in below.items() if layers[each].state != "down"} or below
    tags = int(layer.kind == "vlan")
    if layer.kind in _WRAPPING or not below:
        return Carrier(_cards(below.values()), tags=tags)
    if layer.mode is not None or (len(below) > 1 and layer.kind not in _SHARING):
        return _bonded(layer, below)
    return _shared(list(below.values()), tags)


def _shared(below: list[Carrier], tags: int) -> Carrier:
    """Return the carrier of an interface that sends each frame by one of those below, unknown which."""
    bonds = {each.bond for each in below}
    same = len(below) == 1 or (bonds == {None} and len({each.speed_bps for each in below}) == 1)
    return Carrier(
        cards=_cards(below),
        speed_bps=below[0].speed_bps if same else None,
        duplex=_duplex(below),
        tags=tags + (common_value(each.tags for each in below) or 0),
        bond=below[0].bond if same else None,
    )


def _bonded(layer: Layer, below: Mapping[str, Carrier]) -> Carrier:
    """Return the carrier of a bond. Its own speed tells which members it uses, as LACP may leave some out."""
    one = below.get(layer.active or "") if layer.mode == "active-backup" else None
    used = [one] if one is not None else list(below.values())
    speeds = [each.speed_bps for each in used]
    card_bps = None if None in speeds else most(speeds)
    total_bps = card_bps if layer.mode in ONE_CARD else total(speeds)
    if card_bps is not None and total_bps is not None and layer.speed_bps is not None:
        total_bps = max(card_bps, min(total_bps, layer.speed_bps))
    bond = Bond(len(below), card_bps, total_bps, layer.mode, layer.policy)
    tags = max(each.tags for each in used)
    return Carrier(_cards(below.values()), total_bps, _duplex(used), tags, bond if bond.cards > 1 else None)


def _cards(carriers: Iterable[Carrier]) -> tuple[str, ...]:
    return tuple(card for each in carriers for card in each.cards)


def _duplex(carriers: list[Carrier]) -> str | None:
    known = [each.duplex for each in carriers]
    return "half" if "half" in known else common_value(known)
