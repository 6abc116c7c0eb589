"""The limits: what can limit a test. One record of `Limit` has what all rooms know of a limit.

A new limit needs a record here, a rule in `rigctl.limits.rules`, sentences in `rigctl.findings.limits` and a row in
docs/reference/results.md; a test names what is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Something that can limit a test."""

    word: str  # the limit in columns and in `expect`
    phrase: str  # in headlines: `limited by the window`
    meaning: str  # what the word does not say
    is_fault: bool = False  # True: something in the rig is to be mended
    is_goal: bool = False  # True: the test achieved what its link or its settings allow, so there is no remedy
    is_full: bool = False  # True: the link itself is full
    of_product: bool = False  # True: the path between the hosts is the limit, so a claim on a product is possible
    end: str | None = None  # the end of a flow whose host is the limit: `sender` or `receiver`


AT_LINE_RATE: Final = Limit(
    word="line-rate",
    phrase="at line rate",
    meaning="the link is full",
    is_goal=True,
    is_full=True,
    of_product=True,
)
BY_SHARED_LINK: Final = Limit(
    word="shared-link",
    phrase="limited by a shared link",
    meaning="a link that other pairs use too is full",
)
BY_OTHER_TRAFFIC: Final = Limit(
    word="other-traffic",
    phrase="limited by other traffic",
    meaning="traffic outside the run on the path",
    is_fault=True,
)
BY_PAUSE: Final = Limit(
    word="paused",
    phrase="stopped by pause frames",
    meaning="pause frames of the switch or of another port stopped the sender (flow control)",
    of_product=True,
)
BY_PATH: Final = Limit(
    word="path",
    phrase="limited by the path",
    meaning="a shaper or policer on the way",
    is_fault=True,
    of_product=True,
)
BY_WINDOW: Final = Limit(
    word="window",
    phrase="limited by the window",
    meaning="the window of the receiver or the buffer of the sender",
)
BY_LOSSES: Final = Limit(
    word="loss",
    phrase="limited by losses",
    meaning="lost segments or datagrams",
    of_product=True,
)
BY_SENDER: Final = Limit(
    word="sender",
    phrase="limited by the sender",
    meaning="its processors or CPU quota",
    is_fault=True,
    end="sender",
)
BY_RECEIVER: Final = Limit(
    word="receiver",
    phrase="limited by the receiver",
    meaning="its processors, CPU quota or socket buffer",
    is_fault=True,
    end="receiver",
)
BY_MACHINE: Final = Limit(
    word="machine",
    phrase="limited by processors",
    meaning="the processors that all nodes of a virtual rig share",
)
BY_DISK: Final = Limit(
    word="disk",
    phrase="limited by the disk",
    meaning="reading or writing files",
    is_fault=True,
)
AS_REQUESTED: Final = Limit(
    word="rate",
    phrase="as requested",
    meaning="the requested rate was achieved",
    is_goal=True,
)
BY_MTU: Final = Limit(
    word="mtu",
    phrase="limited by the mtu",
    meaning="frames smaller than the links allow",
    is_fault=True,
)
UNKNOWN_LIMIT: Final = Limit(
    word="unknown",
    phrase="",
    meaning="no rule applies, or evidence is missing",
)

LIMITS: Final[Mapping[str, Limit]] = {
    limit.word: limit
    for limit in (
        AT_LINE_RATE,
        BY_SHARED_LINK,
        BY_OTHER_TRAFFIC,
        BY_PAUSE,
        BY_PATH,
        BY_WINDOW,
        BY_LOSSES,
        BY_SENDER,
        BY_RECEIVER,
        BY_MACHINE,
        BY_DISK,
        AS_REQUESTED,
        BY_MTU,
        UNKNOWN_LIMIT,
    )
}
"""All limits by their word, in the order in which pages explain them."""
