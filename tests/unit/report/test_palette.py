"""The page's colours, read from its style sheet: apart for the colour-blind, clear of the background, and readable."""

import itertools
import math
import re
from typing import Final, TypeAlias

import pytest

from rigctl.base.resources import templates
from rigctl.report.printers.html import STYLES
from rigctl.report.sections.matrix import LINE_COLOURS

Linear: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[Linear, Linear, Linear]

EYES: Final[dict[str, Matrix]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_XYZ: Final[Matrix] = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE: Final = (0.95047, 1.0, 1.08883)


def linear(colour: str) -> Linear:
    """Linear RGB of `#rrggbb` or `#rgb`."""
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue


def contrast(first: str, second: str) -> float:
    low, high = sorted(_times(_XYZ, linear(colour))[1] for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def apart(first: str, second: str, eye: str) -> float:
    """The distance of two colours for an eye; 2.3 is just noticeable side by side."""
    return math.dist(*(_lab(_seen(linear(colour), EYES[eye])) for colour in (first, second)))


def _seen(colour: Linear, eye: Matrix) -> Linear:
    red, green, blue = (min(1.0, max(0.0, part)) for part in _times(eye, colour))
    return red, green, blue


def _lab(colour: Linear) -> Linear:
    x, y, z = (
        share ** (1 / 3) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116
        for share in (part / white for part, white in zip(_times(_XYZ, colour), _WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _times(matrix: Matrix, colour: Linear) -> Linear:
    first, second, third = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)
    return first, second, third


SERIES = [f"s{number}" for number in range(1, 7)]
LINES = [f"l{number}" for number in range(10)]


def tokens(scheme: str) -> dict[str, str]:
    """The custom properties that hold a colour; what dark does not change it has from light."""
    style = (templates() / "report.css").read_text("utf-8")
    light, dark, paper = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    )
    return light | {"light": {}, "dark": dark, "paper": paper}[scheme]


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
def test_every_two_series_can_be_told_apart_by_every_eye(scheme: str, eye: str) -> None:
    colours = tokens(scheme)
    for first, second in itertools.combinations(SERIES, 2):
        assert apart(colours[first], colours[second], eye) >= 20, (first, second)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
def test_lines_in_an_order_can_be_told_from_their_neighbours_and_more_from_less(scheme: str, eye: str) -> None:
    colours = tokens(scheme)
    for first, second in itertools.pairwise(LINES):
        assert apart(colours[first], colours[second], eye) >= 8, (first, second)
    assert apart(colours["l0"], colours["l9"], eye) >= 40
    for step in range(1, 6):
        assert apart(colours[f"p{step}"], colours[f"m{step}"], eye) >= 15, step
    assert apart(colours["good"], colours["warn"], eye) >= 30


@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
def test_lines_and_texts_are_clear_of_the_background(scheme: str) -> None:
    colours = tokens(scheme)
    for name in (*SERIES, *LINES, "ceiling"):
        assert contrast(colours[name], colours["paper"]) >= 3, name
    for name, ground in itertools.product(("ink", "soft", "accent", "good", "warn"), ("paper", "panel", "mark")):
        if not (name == "soft" and ground == "mark"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def test_every_colour_of_the_style_sheets_is_a_token() -> None:
    for name in ("report.css", "matrix.css"):
        style = (templates() / name).read_text("utf-8")
        rules = re.sub(r":root \{.*?\}", "", style, flags=re.DOTALL)
        stand_ins = re.sub(r'\[(?:stroke|fill)="#\w+"\]', "", rules)
        assert not re.findall(r"#[0-9a-f]{3,6}\b", stand_ins)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_ink_of_every_field_of_a_heat_map_can_be_read(scheme: str) -> None:
    style = "".join((templates() / name).read_text("utf-8") for name in STYLES)
    colours = tokens(scheme)
    fields = re.findall(r"\.([hpm]\d+) \{ background: var\(--(\w+)\); color: var\(--([\w-]+)\); \}", style)
    assert {name for name, _, _ in fields} >= {
        *(f"h{at}" for at in range(12)),
        *(f"{sign}{step}" for sign in "pm" for step in range(1, 6)),
    }
    for name, ground, ink in fields:
        assert contrast(colours[ground], colours[ink]) >= 4.5, name
    for number in range(LINE_COLOURS):
        assert f".l{number} {{ color: var(--l{number}); }}" in style
