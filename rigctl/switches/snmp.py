"""Reads a switch's interface counters and forwarding table by SNMP v2c or v3, with pysnmp.

All OIDs are numeric, so no MIB is compiled. One GET asks for the counters (IF-MIB, RFC 2863) of several ports. The
forwarding table comes from Q-BRIDGE-MIB (RFC 4363) and BRIDGE-MIB (RFC 4188). Both number ports in their own way:
dot1dBasePortIfIndex maps these bridge ports to interface indexes, and ifName (RFC 2863) gives the names.
"""

import asyncio
import operator
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, SupportsIndex

from pysnmp.hlapi.v3arch import asyncio as hlapi

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.rig.inventory import Secrets, Switch
from rigctl.switches.reading import Forwarding, Names, PortCounters, Reader, find_ports, port_name
from rigctl.switches.secrets import env_name, switch_secrets

_TIMEOUT_S: Final = 1.0
_WALK_TIMEOUT_S: Final = 3.0
"""Time for an answer with 20 rows of a table. A slow switch, or a busy one, needs more of it than for its counters."""
_MOST_PER_REQUEST: Final = 44
"""Most values in one request: the answer stays below 1472 bytes, so that its datagram is not fragmented."""
_MOST_INTERFACES: Final = 4096
WALK_S: Final = 120.0
"""Deadline to read a column of a table; a switch that answers each request just in time could take hours."""
_MOST_COUNT: Final = 2**64 - 1
_MOST_TEXT: Final = 255
"""Length limit of an interface's name (DisplayString, RFC 2579)."""
_NAME, _DESCRIPTION, _ALIAS = "1.3.6.1.2.1.31.1.1.1.1", "1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.31.1.1.1.18"
_IF, _IFX = "1.3.6.1.2.1.2.2.1.", "1.3.6.1.2.1.31.1.1.1."
_SYSTEM_NAME: Final = "1.3.6.1.2.1.1.5.0"
_BASE_PORT: Final = "1.3.6.1.2.1.17.1.4.1.2"  # dot1dBasePortIfIndex: bridge port → interface index
_BASE_NUMBER: Final = "1.3.6.1.2.1.17.1.4.1.1"  # dot1dBasePort: index of the row → bridge port
_BY_VLAN: Final = "1.3.6.1.2.1.17.7.1.2.2.1.2"  # dot1qTpFdbPort: number of a VLAN's table and MAC address → bridge port
_BY_MAC: Final = "1.3.6.1.2.1.17.4.3.1.2"  # dot1dTpFdbPort: MAC address → bridge port
_ADDRESS: Final = "1.3.6.1.2.1.17.4.3.1.1"  # dot1dTpFdbAddress: index of the row → MAC address
_MOST_LEARNT: Final = 32_768
_FIRST_OF_TP_LINK: Final = 49_152
_MAC_BYTES: Final = 6
_PORTS_ASKED: Final = 2
"""So many ports are asked which counters of the wire the switch has: the first may be a trunk without them."""
# Counter → 64-bit columns of which it is the sum, and the 32-bit columns for a switch without 64-bit counters.
_COLUMNS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "in_octets": ((_IFX + "6",), (_IF + "10",)),
    "out_octets": ((_IFX + "10",), (_IF + "16",)),
    "in_packets": ((_IFX + "7", _IFX + "8", _IFX + "9"), (_IF + "11", _IF + "12")),
    "out_packets": ((_IFX + "11", _IFX + "12", _IFX + "13"), (_IF + "17", _IF + "18")),
    "in_discards": ((_IF + "13",), ()),
    "out_discards": ((_IF + "19",), ()),
    "in_errors": ((_IF + "14",), ()),
    "out_errors": ((_IF + "20",), ()),
    "discontinuity": ((_IFX + "19",), ()),
}
_ETHERLIKE: Final = "1.3.6.1.2.1.10.7."
_WIRE: Final[dict[str, tuple[str, ...]]] = {
    "in_pause": (_ETHERLIKE + "10.1.5", _ETHERLIKE + "10.1.3"),
    "out_pause": (_ETHERLIKE + "10.1.6", _ETHERLIKE + "10.1.4"),
    "fcs_errors": (_ETHERLIKE + "2.1.3",),
    "alignment_errors": (_ETHERLIKE + "2.1.2",),
    "late_collisions": (_ETHERLIKE + "2.1.8",),
}
"""Counters of the wire (EtherLike-MIB, RFC 3635), each with its columns: of several, the first that a port has."""
_AUTH: Final = {
    "md5": hlapi.USM_AUTH_HMAC96_MD5,
    "sha": hlapi.USM_AUTH_HMAC96_SHA,
    "sha224": hlapi.USM_AUTH_HMAC128_SHA224,
    "sha256": hlapi.USM_AUTH_HMAC192_SHA256,
    "sha384": hlapi.USM_AUTH_HMAC256_SHA384,
    "sha512": hlapi.USM_AUTH_HMAC384_SHA512,
}
_PRIV: Final = {
    "des": hlapi.USM_PRIV_CBC56_DES,
    "aes": hlapi.USM_PRIV_CFB128_AES,
    "aes192": hlapi.USM_PRIV_CFB192_AES,
    "aes256": hlapi.USM_PRIV_CFB256_AES,
}


@asynccontextmanager
async def snmp_reader(switch: Switch, secrets: Secrets, ports: Sequence[str]) -> AsyncIterator[Reader]:
    """Yield a reader that uses SNMP. Raise `NodeError` if the switch does not answer or lacks a port."""
    async with snmp_session(switch, secrets) as session:
        found, refused = find_ports(ports, await session.names())
        if refused:
            more = f" ({len(refused) - 1} other ports are not found either)" if len(refused) > 1 else ""
            raise NodeError(switch.key, f"{next(iter(refused.values()))}{more}")
        yield SnmpReader(session, found)


@asynccontextmanager
async def snmp_session(switch: Switch, secrets: Secrets) -> AsyncIterator["SnmpSession"]:
    """Yield an SNMP session with `switch`. Raise `NodeError` if credentials are missing or the address is unusable."""
    assert switch.snmp is not None
    engine = hlapi.SnmpEngine()
    try:
        user = _user(switch, secrets)
        try:
            place, make = (switch.address or "", switch.snmp.port), hlapi.UdpTransportTarget.create
            target, table_target = [
                await make(place, timeout=timeout_s, retries=1) for timeout_s in (_TIMEOUT_S, _WALK_TIMEOUT_S)
            ]
        except Exception as error:
            raise NodeError(switch.key, f"the address {switch.address} can't be used: {error}") from None
        yield SnmpSession(switch, engine, user, target, table_target)
    finally:
        engine.close_dispatcher()


@dataclass
class SnmpReader:
    """Reads the counters of `ports`, name → index. `wide`: the switch has 64-bit counters; None: not yet known."""

    session: "SnmpSession"
    ports: Mapping[str, int]
    source: str = "snmp"
    wide: bool | None = None
    wire: dict[str, str] | None = None  # columns of the wire that the switch has; None: not yet known

    async def read(self, *, wire: bool = False) -> dict[str, PortCounters]:
        if self.wide is None:
            first = next(iter(self.ports.values()), None)
            probe = f"{_COLUMNS['in_octets'][0][0]}.{first}"
            self.wide = first is None or (await self.session.get([probe]))[probe] is not None
        columns = {name: wide if self.wide or not narrow else narrow for name, (wide, narrow) in _COLUMNS.items()}
        if wire:
            columns |= {name: (column,) for name, column in (await self._wire_columns()).items()}
        wanted = [f"{column}.{index}" for index in self.ports.values() for column in chain(*columns.values())]
        before_ns = time.monotonic_ns()
        parts = [wanted[at : at + _MOST_PER_REQUEST] for at in range(0, len(wanted), _MOST_PER_REQUEST)]
        answers = await asyncio.gather(*map(self.session.get, parts))
        took_ns = time.monotonic_ns() - before_ns
        values = {oid: value for answer in answers for oid, value in answer.items()}
        read: dict[str, PortCounters] = {}
        for port, index in self.ports.items():
            known = {name: [values.get(f"{part}.{index}") for part in parts] for name, parts in columns.items()}
            sums = {name: sum(filter(None, parts)) for name, parts in known.items() if parts != [None] * len(parts)}
            read[port] = PortCounters(before_ns + took_ns // 2, took_ns, **sums)
        return read

    async def _wire_columns(self) -> dict[str, str]:
        """Return the columns of the wire that a port of this switch has, asked for once."""
        if self.wire is None:
            every = [column for columns in _WIRE.values() for column in columns]
            found: set[str] = set()
            for index in list(self.ports.values())[:_PORTS_ASKED]:
                answer = await self.session.get([f"{column}.{index}" for column in every])
                found |= {column for column in every if answer[f"{column}.{index}"] is not None}
            self.wire = {
                name: own for name, columns in _WIRE.items() if (own := next(filter(found.__contains__, columns), None))
            }
        return self.wire


@dataclass(frozen=True)
class SnmpSession:
    """SNMP requests to one switch. Each method raises `NodeError` if the switch does not answer or refuses."""

    switch: Switch
    engine: hlapi.SnmpEngine
    user: Any
    target: Any
    table_target: Any  # the same target with a longer timeout
    objects: dict[str, hlapi.ObjectType] = field(default_factory=dict)  # cache of pysnmp objects by OID

    async def get(self, oids: Sequence[str]) -> dict[str, int | None]:
        """Return the counters by OID; None if the switch lacks the OID or its value is no counter."""
        return {str(oid): read_count(value) for oid, value in await self._get(oids)}

    async def _get(self, oids: Sequence[str]) -> list[tuple[Any, Any]]:
        # Objects are cached, because pysnmp takes 1 to 2 ms of processor time for the OID of a new object.
        for oid in oids:
            if oid not in self.objects:
                self.objects[oid] = hlapi.ObjectType(hlapi.ObjectIdentity(oid))
        asked = [self.objects[oid] for oid in oids]
        answer = await hlapi.get_cmd(self.engine, self.user, self.target, hlapi.ContextData(), *asked, lookupMib=False)
        return list(self._bindings(answer))

    async def names(self) -> Names:
        """Return ifName, ifDescr and ifAlias of each interface by index; a missing name is empty."""
        columns = [
            {index[-1]: read_name(value) for index, value in await self.walk(column, _MOST_INTERFACES)}
            for column in (_NAME, _DESCRIPTION, _ALIAS)
        ]
        indexes = dict.fromkeys(index for column in columns for index in column)
        if not indexes:
            raise NodeError(self.switch.key, "the switch lists no interfaces. Is its SNMP view restricted?")
        return {index: tuple(column.get(index, "") for column in columns) for index in indexes}

    async def text(self, oid: str) -> str | None:
        """Return the text value of this OID; None if the switch lacks the OID."""
        return next((read_name(value) for _, value in await self._get([oid]) if _is_there(value)), None)

    async def walk(self, column: str, most: int) -> list[tuple[tuple[int, ...], Any]]:
        """Return the first rows of a table's column, about `most` of them: index, and value as pysnmp returns it."""
        try:
            async with asyncio.timeout(WALK_S):
                return await self._walk(column, most)
        except TimeoutError:
            raise NodeError(self.switch.key, f"the switch did not send a table within {WALK_S:g} s") from None

    async def _walk(self, column: str, most: int) -> list[tuple[tuple[int, ...], Any]]:
        rows: dict[tuple[int, ...], Any] = {}
        last = column
        while len(rows) < most:
            answer = await hlapi.bulk_cmd(
                self.engine, self.user, self.table_target, hlapi.ContextData(), 0, 20,
                hlapi.ObjectType(hlapi.ObjectIdentity(last)), lookupMib=False,
            )  # fmt: skip
            bindings = [(str(oid), value) for oid, value in self._bindings(answer)]
            inside = [(oid, value) for oid, value in bindings if oid.startswith(column + ".") and _is_there(value)]
            found = {tuple(map(int, oid[len(column) + 1 :].split("."))): value for oid, value in inside}
            # A switch may repeat its table, or leave it unsorted against RFC 3416 (TP-Link): stop if no row is new.
            if found.keys() <= rows.keys():
                break
            rows |= found
            if len(inside) < len(bindings):
                break
            last = inside[-1][0]
        return list(rows.items())

    def _bindings(self, answer: tuple[Any, Any, Any, Any]) -> Iterator[tuple[Any, Any]]:
        failure, status, index, bindings = answer
        if failure is not None:
            raise NodeError(self.switch.key, self._meaning(str(failure)))
        if status:
            raise NodeError(self.switch.key, f"SNMP: {status.prettyPrint()} (value {int(index)})")
        yield from bindings

    def _meaning(self, failure: str) -> str:
        snmp = self.switch.snmp
        assert snmp is not None
        place = f"{self.switch.address}, UDP port {snmp.port}"
        if "imeout" in failure or "No SNMP response" in failure:
            # A switch gives no answer to a wrong community (RFC 3584).
            more = ", is the community right?" if snmp.version == "2c" else "?"
            return f"no SNMP answer from {place}. Is the switch on, does it allow this machine{more}"
        return f"SNMP on {place} refused: {failure}. Check the user, its passphrases and protocols"


def _user(switch: Switch, secrets: Secrets) -> object:
    assert switch.snmp is not None
    if switch.snmp.version == "2c":
        if secrets.community is None:
            what = f"no SNMP community: set {env_name(switch, 'community')}, or name it in credentials.yaml"
            raise NodeError(switch.key, what)
        return hlapi.CommunityData(secrets.community, mpModel=1)  # noqa: S508 — many switches have v2c only
    if secrets.user is None:
        raise NodeError(switch.key, f"no SNMP user: set {env_name(switch, 'user')}, or name it in credentials.yaml")
    if secrets.priv is not None and secrets.auth is None:
        what = "a privacy passphrase also needs an authentication passphrase"
        raise NodeError(switch.key, f"{what}: set {env_name(switch, 'auth')}")
    return hlapi.UsmUserData(
        secrets.user,
        authKey=secrets.auth,
        privKey=secrets.priv,
        authProtocol=_AUTH[switch.snmp.auth] if secrets.auth else hlapi.USM_AUTH_NONE,
        privProtocol=_PRIV[switch.snmp.priv] if secrets.priv else hlapi.USM_PRIV_NONE,
    )


def _is_there(value: object) -> bool:
    return value.__class__.__name__ not in ("NoSuchObject", "NoSuchInstance", "EndOfMibView", "Null")


def read_count(value: object) -> int | None:
    """Return the value as a number from 0 to 2⁶⁴ - 1; None for any other value that a switch may send, such as text."""
    number = operator.index(value) if isinstance(value, SupportsIndex) else -1
    return number if 0 <= number <= _MOST_COUNT else None


def read_octets(value: object) -> bytes:
    """Return the bytes of a text; b"" for a value of another type, such as a number."""
    octets: bytes = getattr(value, "asOctets", bytes)()  # pyasn1's OCTET STRING
    return octets[:_MOST_TEXT]


def read_name(value: object) -> str:
    """Return the value as text; "" for a value of another type, such as a number."""
    return printable(read_octets(value).decode("utf-8", "replace"))


async def read_forwarding(switch: Switch) -> Forwarding:
    """Return the forwarding table of `switch`, empty if it has none. Raise `NodeError` if it does not answer."""
    async with snmp_session(switch, switch_secrets(switch)) as session:
        name = await session.text(_SYSTEM_NAME)
        names = await session.names()
        learnt = await _read_forwarding(session, names)
    at = {index for indexes in learnt.values() for index in indexes if index is not None}
    named: dict[int | None, str] = {index: port for index in at if (port := port_name(index, names)) is not None}
    behind: dict[str, set[str]] = {port: set() for port in named.values()}
    for mac, indexes in learnt.items():
        for index in indexes & named.keys():
            behind[named[index]].add(mac)
    ports = {port: frozenset(macs) for port, macs in behind.items()}
    return Forwarding(name or None, ports, frozenset(learnt.keys() - set().union(*behind.values())), names)


async def _read_forwarding(session: SnmpSession, names: Names) -> dict[str, set[int | None]]:
    """Return by MAC address its interface indexes (None: unknown), from Q-BRIDGE-MIB; further ones from BRIDGE-MIB."""
    base = await _bridge_ports(session)
    learnt: dict[str, set[int | None]] = {}
    for column in (_BY_VLAN, _BY_MAC):
        rows = await session.walk(column, _MOST_LEARNT)
        addresses: dict[tuple[int, ...], bytes] = {}
        if any(len(index) < _MAC_BYTES for index, _ in rows):  # FortiSwitch, Netonix: the MAC is in its own column
            addresses = {index: read_octets(value) for index, value in await session.walk(_ADDRESS, _MOST_LEARNT)}
        ports = [(_mac(addresses.get(index) or index), read_count(value)) for index, value in rows]
        interfaces = _interfaces({port for _, port in ports if port}, base, names)
        known = {mac for mac, indexes in learnt.items() if indexes != {None}}
        for mac, port in ports:
            if mac not in known:
                learnt.setdefault(mac, set()).add(interfaces.get(port) if port else None)  # port 0 means unknown
    return learnt


async def _bridge_ports(session: SnmpSession) -> dict[int, int | None]:
    """Return the interface index of each bridge port. Index 0, as of Extreme VOSS, is no interface and left out."""
    rows = {index: read_count(value) for index, value in await session.walk(_BASE_PORT, _MOST_LEARNT)}
    numbers = {index: read_count(value) for index, value in await session.walk(_BASE_NUMBER, _MOST_LEARNT)}
    # The index of a row is the bridge port, except for trunks of FortiSwitch, whose ports are 32768 and up.
    return {numbers.get(index) or index[-1]: interface for index, interface in rows.items() if interface != 0}


def _interfaces(ports: Set[int], base: Mapping[int, int | None], names: Names) -> Mapping[int, int | None]:
    """Return the interface index by port number of a forwarding table, in the first numbering that has all `ports`.

    Some switches list the interface index instead of the bridge port (SONiC, one table of RouterOS), or the interface
    index less 49152 (TP-Link).
    """
    from_one = {index - _FIRST_OF_TP_LINK: index for index in names}
    by_index = {index: index for index in names}
    for numbering in (base, from_one, by_index):
        if ports <= numbering.keys():
            return numbering
    return {**by_index, **from_one, **base} if all(port == index for port, index in base.items()) else base


def _mac(index: Sequence[int]) -> str:
    """Return the MAC address at the end of a row's index, or a name such as `row 1.2` if the index has none."""
    if len(index) < _MAC_BYTES or max(index[-_MAC_BYTES:]) > 255:
        return f"row {'.'.join(map(str, index))}"
    return ":".join(f"{part:02x}" for part in index[-_MAC_BYTES:])
