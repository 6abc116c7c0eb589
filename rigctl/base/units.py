"""Parse and format sizes, rates, times and lists of processors.

Bytes: `K`, `KB`, `KiB` = 1024, `M` = 1024². Rates: `k`, `M`, `G` bit/s are decimal. Times: `ms`, `s`, `m`, `h`.
A number without a unit is in bytes, bit/s or seconds.
"""

import re
import time
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

_LATEST_S: Final = 7_258_118_400.0  # Unix time at which the year 2200 begins
_BYTE_UNITS: Final = {"": 1, "b": 1, "k": 1024, "kb": 1024, "kib": 1024, "m": 1024**2, "mb": 1024**2, "mib": 1024**2}
_RATE_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_TIME_UNITS: Final = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PROCESSORS: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", re.ASCII)
_QUANTITY: Final = re.compile(r"\s*(?P<number>[+-]?\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z/µ]*)\s*", re.ASCII)


class UnitError(ValueError):
    """Raised if a text is no size, rate or time. Its message says what is expected; the caller adds file and line."""


def is_instant(at: float) -> bool:
    """Tell whether a Unix time in s is between the years 1970 and 2200."""
    return 0.0 <= at < _LATEST_S


def local_text(at: float, form: str) -> str:
    """Return a Unix time in s as local time in a strftime format (`datetime` fails for offsets of a day or more)."""
    return time.strftime(form, time.localtime(at))


def _scale(text: str | int | float, units: Mapping[str, float], what: str, use: str, example: str) -> float:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if isinstance(text, str) and match is None:
        raise UnitError(f'{what} "{text}": expected a number with a unit, as in {example}')
    number, unit = (float(match["number"]), match["unit"]) if match else (float(text), "")
    if unit.lower() not in units:
        raise UnitError(f'{what} "{text}": unknown unit "{unit}". Use {use}, as in {example}')
    if number < 0:
        raise UnitError(f'{what} "{text}": must not be negative')
    return number * units[unit.lower()]


def parse_bytes(text: str | int | float, what: str = "size") -> int:
    """Return bytes from `64K`, `200 KB`, `1.5M` or a number. Raise `UnitError`, also for a fraction of a byte."""
    match, example = _QUANTITY.fullmatch(str(text)), "64K"
    if match is not None and match["unit"].lower() in {"g", "gb", "gib"}:  # gigabytes have no unit here
        example = f"{float(match['number']) * 1024:.12g}M"
    size = _scale(text, _BYTE_UNITS, what, "K or M", example)
    if size != int(size):
        raise UnitError(f'{what} "{text}": not a whole number of bytes')
    return int(size)


def parse_rate(text: str | int | float, what: str = "rate") -> int:
    """Return bit/s from `1G`, `100M`, `8 Gbit/s`, `984395kbit` (decimal) or a number. Raise `UnitError`."""
    plain = re.sub(r"(?i)(bit/s|bits/s|bps|bit)\s*$", "", text) if isinstance(text, str) else text
    return round(_scale(plain, _RATE_UNITS, what, "k, M or G (bit/s)", "1G"))


def parse_duration(text: str | int | float, what: str = "duration") -> float:
    """Return seconds from `5s`, `500ms`, `30m`, `1h` or a number. Raise `UnitError`."""
    return _scale(text, _TIME_UNITS, what, "ms, s, m or h", "10s")


def format_bytes(size: int) -> str:
    """Return bytes as text that `parse_bytes` reads: `64K` for 65536, `1000` for 1000."""
    for unit, factor in (("M", 1024**2), ("K", 1024)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def format_rate(rate_bps: float) -> str:
    """Return a rate in bit/s as text: `1 Gbit/s`, `941.5 Mbit/s`, `8 kbit/s`."""
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate_bps >= factor:
            return f"{rate_bps / factor:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"


def format_duration(duration_s: float) -> str:
    """Return a time in s as text: `7m 00s`, `1h 05m`, `12.5 s`, `250 ms`, `0.2 ms`."""
    if duration_s < 0.01:
        return f"{duration_s * 1000:.3g} ms"
    if duration_s < 1:
        return f"{duration_s * 1000:.0f} ms"
    if duration_s < 60:
        return f"{duration_s:.3g} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"


def digits_text(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits and without an exponent: `0.0014`, `12`, `1234`."""
    shown = float(f"{value:.{digits}g}")
    return f"{value:.0f}" if abs(shown) >= 10**digits else f"{shown:.12f}".rstrip("0").rstrip(".")


def kib_text(size: int | None) -> str:
    """Return bytes in KiB without the unit: `64`, `62.5`; `–` for None."""
    return "–" if size is None else f"{size / 1024:.5g}"


def size_words(size: int) -> str:
    """Return bytes with a unit: `64 KiB`, `1 MiB`, `1000 bytes`."""
    for unit, factor in (("MiB", 1024**2), ("KiB", 1024)):
        if size and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size / 1024:.4g} KiB" if size >= 10240 else f"{size} bytes"


def parse_processors(text: str) -> frozenset[int]:
    """Return the processor numbers in a list of the kernel such as `0-3,6`. Raise `ValueError` for an invalid list."""
    found: set[int] = set()
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = _PROCESSORS.fullmatch(part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(part)
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def mask_processors(mask: str) -> frozenset[int]:
    """Return the processor numbers in a mask of the kernel such as `ff,00000003`. Raise `ValueError` if invalid."""
    number = int(mask.replace(",", "") or "0", 16)
    return frozenset(bit for bit in range(number.bit_length()) if number >> bit & 1)


def processors_text(numbers: Iterable[int]) -> str:
    """Return numbers of processors as a list in the kernel's format: `0-3,6`."""
    runs = groupby(enumerate(sorted(set(numbers))), lambda each: each[1] - each[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in ends)
