"""Pictures as PNG: every text has letters, whatever fonts the machine and the theme have."""

import pytest

from rigctl.report.product.drawing import Drawing, family, png


def picture(fonts: tuple[str, ...], text: str, *, bold: bool = False) -> bytes:
    drawing = Drawing(60, 20, fonts, "label", "#ffffff")
    drawing.text((2, 15), text, 12, "#000000", bold=bold)
    return png(drawing.svg())


@pytest.mark.parametrize(
    "fonts", [("No Such Font", "sans-serif"), ("serif",), ("monospace",), ("system-ui",), ("No Such Font",)]
)
def test_a_text_is_drawn_in_any_font(fonts: tuple[str, ...]) -> None:
    assert picture(fonts, "941") != picture(fonts, "")
    assert picture(fonts, "941", bold=True) != picture(fonts, "941")


def test_a_picture_has_twice_the_size_of_its_drawing() -> None:
    made = picture(("sans-serif",), "941")
    assert (int.from_bytes(made[16:20]), int.from_bytes(made[20:24])) == (120, 40)


def test_common_fonts_stand_before_a_generic_name() -> None:
    assert family(("Inter", "sans-serif")) == "Inter, Arial, sans-serif"
    assert family(("Arial", "sans-serif")) == "Arial, sans-serif"
    assert family(("system-ui", "Georgia", "serif")).endswith("&#x27;DejaVu Serif&#x27;, serif")
