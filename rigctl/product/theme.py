"""Theme of a product page (how-to/product-pages.md): reads and checks its file, colours and logo; writes its CSS."""

import base64
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from rigctl.base.resources import templates
from rigctl.yamlfile import Mistake, MistakesError, YamlDocument, describe
from rigctl.yamlfile.document import sort_mistakes
from rigctl.yamlfile.fields import (
    FieldError,
    Flag,
    LongText,
    Text,
    YamlSection,
    json_type,
    parse_whole,
    show_value,
    validator_for,
)
from rigctl.yamlfile.read import read_document
from rigctl.yamlfile.validate import validate

HEX: Final = r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"
_TEXT_RATIO: Final = 4.5
_GRAPHICS_RATIO: Final = 3.0
SERIES: Final = 6
"""Number of series colours in a palette: `s1` to `s6`."""
_NEEDS: Final = (
    *((ink, ground, _TEXT_RATIO) for ink in ("ink", "soft", "accent") for ground in ("paper", "panel")),
    *((ink, "paper", _TEXT_RATIO) for ink in ("good", "warn")),
    ("ceiling", "paper", _GRAPHICS_RATIO),
)
"""Required contrast ratio between a colour and its background, by their keys in a palette."""
Palette: TypeAlias = Mapping[str, str]
_CSS_ROOT: Final = re.compile(r":root \{(.*?)\}", re.DOTALL)
_CSS_COLOUR: Final = re.compile(r"--(\w+): (#[0-9a-f]+);")
_MOST_BYTES: Final = 256 * 1024
_MOST_PIXELS: Final = 4_000_000
"""Most pixels of the logo file. The logo is drawn 40 pixels high, but decoding takes four bytes per pixel."""
_SVG_SIZE: Final = re.compile(r"""\b(width|height)\s*=\s*["']\s*([0-9.]+)(?:px)?\s*["']""")
_VIEW_BOX: Final = re.compile(r"""\bviewBox\s*=\s*["']\s*[-0-9.]+[\s,]+[-0-9.]+[\s,]+([0-9.]+)[\s,]+([0-9.]+)\s*["']""")


@dataclass(frozen=True, slots=True)
class Logo:
    address: str  # the image as a data: URL, data:image/svg+xml;base64,…
    aspect: float  # width ÷ height of the logo


def read_logo(path: Path) -> Logo:
    """Return the logo in a file. Raise `ValueError` if the file is not a usable image."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        large = path.stat().st_size
        content = path.read_bytes() if large <= _MOST_BYTES else b""
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    if large > _MOST_BYTES:
        raise ValueError(f"a file of {large:,} bytes is too large: at most {_MOST_BYTES:,} are embedded")
    media, (width, height) = _size(content)
    size = f"{width:g} × {height:g}"
    if media != "svg+xml" and width * height > _MOST_PIXELS:
        raise ValueError(f"{size} pixels are too many: at most {_MOST_PIXELS:,} in all. Make it smaller")
    aspect = width / height if min(width, height) > 0 else 1.0
    if not 0.05 <= aspect <= 20:
        raise ValueError(f"{size} is too narrow for a logo: one side is over 20 times the other")
    return Logo(f"data:image/{media};base64,{base64.b64encode(content).decode()}", aspect)


def _size(content: bytes) -> tuple[str, tuple[float, float]]:
    if content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) >= 24:
        return "png", struct.unpack(">II", content[16:24])
    tag = re.search("<svg[^>]*", content[:4096].decode("utf-8", "replace"))
    if tag is None:
        raise ValueError("expected an SVG or PNG image")
    if view := _VIEW_BOX.search(tag[0]):
        return "svg+xml", (float(view[1]), float(view[2]))
    sizes = {name: float(value) for name, value in _SVG_SIZE.findall(tag[0])}
    return "svg+xml", (sizes.get("width", 1.0), sizes.get("height", 1.0))


_FONT: Final = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_GENERIC: Final = ("sans-serif", "serif", "monospace", "system-ui")
_FAMILY: Final = r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}|-apple-system"
_URL: Final = r"https?://[^\s\"'<>\\^`{|}]{1,300}"
_SHARE: Final = r"\s*(?:[5-9][0-9](?:\.[0-9]{1,3})?|100)\s*%\s*"
Parser: TypeAlias = Callable[[str, object], str]


def _matching(pattern: str, expected: str) -> Parser:
    """Return a parser that accepts text matching `pattern` and otherwise raises `FieldError` with `expected`."""

    def parse(name: str, value: object) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII):
            return value
        found = show_value(value) if isinstance(value, str) else describe(value)
        raise FieldError(f"{name}: expected {expected}, found {found}")

    return parse


_share = _matching(_SHARE, "50 % to 100 %, as in 97%")


def _tests(name: str, value: object) -> object:
    if value in ("every", "best") or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise FieldError(f"{name} {show_value(value)}: expected every, best, or the number of a test")


def _several(value: object) -> object:
    """Return a list; a single value becomes a list with one item."""
    return value if isinstance(value, list) else [value]


Colour = Annotated[
    str | None,
    validator_for(_matching(HEX, 'a colour in quotes, as in "#0b62c4"')),
    json_type("string", pattern=f"^{HEX}$"),
]
Font = Annotated[str, validator_for(_matching(_FAMILY, "names of fonts, as in [Inter, Arial]")), json_type("string")]
Fonts = Annotated[
    tuple[Font, ...],
    Field(max_length=10),
    BeforeValidator(_several, json_schema_input_type=str | Annotated[list[str], Field(max_length=10)]),
]
LinkAddress = Annotated[
    str | None,
    validator_for(_matching(_URL, "an address, as in https://shop.example/product")),
    json_type("string", format="uri"),
]
Which = Annotated[
    int | Literal["every", "best"],
    validator_for(_tests),
    WithJsonSchema({"anyOf": [{"enum": ["every", "best"]}, {"type": "integer", "minimum": 1}]}),
]
Share = Annotated[
    float,
    validator_for(lambda name, value: float(_share(name, value).strip(" %")) / 100),
    json_type("string", pattern=f"^{_SHARE}$"),
]
TestNumber = Annotated[
    int, validator_for(lambda name, value: parse_whole(name, value, 1, 10**6, 5)), json_type("integer", minimum=1)
]


class ColoursSection(YamlSection):
    paper: Colour = Field(None, description="Background.")
    panel: Colour = Field(None, description="Background of table heads and boxes.")
    ink: Colour = Field(None, description="Text.")
    soft: Colour = Field(None, description="Less important text: units, captions.")
    line: Colour = Field(None, description="Lines between rows.")
    accent: Colour = Field(None, description="The claim, links, and the first bars of a chart.")
    good: Colour = Field(None, description="Text of good results.")
    warn: Colour = Field(None, description="Text of bad results.")
    ceiling: Colour = Field(None, description="The line of the ceiling in charts.")
    series: tuple[Colour, ...] = Field(
        (), max_length=SERIES, description="Colours of the pairs in charts. Default: accent, then those of the report."
    )


@cache
def report_palettes() -> tuple[Palette, Palette]:
    """Return the colours of reports on light and on dark screens. The only table of them is in report.css."""
    names = [name for name in ColoursSection.model_fields if name != "series"]
    names += [f"s{number}" for number in range(1, SERIES + 1)]
    style = (templates() / "report.css").read_text("utf-8")
    light, dark, _ = (dict(_CSS_COLOUR.findall(block)) for block in _CSS_ROOT.findall(style))  # the third is for paper
    return {name: light[name] for name in names}, {name: dark[name] for name in names}


class FontsSection(YamlSection):
    text: Fonts = Field(_FONT, description="Fonts of the text; a page uses the first that the reader has.")
    headings: Fonts = Field((), description="Fonts of name, claim and headings. Default: those of the text.")


class ColumnSection(YamlSection):
    column: Text = Field(description="Title of a column of the results table, as `rigctl show` prints it.")
    title: Text | None = Field(None, description="Title of this column on the product page.")


Titled = Annotated[
    ColumnSection,
    BeforeValidator(
        lambda value: {"column": value} if isinstance(value, str) else value, json_schema_input_type=str | ColumnSection
    ),
]


class WordsSection(YamlSection):
    goodput: Text = Field("Goodput", description="Word for goodput in titles.")
    results: Text = Field("Test results", description="Heading of the table.")
    conditions: Text = Field("How this was measured", description="Heading of the folded measurement conditions.")
    allowed: Text = Field("what the link allows", description="Name of the ceiling in charts.")
    notes: LongText = Field("", description="A paragraph below the claim.")


class ClaimSection(YamlSection):
    made: Flag = Field(True, description="false: no claim.")
    tests: Which = Field("every", description="Tests that the claim is about: every, best, or the number of a test.")
    least: Share = Field(0.97, description="No claim below this share of what the link allows, as 97%.")
    virtual: Flag = Field(False, description="true: a virtual rig may support a claim, which then says so.")


class ThemeFile(YamlSection):
    """The content of a theme file, which sets the look and the words of product pages."""

    name: Text = Field(description="Name of the product.")
    maker: Text | None = Field(None, description="Maker of the product.")
    url: LinkAddress = Field(None, description="The product's page.")
    logo: Text | None = Field(None, description="An SVG or PNG file, relative to the theme file. Pages embed it.")
    colours: ColoursSection = Field(ColoursSection(), description="Colours, as #0b62c4. Default: those of the report.")
    dark: ColoursSection = Field(ColoursSection(), description="Colours of reports in dark mode.")
    fonts: FontsSection = Field(FontsSection(), description="Names of fonts. Pages do not embed fonts.")
    columns: tuple[Titled, ...] = Field(
        (), description="Columns in this order. Default: varied settings, measured figures, efficiency."
    )
    tests: Annotated[tuple[TestNumber, ...], BeforeValidator(_several, json_schema_input_type=list[TestNumber])] = (
        Field((), description="Numbers of the tests in the table. Default: all tests.")
    )
    words: WordsSection = Field(WordsSection(), description="Words of the page.")
    claim: ClaimSection = Field(ClaimSection(), description="The claim of the page.")


@dataclass(frozen=True, slots=True)
class Theme:
    """A checked theme: every colour is set and the logo is loaded."""

    name: str
    maker: str | None = None
    url: str | None = None
    logo: Logo | None = None
    palette: Palette = field(default_factory=lambda: report_palettes()[0])
    dark: Palette = field(default_factory=lambda: report_palettes()[1])
    text: tuple[str, ...] = _FONT
    headings: tuple[str, ...] = _FONT
    columns: tuple[tuple[str, str], ...] = ()  # per column: title in the results table, and title on the product page
    tests: tuple[int, ...] = ()  # numbers of the tests in the table; empty: all tests
    words: WordsSection = field(default_factory=WordsSection)
    claim: ClaimSection = field(default_factory=ClaimSection)
    source: YamlDocument | None = None  # the parsed theme file, which gives later mistakes a line number


def load_theme(path: Path) -> Theme:
    """Return the theme in `path`. Raise `MistakesError` with all mistakes, including too little contrast."""
    document = read_document(path)
    model = validate(document, ThemeFile)
    light, dark = map(_palette, (model.colours, model.dark), report_palettes())
    mistakes = [*_pale(document, "colours", model.colours, light), *_pale(document, "dark", model.dark, dark)]
    logo = None
    try:
        logo = read_logo(path.parent / model.logo) if model.logo else None
    except ValueError as error:
        mistakes.append(document.mistake(("logo",), f'logo "{model.logo}": {error}.'))
    if mistakes:
        raise MistakesError(sort_mistakes(mistakes))
    text, headings = (
        fonts if fonts[-1] in _GENERIC else (*fonts, "sans-serif")
        for fonts in (model.fonts.text or _FONT, model.fonts.headings or model.fonts.text or _FONT)
    )
    columns = tuple((column.column, column.title or column.column) for column in model.columns)
    return Theme(
        model.name,
        model.maker,
        model.url,
        logo,
        light,
        dark,
        text,
        headings,
        columns,
        model.tests,
        model.words,
        model.claim,
        document,
    )


def _palette(section: ColoursSection, base: Palette) -> Palette:
    """Return `base` with the colours of the theme; its `series` colours are repeated if there are too few."""
    given = section.model_dump(exclude={"series"}, exclude_none=True)
    if section.paper:
        given.setdefault("panel", section.paper)
    if section.accent:
        given["s1"] = section.accent
    if section.series:
        given |= {f"s{number + 1}": section.series[number % len(section.series)] for number in range(SERIES)}
    return {**base, **given}


def _pale(document: YamlDocument, section: str, colours: ColoursSection, palette: Palette) -> Iterator[Mistake]:
    """Yield a mistake for each colour with too little contrast, at the line of a key that the theme sets."""
    given, series = colours.model_fields_set, len(colours.series) or SERIES
    graphics = ((f"s{number}", "paper", _GRAPHICS_RATIO) for number in range(1, series + 1))
    for ink, ground, ratio in (*_NEEDS, *graphics):
        actual = contrast(palette[ink], palette[ground])
        if actual >= ratio:
            continue
        name = ink
        place: tuple[str | int, ...] = (section, next((key for key in (ink, ground) if key in given), "paper"))
        if ink[1:].isdigit():
            name = f"series {ink[1:]}"
            place = (section, "series", int(ink[1:]) - 1) if "series" in given else (section, "paper")
        needs = "graphics need" if ratio == _GRAPHICS_RATIO else "text needs"
        yield document.mistake(
            place,
            f"{section}: {name} {palette[ink]} on {ground} {palette[ground]} has a contrast of "
            f"{int(10 * actual) / 10}:1; {needs} {ratio:g}:1 (WCAG AA). "
            f"{legible_colour(palette[ink], palette[ground], ratio)} has enough.",
        )


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
    return ", ".join(name if name in (*_GENERIC, "-apple-system") else f'"{name}"' for name in fonts)


def tokens(palette: Palette) -> Palette:
    """Return the values of the CSS custom properties (`--ink`, `--grid`) for a palette, by name."""
    return {**palette, "grid": _mix(palette["line"], palette["paper"], 0.3)}


def page_style(theme: Theme) -> str:
    """Return CSS with the theme's colours and fonts, to follow the report's style sheets. Printed pages stay white."""
    on_screen, in_dark = tokens(theme.palette), tokens(theme.dark)
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
    fonts = f":root {{ --text: {font_families(theme.text)}; }}\n"
    fonts += f"h1, h2, h3, .brand {{ font-family: {font_families(theme.headings)}; }}\n"
    return f"{''.join(rules)}{fonts}"
