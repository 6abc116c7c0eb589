"""Numbers and names as tables and sentences print them. An unknown value is printed as an en dash, never as 0."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rigctl.base.units import digits_text, format_rate
from rigctl.limits.ceilings import percent
from rigctl.records import Cell, Pair, settings_words, several_sets
from rigctl.settings import SETTINGS

if TYPE_CHECKING:
    from rigctl.results.summary import Estimate

UNKNOWN: Final = "–"
MOST_NAMED: Final = 3  # most pairs, nodes or changes that a sentence names; the rest are counted
FEW_SHARE: Final = 1e-4  # a share below this is printed as `1 in 1,200,000`, not in percent
MOST_LISTED: Final = 4  # most pairs whose values are listed; for more pairs, only their range and total are printed
PairNaming: TypeAlias = Literal["", "count", "names"]
_ITEM: Final = re.compile(r"^(\d*)([-+=.)])(?= |$|=)")
"""Matches the start of a line that Markdown reads as a list item, or as the underline of a heading."""
_MOST_DECIMALS: Final = 12
_ETHERNET: Final = {10**7: "10-megabit", 10**8: "100-megabit", 10**9: "gigabit", 25 * 10**8: "2.5-gigabit"} | {
    gigabits * 10**9: f"{gigabits}-gigabit" for gigabits in (5, 10, 25, 40, 100)
}
_MOST_TESTS: Final = 10  # most tests that a sentence names; the rest are counted


def decimals(mbps: float) -> int:
    """Return the number of decimals of a rate: 2 below 10 Mbit/s, 1 below 100 Mbit/s, else 0."""
    return 0 if mbps >= 100 else 1 if mbps >= 10 else 2


def rate_text(mbps: float | None, ceiling_mbps: float | None = None) -> str:
    """Return a rate in Mbit/s as tables print it, never rounded to more than the ceiling; `–` for None."""
    if mbps is None:
        return UNKNOWN
    digits = decimals(mbps)
    if digits == 0 and ceiling_mbps is not None and round(mbps) > ceiling_mbps:
        digits = 1
    return f"{mbps:.{digits}f}"


def ceiling_text(mbps: float | None) -> str:
    return UNKNOWN if mbps is None else f"{mbps:.1f}"


def percent_text(share: float | None) -> str:
    """Return a share in percent without the sign, as `99.9`; `–` for None. Bounds apply to this rounded value."""
    return UNKNOWN if share is None else f"{percent(share):.1f}"


def link_name(rate_bps: int) -> str:
    """Return a link's name by its rate in bit/s: `gigabit Ethernet`, or `a link of 1.5 Gbit/s`."""
    return f"{_ETHERNET[rate_bps]} Ethernet" if rate_bps in _ETHERNET else f"a link of {format_rate(rate_bps)}"


def whole_decimals(pct: float) -> int:
    """Return how many decimals keep a percentage below 100 from being printed as 100: 1 for 99.66."""
    return next(
        (decimals for decimals in range(_MOST_DECIMALS) if not round(pct, decimals) >= 100 > pct), _MOST_DECIMALS
    )


def pct_text(pct: float, digits: int = 2) -> str:
    """Return a percentage with `digits` significant digits: `0.014`, `12`, `99.7`; `100` only if nothing is missing."""
    if float(f"{pct:.{digits}g}") >= 100:
        return f"{pct:.{whole_decimals(pct)}f}"
    return digits_text(pct, digits)


def few_text(share: float) -> str:
    """Return a share above 0: `0.014 %`, `99.7 %`, or `1 in 1,200,000` for a very small share."""
    return f"{pct_text(100 * share)} %" if share >= FEW_SHARE else f"1 in {float(f'{1 / share:.2g}'):,.0f}"


def part_text(share: float, parts: str = "segments") -> str:
    """Return a share in words: `0.014 % of the segments` or `1 in 1,200,000 segments`."""
    return f"{few_text(share)} {parts}" if share < FEW_SHARE else f"{few_text(share)} of the {parts}"


def lost_text(share: float, parts: str = "segments") -> str:
    """Return a share of lost parts: `0.014 % of the segments were lost`, `1 in 1,200,000 segments was lost`."""
    return f"{part_text(share, parts)} {'was' if share < FEW_SHARE else 'were'} lost"


def count_text(count: float | None) -> str:
    """Return a count, or a mean of counts, as text: `135`, `45.3`; `–` for None."""
    if count is None:
        return UNKNOWN
    return f"{count:.0f}" if count == round(count) or count >= 1000 else f"{count:.1f}"


def pairs_text(pairs: Sequence[Pair]) -> str:
    """Return the names of pairs: `n1 → n2, n3 → n4, n5 → n6 and 2 more`."""
    return some([f"{pair.source} → {pair.destination}" for pair in pairs], last=", ")


def how_pairs_differ(cells: Iterable[Cell]) -> PairNaming:
    """Return what tells the pairs of tests apart: their `names`, only their `count`, or nothing (empty)."""
    every = list(cells)
    return "names" if several_sets(every) else "count" if len({len(cell.pairs) for cell in every}) > 1 else ""


def settings_text(cell: Cell, pairs: PairNaming = "") -> str:
    """Return the settings of a test: `window 64 KiB, MSS 1460, 5 flows`. `pairs` adds its pairs (`names`, `count`)."""
    return ", ".join(settings_words(cell, pairs).values())


def texts_that_vary(cells: Sequence[Cell], pairs: PairNaming = "") -> list[str]:
    """Return for each test the settings in which the tests differ; empty texts if they do not differ."""
    each = [settings_words(cell, pairs) for cell in cells]
    names = dict.fromkeys(name for words in each for name in words)
    varied = [name for name in names if len({words.get(name) for words in each}) > 1]
    known = {setting.noun or setting.name: setting for setting in SETTINGS.values()}

    def word(cell: Cell, own: Mapping[str, str], name: str) -> str:
        """Return the words for a setting; empty if this kind of test does not have the setting."""
        setting = known.get(name)
        if name in own or setting is None or setting.phrase is None or not setting.takes(cell.kind):
            return own.get(name, "")
        return f"default {name}" if setting.unset is None else str(setting.unset)

    return [
        ", ".join(filter(None, [word(cell, own, name) for name in varied]))
        for cell, own in zip(cells, each, strict=True)
    ]


def join_list(words: Sequence[str]) -> str:
    """Return words as a list in English: `a`, `a and b` or `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def span(texts: Iterable[str]) -> str:
    """Return a range: `95–99`, or one text if both ends print the same."""
    return "–".join(dict.fromkeys(texts))


def some(words: Sequence[str], most: int = MOST_NAMED, more: str = "more", last: str = " and ") -> str:
    """Return up to `most` of `words` and how many more there are: `a, b, c and 4 more`. `last` joins the last word."""
    if len(words) > most:
        return join_list([*words[:most], f"{len(words) - most} {more}"])
    return last.join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def tests_named(tests: Sequence[str], which: str) -> str:
    """Return the names of up to 3 tests, or the number and the first names: `7 tests, most in a, b and c`."""
    named = join_list(tests[:MOST_NAMED])
    return named if len(tests) <= MOST_NAMED else f"{len(tests)} tests, {which} {named}"


def all_tests(count: int) -> str:
    """Return the number of all tests in words: `Both tests` or `All 7 tests`."""
    return "Both tests" if count == 2 else f"All {count} tests"


def plural(count: int, one: str, several: str | None = None) -> str:
    """Return a count with its noun in singular or plural: `1 test`, `7 tests`."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def lower_first(text: str) -> str:
    """Return `text` with a small first letter, for use within a sentence; an abbreviation such as MSS is kept."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def upper_first(text: str) -> str:
    """Return `text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def end_sentence(text: str) -> str:
    """Return `text` with one full stop at its end, unless it ends with a question or exclamation mark."""
    return text if text.endswith(("?", "!")) else f"{text.rstrip('.')}."


def escape_markdown(text: str) -> str:
    """Return `text` in one line, with the characters escaped that Markdown reads as markup."""
    plain = "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#~&" else sign for sign in " ".join(text.split()))
    return _ITEM.sub(r"\1\\\2", plain)


def numbers_text(numbers: Sequence[int]) -> str:
    """Return the numbers of tests in words: `test 3`, `tests 3 and 4` or `tests 1, 2, … and 5 more`."""
    return f"test{'s' if len(numbers) > 1 else ''} {some([str(number) for number in numbers], _MOST_TESTS)}"


def time_text(time_us: float | None) -> str:
    """Return a time with its unit: `48.9 µs`, `1.21 ms` or `2.02 s`; `–` for None."""
    if time_us is None:
        return UNKNOWN
    if time_us >= 1e6:
        return f"{digits_text(time_us / 1e6)} s"
    return f"{digits_text(time_us / 1e3)} ms" if time_us >= 1e3 else f"{digits_text(time_us)} µs"


def mean_mbps(estimate: "Estimate | None") -> float | None:
    """Return the mean of an estimate in Mbit/s, or None if there is no estimate."""
    return None if estimate is None else estimate.mean


def rate_decimals(rates: "Iterable[tuple[Estimate | None, float | None]]") -> int:
    """Return the number of decimals of a goodput column: enough for its smallest rate, and to stay below ceilings."""
    known = [(rate.mean, ceiling_mbps) for rate, ceiling_mbps in rates if rate is not None]
    smallest = min((mbps for mbps, _ in known if mbps), default=1000.0)
    above = any(ceiling_mbps is not None and mbps <= ceiling_mbps < round(mbps) for mbps, ceiling_mbps in known)
    return max(decimals(smallest), int(above))
