"""Which MAC addresses a switch has learnt on which port: its forwarding table, by SNMP.

Q-BRIDGE-MIB (RFC 4363) where the switch knows VLANs, else BRIDGE-MIB (RFC 4188). Both number the ports of the bridge;
dot1dBasePortIfIndex leads to the interface and ifName (RFC 2863) to its name.
"""

from typing import Final

from rigctl.probe.switches.reading import Forwarding
from rigctl.probe.switches.secrets import secrets_of
from rigctl.probe.switches.snmp import Session, snmp_session, whole
from rigctl.rig.inventory import Switch

_SYSTEM_NAME: Final = "1.3.6.1.2.1.1.5.0"
_BASE_PORT: Final = "1.3.6.1.2.1.17.1.4.1.2"  # dot1dBasePortIfIndex: bridge port → interface index
_BY_VLAN: Final = "1.3.6.1.2.1.17.7.1.2.2.1.2"  # dot1qTpFdbPort: table and MAC → bridge port
_BY_MAC: Final = "1.3.6.1.2.1.17.4.3.1.2"  # dot1dTpFdbPort: MAC → bridge port
MOST_LEARNT: Final = 32_768
_MAC_BYTES: Final = 6


async def read_forwarding(switch: Switch) -> Forwarding:
    """The table of `switch`. Raises `NodeError` where it does not answer; a switch without a table has no ports."""
    async with snmp_session(switch, secrets_of(switch)) as session:
        name = await session.text(_SYSTEM_NAME)
        names = await session.names()
        interfaces = {index[-1]: whole(value) for index, value in await session.walk(_BASE_PORT, MOST_LEARNT)}
        learnt: dict[str, set[str]] = {}
        for mac, bridge_port in await _learnt(session):
            # 0: known, but not where (dot1dTpFdbPort); the bridge's own addresses have no port either.
            index = interfaces.get(bridge_port) if bridge_port else None
            if index is not None and index in names:
                learnt.setdefault(names[index][0], set()).add(mac)
    return Forwarding(name or None, {port: frozenset(macs) for port, macs in learnt.items()})


async def _learnt(session: Session) -> list[tuple[str, int | None]]:
    for column in (_BY_VLAN, _BY_MAC):
        rows = await session.walk(column, MOST_LEARNT)
        if rows:
            return [
                (":".join(f"{part:02x}" for part in index[-_MAC_BYTES:]), whole(value))
                for index, value in rows
                if len(index) >= _MAC_BYTES and all(part < 256 for part in index[-_MAC_BYTES:])
            ]
    return []
