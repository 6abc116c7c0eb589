"""Colours of a theme: the default ones, their contrast (WCAG 2.2 AA, 1.4.3 and 1.4.11), and themes as CSS."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.report.charts.colours import LIGHT as REPORT

HEX: Final = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})", re.ASCII)
TEXT_RATIO: Final = 4.5
GRAPHICS_RATIO: Final = 3.0
NEEDS: Final = (
    ("ink", "paper", TEXT_RATIO),
    ("ink", "panel", TEXT_RATIO),
    ("soft", "paper", TEXT_RATIO),
    ("soft", "panel", TEXT_RATIO),
    ("accent", "paper", TEXT_RATIO),
    ("accent", "panel", TEXT_RATIO),
    ("good", "paper", TEXT_RATIO),
    ("warn", "paper", TEXT_RATIO),
    ("ceiling", "paper", GRAPHICS_RATIO),
)
"""The least contrast of a colour on a ground, both keys of a palette."""
_GENERIC: Final = ("sans-serif", "serif", "monospace", "system-ui", "-apple-system")


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by name, and those of the pairs in charts."""

    colours: Mapping[str, str]
    series: tuple[str, ...]

    def __getitem__(self, name: str) -> str:
        return self.colours[name]


LIGHT: Final = Palette(
    {
        "paper": "#ffffff", "panel": "#f6f7f9", "ink": "#16191d", "soft": "#5b6470", "line": "#dfe3e8",
        "accent": "#0b62c4", "good": "#00736b", "warn": "#a14400", "ceiling": "#6b7480",
    },
    tuple(REPORT.colours[f"s{number}"] for number in range(1, 7)),
)  # fmt: skip
DARK: Final = Palette(
    {
        "paper": "#111418", "panel": "#1a1f25", "ink": "#e8ebef", "soft": "#9aa4b0", "line": "#2c333b",
        "accent": "#6db3ff", "good": "#4fd6c4", "warn": "#ffb066", "ceiling": "#8b95a1",
    },
    ("#5aa9ff", "#b35603", "#24faa4", "#d78cb7", "#e3db3a", "#e3275d"),
)  # fmt: skip
"""The series colours of reports/templates/report.css, which people with colour blindness can tell apart."""


def rgb(colour: str) -> tuple[int, int, int]:
    """Return the parts of `#0b62c4` or `#06c`, each 0 to 255."""
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in rgb(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def mixed(colour: str, other: str, share: float) -> str:
    """Return `colour` with a `share` of `other`."""
    parts = (round((1 - share) * own + share * its) for own, its in zip(rgb(colour), rgb(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def legible(ink: str, ground: str, ratio: float) -> str:
    """Return the colour nearest to `ink` that has the contrast `ratio` on `ground`."""
    end = max(("#000000", "#ffffff"), key=lambda edge: contrast(edge, ground))
    tries = (mixed(ink, end, step / 50) for step in range(51))
    return next((colour for colour in tries if contrast(colour, ground) >= ratio), end)


def families(fonts: Sequence[str]) -> str:
    """Return fonts as the value of CSS's font-family."""
    return ", ".join(name if name in _GENERIC else f'"{name}"' for name in fonts)


def host_style(palette: Palette, text: Sequence[str], headings: Sequence[str]) -> str:
    """Return a theme as custom properties of a fragment's host element.

    Every property that the shop's page could hand down is set back. What is important inside a shadow root wins over
    what is important outside.
    """
    own = "".join(f" --{name}: {value} !important;" for name, value in _tokens(palette))
    fonts = f" --text: {families(text)} !important; --headings: {families(headings)} !important;"
    return f":host {{ all: initial !important;{own}{fonts} }}\n"


def page_style(light: Palette, dark: Palette, text: Sequence[str], headings: Sequence[str]) -> str:
    """Return a theme as custom properties of a report, after its own style sheet. Printed paper stays white."""
    accents = _declared((name, value) for name, value in _tokens(light) if re.fullmatch("accent|s[1-6]", name))
    return (
        f"@media screen and (prefers-color-scheme: light) {{ :root {{ {_declared(_tokens(light))} }} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_declared(_tokens(dark))} }} }}\n"
        f"@media print {{ :root {{ {accents} }} }}\n"
        f":root {{ --text: {families(text)}; }}\n"
        f"h1, h2, h3, .brand {{ font-family: {families(headings)}; }}\n"
    )


def _declared(tokens: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in tokens)


def _tokens(palette: Palette) -> Iterator[tuple[str, str]]:
    yield from palette.colours.items()
    yield "grid", mixed(palette["line"], palette["paper"], 0.3)
    for number in range(6):
        yield f"s{number + 1}", palette.series[number % len(palette.series)]
