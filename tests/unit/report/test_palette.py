import itertools
import re
from typing import Any, Final

import numpy as np
import pytest

from rigctl.base.resources import templates
from rigctl.product.theme import Theme, contrast
from rigctl.report.charts.plot import MOST_COLOURS
from rigctl.report.printers.html import STYLES
from rigctl.report.sections.matrix import LINE_COLOURS

EYES: Final[dict[str, Any]] = {
    "all cones": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ: Final = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE: Final = [0.95047, 1.0, 1.08883]


def lab(colour: str, eye: str) -> Any:
    """CIE Lab of `#rrggbb` or `#rgb` as an eye sees it."""
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    shares = np.array(XYZ) @ np.clip(np.array(EYES[eye]) @ linear, 0, 1) / WHITE
    x, y, z = np.where(shares > 216 / 24389, np.cbrt(shares), (24389 / 27 * shares + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(first: str, second: str, eye: str) -> float:
    """The distance of two colours for an eye; 2.3 is just noticeable side by side."""
    return float(np.linalg.norm(lab(first, eye) - lab(second, eye)))


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
def test_series_and_lines_in_an_order_can_be_told_apart_by_every_eye(scheme: str, eye: str) -> None:
    colours = tokens(scheme)
    for first, second in itertools.combinations(SERIES, 2):
        assert apart(colours[first], colours[second], eye) >= 20, (first, second)
    for first, second in itertools.pairwise(LINES):
        assert apart(colours[first], colours[second], eye) >= 8, (first, second)
    assert apart(colours["l0"], colours["l9"], eye) >= 40
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
def test_marks_have_colours_a_product_page_those_of_series_and_the_ink_of_a_heat_map_can_be_read(scheme: str) -> None:
    style = "".join((templates() / name).read_text("utf-8") for name in STYLES)
    colours = tokens(scheme)
    fields = re.findall(r"\.(h\d+) \{ background: var\(--(\w+)\); color: var\(--([\w-]+)\); \}", style)
    assert {name for name, _, _ in fields} == {f"h{at}" for at in range(12)}
    for name, ground, ink in fields:
        assert contrast(colours[ground], colours[ink]) >= 4.5, name
    series = [f"s{number}" for number in range(1, MOST_COLOURS + 1)]
    lines = [f"l{number}" for number in range(LINE_COLOURS)]
    own = [f".{name} {{ color: var(--{name}); }}" for name in (*series, *lines)]
    marks = [f".{name} {{ color: var(--" for name in ("grid", "axis", "ceiling", "good", "warn", "plate")]
    assert [rule for rule in (*own, *marks) if rule not in style] == []
    of_product = {"light": Theme("x").palette, "dark": Theme("x").dark}[scheme]
    assert of_product == {name: tokens(scheme)[name] for name in of_product}
    assert set(series) < set(of_product)
