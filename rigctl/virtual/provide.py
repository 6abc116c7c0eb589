"""Turns a virtual rig into an ordinary one: started if it is not up, reached by SSH, ended after."""

import asyncio
import platform
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from rigctl.base.errors import InputError
from rigctl.records import Port
from rigctl.rig.inventory import VIRTUAL_MTU, Arch, Rig, Secrets, Switch
from rigctl.virtual.layout import SECOND_SWITCH, SWITCH, Bridge, Layout, Place
from rigctl.virtual.start import end, ended, start
from rigctl.virtual.state import State, base, one_at_a_time, standing, states, sweep

MAX_NODES: Final = 250  # one /24 holds them, .255 left out
EMULATED_TIMES: Final = 6
"""Factor on the deadlines of SSH: an emulated machine needs ten times as long for its end of the cryptography."""


@asynccontextmanager
async def provided(rig: Rig) -> AsyncIterator[Rig]:
    """Yield a rig with every node's address, port, user, key, known hosts and data address. A real rig stays as it is.

    A virtual rig that `up` left up with the same definition is used. Otherwise one is started for this user alone and
    ended after: two runs at once have a rig each. Raise `RigError` if the rig cannot be started.
    """
    if rig.virtual is None:
        yield rig
        return
    layout = layout_of(rig)
    sweep()
    found = standing(layout.key)
    if found is not None:
        yield completed(rig, layout, found)
        return
    started = await start(layout, source=rig.source, stay=False)
    try:
        yield completed(rig, layout, started.state)
    finally:
        started.let_go()
        await asyncio.shield(ended(started.state))


async def up(rig: Rig) -> tuple[Rig, State, bool]:
    """Start a virtual rig that stays until `down`. Return it, its state, and whether it was started only now."""
    layout = layout_of(rig)
    sweep()
    with one_at_a_time(base()):  # a second `rig up` of the same rig waits until the first has it up
        found = standing(layout.key)
        if found is not None:
            return completed(rig, layout, found), found, False
        started = await start(layout, source=rig.source, stay=True)
        started.let_go()
        return completed(rig, layout, started.state), started.state, True


async def down(rig: Rig) -> list[State]:
    """End every rig that `up` started from this file or an earlier version of it, and return them."""
    states_up = find(rig)
    await asyncio.gather(*(end(state) for state in states_up))
    return states_up


def find(rig: Rig) -> list[State]:
    """Return the rigs that `up` started from this file, newest version first. Raise `InputError` for a real rig."""
    layout = layout_of(rig)
    sweep()
    source = None if rig.source is None else str(rig.source)
    mine = [
        state
        for state in states()
        if state.stays and state.up and (state.key == layout.key or (source is not None and state.source == source))
    ]
    return sorted(mine, key=lambda state: state.key != layout.key)


def layout_of(rig: Rig) -> Layout:
    """Return the layout of a virtual rig. Raise `InputError` for too many nodes, or a link that IPv6 cannot use."""
    if rig.virtual is None:
        raise InputError(f"{rig.name}: a real rig. Only virtual rigs can be started.")
    if len(rig.nodes) > MAX_NODES:
        raise InputError(f"{rig.name}: {len(rig.nodes)} nodes. A virtual rig has {MAX_NODES} at most.")
    keys = list(rig.switches)
    places = tuple(
        Place(
            node.name,
            number,
            node.link.rate_bps,
            node.link.mtu or VIRTUAL_MTU,
            keys.index(node.link.switch) if node.link.switch in keys else 0,
            None if node.link.rtt_s is None else round(node.link.rtt_s * 1e9),
            node.bottleneck_bps,
            node.sysctls,
            node.arch or _own_arch(),
            node.nic,
        )
        for number, node in enumerate(rig.nodes.values(), 1)
    )
    for place in places:
        if rig.ip_version == 6 and place.mtu < 1280 and rig.virtual != "loopback":
            # RFC 8200, section 5: IPv6 needs 1280 bytes, and Linux takes it off an interface with less.
            raise InputError(f"{rig.name}: {place.name} has MTU {place.mtu}. ip_version 6 needs 1280 at least.")
    return Layout(
        rig.name,
        rig.virtual,
        rig.ip_version,
        places,
        _bridges(rig, places),
        rig.trunk.rate_bps if rig.trunk else None,
        any(switch.snmp for switch in rig.switches.values()),
    )


def _own_arch() -> Arch:
    return "aarch64" if platform.machine() == "aarch64" else "x86_64"


def _bridges(rig: Rig, places: tuple[Place, ...]) -> tuple[Bridge, ...]:
    if not rig.switches:
        return (Bridge(SWITCH),)
    largest = max(place.mtu for place in places)
    return tuple(
        Bridge(device, switch.key, switch.mtu or largest)
        for device, switch in zip((SWITCH, SECOND_SWITCH), rig.switches.values(), strict=False)
    )


def completed(rig: Rig, layout: Layout, state: State) -> Rig:
    """Return the rig as an ordinary one."""
    nodes = {
        place.name: replace(
            rig.nodes[place.name],
            address=layout.ssh_address(place),
            port=state.ports[place.name],
            user=None if layout.kind == "loopback" else "root",
            key=state.client_key,
            known_hosts=state.known_hosts,
            data_address=layout.data_address(place),
            data_interface=layout.data_interface(),
            patience=EMULATED_TIMES if layout.kind == "machines" else 1,
        )
        for place in layout.places
    }
    switches = {key: _served_switch(switch, state) for key, switch in rig.switches.items()}
    return replace(rig, nodes=nodes, switches=switches, ports=tuple(_ports(layout)))


def _served_switch(switch: Switch, state: State) -> Switch:
    """Return a switch with the address of the rig's snmpd; without snmpd it has no address."""
    if switch.snmp is None or state.snmp_port is None:
        return switch
    return replace(
        switch,
        address="127.0.0.1",
        snmp=replace(switch.snmp, port=state.snmp_port),
        secrets=Secrets(community=state.community),
    )


def _ports(layout: Layout) -> Iterator[Port]:
    """Yield the bridges' interfaces, if the rig file names its switches."""
    for place in layout.places:
        key = layout.bridges[place.bridge].key
        if key is not None:
            yield Port(key, place.port, node=place.name)
    keys = [bridge.key for _, bridge in layout.trunk]
    for (device, bridge), peer in zip(layout.trunk, reversed(keys), strict=True):
        if bridge.key is not None:
            yield Port(bridge.key, device, peer=peer)
