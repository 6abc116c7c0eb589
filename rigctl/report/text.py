"""Numbers and names as the tables and sentences print them. Unknown is an en dash, never 0."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from rigctl.engines import AGENT
from rigctl.records import Cell, Direction, Pair, several_sets
from rigctl.units import format_bytes, format_rate

UNKNOWN: Final = "–"
MOST_PAIRS: Final = 3
"""Of a test, by name; more are counted."""
Told: TypeAlias = Literal["", "count", "names"]


class Rate(Protocol):
    """What has a mean in Mbit/s."""

    @property
    def mean(self) -> float: ...


def rate_text(mbps: float | None, ceiling_mbps: float | None = None) -> str:
    """Mbit/s: whole numbers from 100 on, as the samples' spread allows; not rounded to above the ceiling."""
    if mbps is None:
        return UNKNOWN
    digits = 0 if mbps >= 100 else 1 if mbps >= 10 else 2
    if digits == 0 and ceiling_mbps is not None and round(mbps) > ceiling_mbps:
        digits = 1
    return f"{mbps:.{digits}f}"


def ceiling_text(mbps: float | None) -> str:
    return UNKNOWN if mbps is None else f"{mbps:.1f}"


def percent_text(share: float | None) -> str:
    """A share as a percentage without its sign: `99.9`."""
    return UNKNOWN if share is None else f"{100 * share:.1f}"


def few_text(share: float) -> str:
    """A small share of many: `0.014 %`, of very few `1 in 1,200,000`. `share` above 0."""
    return f"{100 * share:.2g} %" if share >= 1e-4 else f"1 in {float(f'{1 / share:.2g}'):,.0f}"


def count_text(count: float | None) -> str:
    """A count, or the mean of several: `135`, `45.3`."""
    if count is None:
        return UNKNOWN
    return f"{count:.0f}" if count == round(count) or count >= 1000 else f"{count:.1f}"


def kib_text(size: int | None) -> str:
    """Bytes in KiB: `64`, `62.5`."""
    return UNKNOWN if size is None else f"{size / 1024:.5g}"


def size_words(size: int) -> str:
    """Bytes in words: `64 KiB`, `1 MiB`, `1000 bytes`."""
    short = format_bytes(size)
    if short.endswith("K"):
        return f"{short[:-1]} KiB"
    return (
        f"{short[:-1]} MiB" if short.endswith("M") else f"{size / 1024:.4g} KiB" if size >= 10240 else f"{size} bytes"
    )


def pairs_text(pairs: Sequence[Pair]) -> str:
    """Pairs by name, at most `MOST_PAIRS`: `n1 → n2, n3 → n4 and 2 more`."""
    names = [f"{pair.source} → {pair.destination}" for pair in pairs]
    more = len(names) - MOST_PAIRS
    return ", ".join(names[:MOST_PAIRS]) + (f" and {more} more" if more > 0 else "")


def told_apart(cells: Iterable[Cell]) -> Told:
    """How tests are told apart by their pairs: by name where each has others, by their number, or not at all."""
    made = list(cells)
    return "names" if several_sets(made) else "count" if len({len(cell.pairs) for cell in made}) > 1 else ""


def settings_text(cell: Cell, pairs: Told = "") -> str:
    """What a cell asks for: `window 64 KiB, MSS 1460, 5 flows`; with `pairs` which they are, or how many, too."""
    words = [] if cell.condition is None else [cell.condition]
    if pairs:
        words.append(pairs_text(cell.pairs) if pairs == "names" else plural(len(cell.pairs), "pair"))
    if cell.window.total_bytes is not None:
        words.append(f"total window {size_words(cell.window.total_bytes)}")
    elif cell.window.bytes is not None:
        words.append(f"window {size_words(cell.window.bytes)}")
    if cell.tcp.mss is not None:
        words.append(f"MSS {cell.tcp.mss}")
    if cell.transport == "udp" and cell.message_bytes is not None:
        words.append(f"datagrams of {cell.message_bytes} bytes")
    rate = cell.datagrams.rate
    if rate is not None:
        words.append(f"rate {format_rate(rate) if isinstance(rate, int) else rate}")
    if cell.datagrams.burst is not None:
        words.append(f"burst {cell.datagrams.burst}")
    words.append("1 flow" if cell.parallel == 1 else f"{cell.parallel} flows")
    if cell.tcp.congestion is not None:
        words.append(cell.tcp.congestion)
    if cell.tcp.nodelay is not None:
        words.append("nodelay" if cell.tcp.nodelay else "no nodelay")
    flags = (("zerocopy", cell.copying.zerocopy), ("copy", cell.copying.copy))
    words += [name if on else f"no {name}" for name, on in flags if on is not None]
    if cell.direction is not Direction.FORWARD:
        words.append("both directions" if cell.direction is Direction.BOTH else "reverse")
    if cell.engine != AGENT:
        words.append(cell.engine)
    if cell.latency_ms is not None:
        words.append(f"probes every {cell.latency_ms} ms")
    return ", ".join(words)


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def plural(count: int, one: str, several: str | None = None) -> str:
    """`1 test`, `7 tests`."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def escaped(text: str) -> str:
    """`text` with what Markdown would take as markup made plain."""
    one_line = " ".join(text.split())
    plain = "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#~&" else sign for sign in one_line)
    return _ITEM.sub(r"\1\\\2", plain)


_ITEM: Final = re.compile(r"^(\d*)([-+=.)])(?= |$|=)")
"""How an item of a list, or the line below a heading, begins."""


MOST_TESTS: Final = 10
"""More tests are counted, not named."""


def numbers_text(numbers: Sequence[int]) -> str:
    """`test 3`, `tests 3 and 4`, `tests 1, 2, … and 5 more`."""
    named = [str(number) for number in numbers]
    if len(named) > MOST_TESTS:
        named = [*named[:MOST_TESTS], f"{len(named) - MOST_TESTS} more"]
    return f"test{'s' if len(numbers) > 1 else ''} {listed(named)}"


def time_text(time_us: float | None) -> str:
    """`48.9 µs`, `1.21 ms`."""
    if time_us is None:
        return UNKNOWN
    return f"{time_us / 1000:.3g} ms" if time_us >= 1000 else f"{time_us:.3g} µs"


def rate_decimals(rates: Iterable[tuple[Rate | None, float | None]]) -> int:
    """Decimals of a column of goodput, each with its ceiling: by the smallest rate, none rounded above its ceiling."""
    known = [(rate.mean, ceiling_mbps) for rate, ceiling_mbps in rates if rate is not None]
    smallest = min((mbps for mbps, _ in known if mbps), default=1000.0)
    decimals = 0 if smallest >= 100 else 1 if smallest >= 10 else 2
    above = (ceiling_mbps is not None and mbps <= ceiling_mbps < round(mbps) for mbps, ceiling_mbps in known)
    return max(decimals, 1) if any(above) else decimals
