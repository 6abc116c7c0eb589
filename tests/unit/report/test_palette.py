"""The page's colours, read from its style sheet: apart for the colour-blind, and clear of the background."""

import itertools
import re

import pytest
from colours import EYES, apart, contrast

from rigctl.base.resources import templates

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
