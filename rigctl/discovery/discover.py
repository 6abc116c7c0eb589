"""The whole of it: targets in, a draft of a rig out."""

import asyncio
from collections.abc import Sequence

from rigctl.base.errors import NodeError
from rigctl.discovery.asking import asked_all
from rigctl.discovery.draft import Draft, drafted
from rigctl.discovery.targets import Target, once_each
from rigctl.probe.switches import Forwarding, forwarding_of
from rigctl.rig.inventory import Switch


async def discovered(targets: Sequence[Target], switches: Sequence[Switch] = ()) -> Draft:
    """What was found. A host that can't be asked is left out, and so is a switch: a note of the draft says why."""
    unique, again = once_each(targets)
    asked = await asked_all(unique)
    # After the hosts: the connections to them have refreshed the tables.
    outcomes = await asyncio.gather(*map(_table, switches))
    tables = [(switch, one) for switch, one in zip(switches, outcomes, strict=True) if isinstance(one, Forwarding)]
    notes = [f"switch {outcome}" for outcome in outcomes if isinstance(outcome, str)]
    return drafted(asked, again, tables, notes)


async def _table(switch: Switch) -> Forwarding | str:
    try:
        table = await forwarding_of(switch)
    except NodeError as error:
        return str(error)
    return table if table.ports else f"{switch.key}: it answers, but has no forwarding table (BRIDGE-MIB, Q-BRIDGE-MIB)"
