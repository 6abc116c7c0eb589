"""Switches (docs/reference/switches.md): counters by SNMP or command line (`reader_of`), `forwarding_of`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rigctl.base.errors import NodeError
from rigctl.probe.switches.reading import Forwarding, PortCounters, Reader
from rigctl.probe.switches.secrets import secrets_of
from rigctl.rig.inventory import Switch

__all__ = ["Forwarding", "PortCounters", "Reader", "forwarding_of", "reader_of", "secrets_of"]


@asynccontextmanager
async def reader_of(switch: Switch, ports: Sequence[str]) -> AsyncIterator[Reader]:
    """A reader of the counters of `ports`, interface names on `switch`: by SNMP where the rig file says so, else CLI.

    Raises `NodeError` with the switch's key where it does not answer, refuses its credentials or lacks a port.
    """
    # Each is a large import; most runs need one of them or none.
    if switch.snmp is not None:
        from rigctl.probe.switches.snmp import snmp_reader

        async with snmp_reader(switch, secrets_of(switch), ports) as reader:
            yield reader
    elif switch.cli is not None:
        from rigctl.probe.switches.cli import cli_reader

        async with cli_reader(switch, secrets_of(switch), ports) as reader:
            yield reader
    else:
        raise NodeError(switch.key, "the rig file has neither snmp nor cli for it: its counters can't be read")


async def forwarding_of(switch: Switch) -> Forwarding:
    """What `switch` has learnt, by SNMP. Raises `NodeError` where it does not answer."""
    from rigctl.probe.switches.forwarding import read_forwarding

    return await read_forwarding(switch)
