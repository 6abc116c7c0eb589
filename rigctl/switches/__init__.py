"""Reads counters of switches by SNMP or command line, and forwarding tables by SNMP (docs/reference/switches.md).

pysnmp and netmiko take long to import, and most runs need neither, so they are imported only when a switch is read.
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
    """Yield a reader for the interfaces `ports`, by SNMP if the rig file says so, else by CLI. Raise `NodeError`."""
    if switch.snmp is not None:
        from rigctl.switches.snmp import snmp_reader as opened
    elif switch.cli is not None:
        from rigctl.switches.cli import cli_reader as opened
    else:
        raise NodeError(switch.key, "counters can't be read: the rig file has neither snmp nor cli for this switch")
    async with opened(switch, switch_secrets(switch), ports) as reader:
        yield reader


async def forwarding_of(switch: Switch) -> Forwarding:
    """Return the forwarding table of `switch`, read by SNMP. Raise `NodeError` if the switch does not answer."""
    from rigctl.switches.snmp import read_forwarding

    return await read_forwarding(switch)
