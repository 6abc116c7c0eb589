"""The theme of a product's page: its file (how-to/product-pages.md), read and judged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rigctl.records import RunInfo
from rigctl.report.product.claim import LEAST_SHARE, Asked, Tests
from rigctl.report.product.colours import (
    DARK,
    GRAPHICS_RATIO,
    HEX,
    LIGHT,
    NEEDS,
    TEXT_RATIO,
    Palette,
    contrast,
    legible,
)
from rigctl.report.product.logo import Logo, read_logo
from rigctl.yamlfile import Document, Mistake, MistakesError, kind, read_document, validated
from rigctl.yamlfile.fields import FieldError, Flag, LongText, Text, named, parse_text, shown
from rigctl.yamlfile.mistakes import in_order

FONT: Final = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_FAMILY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}|-apple-system", re.ASCII)
_URL: Final = re.compile(r"https?://[^\s\"'<>\\^`{|}]{1,300}", re.ASCII)


def _colour(name: str, value: object) -> str:
    if not isinstance(value, str) or not HEX.fullmatch(value):
        found = shown(value) if isinstance(value, str) else f"{kind(value)}"
        raise FieldError(f'{name}: expected a colour in quotes, as in "#0b62c4", found {found}')
    return value.lower()


def _series(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= len(LIGHT.series):
        raise FieldError(f'{name}: expected a list of 1 to {len(LIGHT.series)} colours, as in ["#0b62c4", "#d9570b"]')
    return tuple(_colour(name, colour) for colour in value)


def _fonts(name: str, value: object) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    for family in given:
        if not isinstance(family, str) or not _FAMILY.fullmatch(family):
            raise FieldError(f"{name}: expected names of fonts, as in [Inter, Arial], found {shown(family)}")
    if not 1 <= len(given) <= 10:
        raise FieldError(f"{name}: expected 1 to 10 names of fonts, as in [Inter, Arial]")
    return tuple(given)


def _url(name: str, value: object) -> str:
    text = parse_text(name, value, "an address, as in https://shop.example/product")
    if not _URL.fullmatch(text):
        raise FieldError(f"{name} {shown(text)}: expected an address, as in https://shop.example/product")
    return text


def _tests(name: str, value: object) -> Tests:
    if value in ("every", "best"):
        return "best" if value == "best" else "every"
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise FieldError(f"{name} {shown(value)}: expected every, best, or the number of a test")


def _least(name: str, value: object) -> float:
    number = re.fullmatch(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%\s*", value) if isinstance(value, str) else None
    if number is None or not 50 <= float(number[1]) <= 100:
        raise FieldError(f"{name} {shown(value)}: expected 50 % to 100 %, as in 97%")
    return float(number[1]) / 100


def _numbers(name: str, value: object) -> tuple[int, ...]:
    given = value if isinstance(value, list) else [value]
    if not given or any(isinstance(number, bool) or not isinstance(number, int) or number < 1 for number in given):
        raise FieldError(f"{name}: expected numbers of tests, as in [1, 5]")
    return tuple(given)


def _columns(value: object) -> object:
    """Accept a column's title alone in place of a mapping."""
    if not isinstance(value, list):
        return value
    return [{"column": entry} if isinstance(entry, str) else entry for entry in value]


_HEX_SCHEMA: Final = {"type": "string", "pattern": f"^{HEX.pattern}$"}
Colour = Annotated[str | None, named(_colour), WithJsonSchema(_HEX_SCHEMA)]
Series = Annotated[
    tuple[str, ...] | None,
    named(_series),
    WithJsonSchema({"type": "array", "items": _HEX_SCHEMA, "minItems": 1, "maxItems": len(LIGHT.series)}),
]
_NAMES_SCHEMA: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 10}]}
Fonts = Annotated[tuple[str, ...] | None, named(_fonts), WithJsonSchema(_NAMES_SCHEMA)]
Address = Annotated[str | None, named(_url), WithJsonSchema({"type": "string", "format": "uri"})]
Which = Annotated[
    Tests,
    named(_tests),
    WithJsonSchema({"anyOf": [{"enum": ["every", "best"]}, {"type": "integer", "minimum": 1}]}),
]
Share = Annotated[float, named(_least), WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$"})]
Numbers = Annotated[
    tuple[int, ...] | None,
    named(_numbers),
    WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": 1}}),
]


class Section(BaseModel):
    """A mapping in the file. Unknown keys are mistakes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


class ColoursSection(Section):
    paper: Colour = Field(None, description="Background.")
    panel: Colour = Field(None, description="Background of table heads and boxes.")
    ink: Colour = Field(None, description="Text.")
    soft: Colour = Field(None, description="Text of less weight: units, captions.")
    line: Colour = Field(None, description="Lines between rows.")
    accent: Colour = Field(None, description="The claim, links and the first bars of a chart.")
    good: Colour = Field(None, description="Text of what is good.")
    warn: Colour = Field(None, description="Text of what is not.")
    ceiling: Colour = Field(None, description="The line of what a link allows.")
    series: Series = Field(None, description="Of the pairs in charts; the first is the accent where none are given.")


class FontsSection(Section):
    text: Fonts = Field(None, description="Fonts of the text, the first that a reader has is used.")
    headings: Fonts = Field(None, description="Fonts of name, claim and headings; those of the text where not given.")


class ColumnSection(Section):
    column: Text = Field(description="Title of a column of the results table, as `rigctl show` prints it.")
    title: Text | None = Field(None, description="What it is called here.")


class WordsSection(Section):
    goodput: Text = Field("Goodput", description="What goodput is called in titles.")
    results: Text = Field("Test results", description="Heading of the table.")
    conditions: Text = Field("How this was measured", description="What opens the conditions.")
    allowed: Text = Field("what the link allows", description="Name of the ceiling in charts.")
    notes: LongText = Field("", description="A paragraph below the claim.")


class ClaimSection(Section):
    made: Flag = Field(True, description="false: no claim.")
    tests: Which = Field("every", description="What it is made of: every test of the table, the best, or a number.")
    least: Share = Field(LEAST_SHARE, description="No claim below this share of what the link allows, as 97%.")
    virtual: Flag = Field(False, description="Make it of a virtual rig, too; it then begins with these words.")


_COLUMNS_SCHEMA: Final = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"column": {"type": "string"}, "title": {"type": "string"}},
                "required": ["column"],
                "additionalProperties": False,
            },
        ]
    },
}


class ThemeFile(Section):
    """A theme file."""

    name: Text = Field(description="Name of the product.")
    maker: Text | None = Field(None, description="Who makes it.")
    url: Address = Field(None, description="The product's page.")
    logo: Text | None = Field(None, description="An SVG, PNG, JPEG or WebP file, relative to this one; embedded.")
    colours: ColoursSection = Field(ColoursSection(), description="As #0b62c4; those left out are the report's.")
    dark: ColoursSection = Field(ColoursSection(), description="The same for the report in a dark window.")
    fonts: FontsSection = Field(FontsSection(), description="Names of fonts; none is embedded.")
    columns: Annotated[tuple[ColumnSection, ...], BeforeValidator(_columns), WithJsonSchema(_COLUMNS_SCHEMA)] = Field(
        (), description="Of the results table, in this order. Left out: what a buyer understands."
    )
    tests: Numbers = Field(None, description="Rows of the table by the numbers of their tests; all where left out.")
    words: WordsSection = Field(WordsSection(), description="Words of the page.")
    claim: ClaimSection = Field(ClaimSection(), description="What is claimed.")


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme as it is used: every colour is known, the logo is read."""

    name: str
    maker: str | None = None
    url: str | None = None
    logo: Logo | None = None
    palette: Palette = LIGHT
    dark: Palette = DARK
    text: tuple[str, ...] = FONT
    headings: tuple[str, ...] = FONT
    columns: tuple[tuple[str, str], ...] = ()  # a column of the results table, and its title on the page
    tests: tuple[int, ...] | None = None
    words: WordsSection = field(default_factory=WordsSection)
    claim: Asked | None = field(default_factory=Asked)  # None: no claim is wanted
    source: Document | None = None  # the file, for mistakes that are found later


def load_theme(path: Path) -> Theme:
    """Return the theme in `path`. Raise `MistakesError` with all mistakes, those of contrast included."""
    document = read_document(path)
    model, mistakes = validated(document, ThemeFile)
    if model is None:
        raise MistakesError(in_order(mistakes))
    light, dark = _palette(model.colours, LIGHT), _palette(model.dark, DARK)
    mistakes += [*_pale(document, "colours", light), *_pale(document, "dark", dark)]
    logo = None
    if model.logo is not None:
        try:
            logo = read_logo(path.parent / model.logo)
        except ValueError as error:
            mistakes.append(document.mistake(("logo",), f'logo "{model.logo}": {error}.'))
    if mistakes:
        raise MistakesError(in_order(mistakes))
    text = _with_generic(model.fonts.text or FONT)
    return Theme(
        model.name,
        model.maker,
        model.url,
        logo,
        light,
        dark,
        text,
        _with_generic(model.fonts.headings) if model.fonts.headings else text,
        tuple((column.column, column.title or column.column) for column in model.columns),
        model.tests,
        model.words,
        Asked(model.claim.tests, model.claim.least, model.claim.virtual) if model.claim.made else None,
        document,
    )


def _palette(section: ColoursSection, base: Palette) -> Palette:
    given: dict[str, Any] = section.model_dump(exclude={"series"}, exclude_none=True)
    colours = {**base.colours, **given}
    if "panel" not in given and "paper" in given:
        colours["panel"] = colours["paper"]
    series = (colours["accent"], *base.series[1:]) if section.accent else base.series
    return Palette(colours, section.series or series)


def _with_generic(fonts: tuple[str, ...]) -> tuple[str, ...]:
    """Return `fonts` with a family at the end that every reader has."""
    generic = ("sans-serif", "serif", "monospace", "system-ui")
    return fonts if fonts[-1] in generic else (*fonts, "sans-serif")


def _pale(document: Document, section: str, palette: Palette) -> Iterator[Mistake]:
    """Yield a mistake for each colour with too little contrast, at the key that was given."""
    given = document.data.get(section) or {}
    for ink, ground, ratio in NEEDS:
        if text := _contrast_text(ink, palette[ink], ground, palette[ground], ratio):
            key = next((key for key in (ink, ground, "paper") if key in given), None)
            yield document.mistake((section, key) if key else (section,), f"{section}: {text}")
    for number, colour in enumerate(palette.series):
        name = f"series {number + 1}"
        if text := _contrast_text(name, colour, "paper", palette["paper"], GRAPHICS_RATIO):
            place = (section, "series", number) if "series" in given else (section, "paper")
            yield document.mistake(place, f"{section}: {text}")


def _contrast_text(name: str, colour: str, ground: str, ground_colour: str, ratio: float) -> str | None:
    """Return why a colour cannot be told from its ground, and which one can; None if its contrast is enough."""
    reached = contrast(colour, ground_colour)
    if reached >= ratio:
        return None
    what = "text needs" if ratio == TEXT_RATIO else "graphics need"
    return (
        f"{name} {colour} on {ground} {ground_colour} has a contrast of {int(10 * reached) / 10}:1; "
        f"{what} {ratio:g}:1 (WCAG AA). {legible(colour, ground_colour, ratio)} has it."
    )


def default_theme(info: RunInfo, unlike: Theme | None = None) -> Theme:
    """Return the theme of a run without one: the rig's name, and the run's id if `unlike` has the same name."""
    name = info.plan.rig_name
    return Theme(f"{name}, {info.run}" if unlike is not None and unlike.name == name else name)
