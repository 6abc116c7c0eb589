"""Contrast of colours, and the nearest colour that has enough: WCAG 2.2 AA, 1.4.3 (text) and 1.4.11 (graphics)."""

import re
from dataclasses import dataclass
from typing import Final

TEXT: Final = 4.5
GRAPHICS: Final = 3.0
HEX: Final = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Need:
    """`ink` is drawn on `ground` (keys of a theme's colours) and needs this contrast."""

    ink: str
    ground: str
    ratio: float = TEXT


NEEDS: Final = (
    Need("ink", "paper"),
    Need("ink", "panel"),
    Need("soft", "paper"),
    Need("soft", "panel"),
    Need("accent", "paper"),
    Need("accent", "panel"),
    Need("good", "paper"),
    Need("warn", "paper"),
    Need("ceiling", "paper", GRAPHICS),
)


def rgb(colour: str) -> tuple[int, int, int]:
    """Of `#0b62c4` or `#06c`."""
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def luminance(colour: str) -> float:
    """Relative luminance."""
    parts = [part / 255 for part in rgb(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with a `share` of `other`."""
    parts = (round((1 - share) * own + share * its) for own, its in zip(rgb(colour), rgb(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def mended(ink: str, ground: str, ratio: float) -> str:
    """`ink`, as little darker or lighter as gives it that contrast."""
    end = max(("#000000", "#ffffff"), key=lambda edge: contrast(edge, ground))
    tries = (mixed(ink, end, step / 50) for step in range(51))
    return next((colour for colour in tries if contrast(colour, ground) >= ratio), end)
