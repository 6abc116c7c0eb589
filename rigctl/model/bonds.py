"""Compute what a bond of several cards carries: one flow, several flows between two nodes, and all flows of the node.

Source: the kernel's Documentation/networking/bonding.rst ("mode", "xmit_hash_policy"). A node chooses the card of what
it sends by mode and hash. The switch chooses the card of what the node receives, by a hash that no host knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Spread: TypeAlias = Literal["one", "flows", "packets"]
"""The unit that may take another card: nothing between two nodes, each flow, or each packet."""
ONE_CARD: Final = frozenset({"active-backup", "broadcast"})
"""Modes in which all cards together carry no more than one card."""
_CHOSEN: Final = frozenset({"balance-tlb", "balance-alb"})
"""Modes that assign a card to each peer, also for what the node receives."""
_HASHED: Final = frozenset({"balance-xor", "802.3ad"})
_OF_PORTS: Final = frozenset({"layer3+4", "encap3+4"})
"""Hashes over port numbers. The other hashes, of addresses, give all flows between two nodes the same card."""


@dataclass(frozen=True, slots=True)
class Bond:
    """A bond of `cards` cards with a link, the fastest of `card_bps`. None: unknown, as mode and hash of other drivers.

    `total_bps` is the sum of all cards that carry frames at the same time.
    """

    cards: int
    card_bps: int | None
    total_bps: int | None
    mode: str | None = None
    policy: str | None = None

    def spread(self, *, sends: bool) -> Spread:
        """Return what may take another card in frames that the node sends, or receives."""
        if self.cards < 2 or self.mode in ONE_CARD | _CHOSEN:
            return "one"
        if self.mode == "balance-rr":
            return "packets"
        return "flows" if not sends or self.mode not in _HASHED or self.policy in _OF_PORTS else "one"

    def bound_bps(self, flows: int, *, sends: bool) -> int | None:
        """Return the highest rate of `flows` flows between this node and another one, in bit/s; None if unknown."""
        spread = self.spread(sends=sends)
        if spread == "packets" or self.card_bps is None or self.total_bps is None:
            return self.total_bps
        return self.card_bps if spread == "one" else min(self.total_bps, flows * self.card_bps)

    @property
    def is_plain(self) -> bool:
        """Tell whether the rate is the same for any number of flows, so that one rate describes the link."""
        return self.bound_bps(1, sends=True) == self.bound_bps(1, sends=False) == self.total_bps

    @property
    def name(self) -> str:
        """Return mode and hash, as in `802.3ad, layer2+3`; the hash only where it decides."""
        words = (self.mode or "mode unknown", self.policy if self.mode in _HASHED else None)
        return ", ".join(word for word in words if word)

    def as_fact(self) -> dict[str, Any]:
        """Return the bond as the host fact `bond`, without unknown values."""
        values = {"mode": self.mode, "hash": self.policy if self.mode in _HASHED else None, "cards": self.cards}
        values |= {"card_bps": self.card_bps, "total_bps": self.total_bps}
        return {key: value for key, value in values.items() if value is not None}


def bond_of_facts(facts: Mapping[str, Any]) -> Bond | None:
    """Return the bond that a node's host facts describe; None if its data interface is none."""
    fact = facts.get("bond") or {}
    if not isinstance(fact.get("cards"), int):
        return None
    rates = [value if isinstance(value := fact.get(key), int) else None for key in ("card_bps", "total_bps")]
    names = [value if isinstance(value := fact.get(key), str) else None for key in ("mode", "hash")]
    return Bond(fact["cards"], rates[0], rates[1], names[0], names[1])
