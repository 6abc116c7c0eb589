"""Was a Raspberry Pi throttled during a repetition? Two looks at its flags tell; other nodes are not asked."""

import asyncio
from collections.abc import Iterable

from rigctl.base.errors import NodeError
from rigctl.probe.facts import throttled_between, throttled_now
from rigctl.runner.nodes import Nodes


class ThrottleWatch:
    """The first and the latest look at every Raspberry Pi of a cell."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._first: dict[str, int | None] = {}
        self._latest: dict[str, int | None] = {}

    async def look(self, names: Iterable[str]) -> None:
        """Look at the Pis among `names`, side by side; one that does not answer stays unknown."""
        pis = [name for name in names if self._nodes.is_pi(name)]
        flags = await asyncio.gather(*(self._flags(name) for name in pis))
        for name, value in zip(pis, flags, strict=True):
            self._first.setdefault(name, value)
            self._latest[name] = value

    def throttled(self, name: str) -> bool | None:
        """Between the two looks; `None` where the node is no Pi, or did not say."""
        return throttled_between(self._first.get(name), self._latest.get(name))

    async def _flags(self, name: str) -> int | None:
        try:
            return await throttled_now(self._nodes.shell(name))
        except NodeError:
            return None
