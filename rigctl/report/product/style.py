"""A theme as custom properties: of a fragment's host, and of the whole page in place of its own."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rigctl.report.product.contrast import mixed
from rigctl.report.product.theme import Palette, Theme

_GENERIC: Final = ("sans-serif", "serif", "monospace", "system-ui", "-apple-system")


def families(fonts: Sequence[str]) -> str:
    return ", ".join(name if name in _GENERIC else f'"{name}"' for name in fonts)


def host_style(theme: Theme) -> str:
    """Everything that a shop's page could hand down is set back: what is important inside wins over what is outside."""
    own = "".join(f" --{name}: {value} !important;" for name, value in _tokens(theme.palette))
    fonts = f" --text: {families(theme.text)} !important; --headings: {families(theme.headings)} !important;"
    return f":host {{ all: initial !important;{own}{fonts} }}\n"


def page_style(theme: Theme) -> str:
    """After the report's own style sheet. Paper stays white when printed, with the theme's accents."""
    light, dark = (_declared(_tokens(own)) for own in (theme.palette, theme.dark))
    accents = _declared((name, value) for name, value in _tokens(theme.palette) if re.fullmatch("accent|s[1-6]", name))
    return (
        f"@media screen and (prefers-color-scheme: light) {{ :root {{ {light} }} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ {accents} }} }}\n"
        f":root {{ --text: {families(theme.text)}; }}\n"
        f"h1, h2, h3, .brand {{ font-family: {families(theme.headings)}; }}\n"
    )


def _declared(tokens: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in tokens)


def _tokens(palette: Palette) -> Iterator[tuple[str, str]]:
    yield from palette.colours.items()
    yield "grid", mixed(palette["line"], palette["paper"], 0.3)
    for number in range(6):
        yield f"s{number + 1}", palette.series[number % len(palette.series)]
