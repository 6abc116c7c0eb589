"""Numbers and names as the tables and sentences print them. Unknown is an en dash, never 0."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from rigctl.limits.ceilings import percent
from rigctl.records import Cell, Pair, settings_words, several_sets
from rigctl.settings import SETTINGS

UNKNOWN: Final = "–"
_MOST_DECIMALS: Final = 3
MOST_NAMED: Final = 3
"""Pairs, nodes, changes that a sentence names; more are counted."""
FEW_SHARE: Final = 1e-4
"""A smaller share is printed as one of many."""
MOST_LISTED: Final = 4
"""More pairs than this are shown as their range, beside their total."""
PairNaming: TypeAlias = Literal["", "count", "names"]
_ITEM: Final = re.compile(r"^(\d*)([-+=.)])(?= |$|=)")
"""How an item of a list, or the line below a heading, begins."""
_MOST_TESTS: Final = 10
"""More tests are counted, not named."""


def decimals(mbps: float) -> int:
    """Return how many decimals a rate is printed with: from 100 Mbit/s on none, which is its spread."""
    return 0 if mbps >= 100 else 1 if mbps >= 10 else 2


def rate_text(mbps: float | None, ceiling_mbps: float | None = None) -> str:
    """Return Mbit/s as tables print it; never rounded to above the ceiling."""
    if mbps is None:
        return UNKNOWN
    digits = decimals(mbps)
    if digits == 0 and ceiling_mbps is not None and round(mbps) > ceiling_mbps:
        digits = 1
    return f"{mbps:.{digits}f}"


def ceiling_text(mbps: float | None) -> str:
    return UNKNOWN if mbps is None else f"{mbps:.1f}"


def percent_text(share: float | None) -> str:
    """Return a share in percent without the sign: `99.9`, rounded as bounds apply to it."""
    return UNKNOWN if share is None else f"{percent(share):.1f}"


def few_text(share: float) -> str:
    """Return a small share of many, above 0: `0.014 %`, of very few `1 in 1,200,000`."""
    return f"{100 * share:.2g} %" if share >= FEW_SHARE else f"1 in {float(f'{1 / share:.2g}'):,.0f}"


def segments_text(share: float) -> str:
    """Return `0.014 % of the segments` or `1 in 1,200,000 segments`."""
    return f"{few_text(share)} segments" if share < FEW_SHARE else f"{few_text(share)} of the segments"


def count_text(count: float | None) -> str:
    """Return a count, or the mean of several: `135`, `45.3`."""
    if count is None:
        return UNKNOWN
    return f"{count:.0f}" if count == round(count) or count >= 1000 else f"{count:.1f}"


def pairs_text(pairs: Sequence[Pair]) -> str:
    """Return pairs by name: `n1 → n2, n3 → n4, n5 → n6 and 2 more`."""
    return some([f"{pair.source} → {pair.destination}" for pair in pairs], last=", ")


def how_pairs_differ(cells: Iterable[Cell]) -> PairNaming:
    """Return how tests differ in their pairs: `names`, `count`, or nothing."""
    every = list(cells)
    return "names" if several_sets(every) else "count" if len({len(cell.pairs) for cell in every}) > 1 else ""


def settings_text(cell: Cell, pairs: PairNaming = "") -> str:
    """Return what a cell asks for: `window 64 KiB, MSS 1460, 5 flows`; with `pairs` its pairs too."""
    return ", ".join(settings_words(cell, pairs).values())


def texts_that_vary(cells: Sequence[Cell], pairs: PairNaming = "") -> list[str]:
    """Return the settings of each cell in which `cells` differ; empty texts if they differ in none."""
    each = [settings_words(cell, pairs) for cell in cells]
    names = dict.fromkeys(name for words in each for name in words)
    varied = [name for name in names if len({words.get(name) for words in each}) > 1]
    known = {setting.noun or setting.name: setting for setting in SETTINGS.values()}

    def word(cell: Cell, own: Mapping[str, str], name: str) -> str:
        """Return the word for a setting; empty for one that the kind of this test does not have."""
        setting = known.get(name)
        if name in own or setting is None or setting.phrase is None or not setting.takes(cell.kind):
            return own.get(name, "")
        return f"default {name}" if setting.unset is None else str(setting.unset)

    return [
        ", ".join(filter(None, [word(cell, own, name) for name in varied]))
        for cell, own in zip(cells, each, strict=True)
    ]


def join_list(words: Sequence[str]) -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def span(texts: Iterable[str]) -> str:
    """Return `95–99` for two ends, or one text where both print the same."""
    return "–".join(dict.fromkeys(texts))


def some(words: Sequence[str], most: int = MOST_NAMED, more: str = "more", last: str = " and ") -> str:
    """Return `most` of `words` and how many more there are: `a, b, c and 4 more`; `last` joins the last of few."""
    if len(words) > most:
        return join_list([*words[:most], f"{len(words) - most} {more}"])
    return last.join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def tests_named(tests: Sequence[str], which: str) -> str:
    """Return the names of few tests; of more their number and the first ones: `7 tests, most in a, b and c`."""
    named = join_list(tests[:MOST_NAMED])
    return named if len(tests) <= MOST_NAMED else f"{len(tests)} tests, {which} {named}"


def all_tests(count: int) -> str:
    """Return `Both tests` or `All 7 tests`."""
    return "Both tests" if count == 2 else f"All {count} tests"


def plural(count: int, one: str, several: str | None = None) -> str:
    """Return `1 test` or `7 tests`."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def lower_first(text: str) -> str:
    """Return `text` with a small first letter, to stand within a sentence; an abbreviation, as MSS, stays."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def upper_first(text: str) -> str:
    """Return `text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return `text` with one full stop at its end, or the mark that it ends with."""
    return text if text.endswith(("?", "!")) else f"{text.rstrip('.')}."


def escape_markdown(text: str) -> str:
    """Return `text` without Markdown's markup."""
    one_line = " ".join(text.split())
    plain = "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#~&" else sign for sign in one_line)
    return _ITEM.sub(r"\1\\\2", plain)


def numbers_text(numbers: Sequence[int]) -> str:
    """Return `test 3`, `tests 3 and 4` or `tests 1, 2, … and 5 more`."""
    return f"test{'s' if len(numbers) > 1 else ''} {some([str(number) for number in numbers], _MOST_TESTS)}"


def time_text(time_us: float | None) -> str:
    """Return `48.9 µs` or `1.21 ms`."""
    if time_us is None:
        return UNKNOWN
    return f"{time_us / 1000:.3g} ms" if time_us >= 1000 else f"{time_us:.3g} µs"


class Rate(Protocol):
    """Anything with a mean in Mbit/s."""

    @property
    def mean(self) -> float: ...


def mean(estimate: Rate | None) -> float | None:
    """Return the mean in Mbit/s, or None if there is no estimate."""
    return None if estimate is None else estimate.mean


def rate_decimals(rates: Iterable[tuple[Rate | None, float | None]]) -> int:
    """Return the decimals of a goodput column: enough for its smallest rate, and no rate rounds above its ceiling."""
    known = [(rate.mean, ceiling_mbps) for rate, ceiling_mbps in rates if rate is not None]
    smallest = min((mbps for mbps, _ in known if mbps), default=1000.0)
    above = any(ceiling_mbps is not None and mbps <= ceiling_mbps < round(mbps) for mbps, ceiling_mbps in known)
    return max(decimals(smallest), int(above))
