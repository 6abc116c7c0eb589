"""Switches (docs/reference/switches.md): their counters by SNMP or command line, and their forwarding tables.

pysnmp and netmiko are large imports, and most runs need neither: they are imported here, when a switch is asked.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rigctl.base.errors import NodeError
from rigctl.rig.inventory import Switch
from rigctl.switches.reading import Forwarding, PortCounters, Reader
from rigctl.switches.secrets import switch_secrets

__all__ = ["Forwarding", "PortCounters", "Reader", "forwarding_of", "reader_of", "switch_secrets"]


@asynccontextmanager
async def reader_of(switch: Switch, ports: Sequence[str]) -> AsyncIterator[Reader]:
    """Yield a reader of the counters of `ports`, interface names on `switch`: by SNMP if the rig file has it, else CLI.

    Raise `NodeError` with the switch's key if it does not answer, refuses its credentials or lacks a port.
    """
    if switch.snmp is not None:
        from rigctl.switches.snmp import snmp_reader as opened
    elif switch.cli is not None:
        from rigctl.switches.cli import cli_reader as opened
    else:
        raise NodeError(switch.key, "the rig file has neither snmp nor cli for it: its counters can't be read")
    async with opened(switch, switch_secrets(switch), ports) as reader:
        yield reader


async def forwarding_of(switch: Switch) -> Forwarding:
    """Return what `switch` has learnt, by SNMP. Raise `NodeError` if it does not answer."""
    from rigctl.switches.snmp import read_forwarding

    return await read_forwarding(switch)
