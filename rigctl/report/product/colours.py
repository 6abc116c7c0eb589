"""Colours of a theme: the default ones, their contrast (WCAG 2.2 AA, 1.4.3 and 1.4.11), and themes as CSS."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

HEX: Final = r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"
_TEXT_RATIO: Final = 4.5
GRAPHICS_RATIO: Final = 3.0
SERIES: Final = 6
"""Number of series colours in a palette: `s1` to `s6`."""
NEEDS: Final = (
    ("ink", "paper", _TEXT_RATIO),
    ("ink", "panel", _TEXT_RATIO),
    ("soft", "paper", _TEXT_RATIO),
    ("soft", "panel", _TEXT_RATIO),
    ("accent", "paper", _TEXT_RATIO),
    ("accent", "panel", _TEXT_RATIO),
    ("good", "paper", _TEXT_RATIO),
    ("warn", "paper", _TEXT_RATIO),
    ("ceiling", "paper", GRAPHICS_RATIO),
)
"""Required contrast ratio between a colour and its background, by their keys in a palette."""
_GENERIC: Final = ("sans-serif", "serif", "monospace", "system-ui", "-apple-system")
Palette: TypeAlias = Mapping[str, str]
LIGHT: Final[Palette] = {
    "paper": "#ffffff", "panel": "#f6f7f9", "ink": "#16191d", "soft": "#5b6470", "line": "#dfe3e8",
    "accent": "#0b62c4", "good": "#00736b", "warn": "#a14400", "ceiling": "#6b7480",
    "s1": "#0b62c4", "s2": "#e17721", "s3": "#2ea765", "s4": "#ae6e94", "s5": "#4f4c00", "s6": "#7e2644",
}  # fmt: skip
DARK: Final[Palette] = {
    "paper": "#111418", "panel": "#1a1f25", "ink": "#e8ebef", "soft": "#9aa4b0", "line": "#2c333b",
    "accent": "#6db3ff", "good": "#4fd6c4", "warn": "#ffb066", "ceiling": "#8b95a1",
    "s1": "#5aa9ff", "s2": "#b35603", "s3": "#24faa4", "s4": "#d78cb7", "s5": "#e3db3a", "s6": "#e3275d",
}  # fmt: skip
"""The series colours equal those of reports/templates/report.css; people with colour blindness can tell them apart."""


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in _rgb(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _rgb(colour: str) -> bytes:
    digits = colour.removeprefix("#")
    return bytes.fromhex(digits if len(digits) == 6 else "".join(2 * digit for digit in digits))


def _mix(colour: str, other: str, share: float) -> str:
    """Return a mixture of two colours; `share` is the share of `other`."""
    parts = (round((1 - share) * own + share * its) for own, its in zip(_rgb(colour), _rgb(other), strict=True))
    return f"#{bytes(parts).hex()}"


def legible_colour(ink: str, ground: str, ratio: float) -> str:
    """Return the colour nearest to `ink` that has at least the contrast `ratio` on `ground`."""
    end = max(("#000000", "#ffffff"), key=lambda edge: contrast(edge, ground))
    tries = (_mix(ink, end, step / 50) for step in range(51))
    return next((colour for colour in tries if contrast(colour, ground) >= ratio), end)


def font_families(fonts: Sequence[str]) -> str:
    """Return the fonts as a value of CSS `font-family`."""
    return ", ".join(name if name in _GENERIC else f'"{name}"' for name in fonts)


def tokens(palette: Palette) -> Palette:
    """Return the CSS custom properties of a palette, by name."""
    return {**palette, "grid": _mix(palette["line"], palette["paper"], 0.3)}


def page_style(light: Palette, dark: Palette, text: Sequence[str], headings: Sequence[str]) -> str:
    """Return the CSS of a theme, which follows the report's style sheets. Printed pages stay white."""
    on_screen, in_dark = tokens(light), tokens(dark)
    in_print = {name: on_screen[name] for name in ("accent", *(f"s{number}" for number in range(1, SERIES + 1)))}
    media = (
        ("screen and (prefers-color-scheme: light)", on_screen),
        ("screen and (prefers-color-scheme: dark)", in_dark),
        ("print", in_print),
    )
    rules = [
        f"@media {medium} {{ :root {{ {' '.join(f'--{name}: {value};' for name, value in own.items())} }} }}\n"
        for medium, own in media
    ]
    fonts = f":root {{ --text: {font_families(text)}; }}\n"
    fonts += f"h1, h2, h3, .brand {{ font-family: {font_families(headings)}; }}\n"
    return f"{''.join(rules)}{fonts}"
