import base64
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY
from xml.etree import ElementTree

import builders
import pages
import pytest
from cases import from_file
from documents import result_table, rows_of, titles
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.base.files import write_files
from rigctl.product import page as product_page
from rigctl.product.content import Product, product
from rigctl.product.page import bars, card_picture, files_of, png, table_picture, width_of
from rigctl.product.theme import Theme, WordsSection, contrast, legible_colour, load_theme, read_logo

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40"><rect width="120" height="40"/></svg>'


def themed(tmp_path: Path, text: str) -> Theme:
    path = tmp_path / "theme.yaml"
    path.write_text(text)
    return load_theme(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as error:
        themed(tmp_path, text)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_a_name_is_enough(tmp_path: Path) -> None:
    assert themed(tmp_path, "name: GigaBlox\n") == Theme("GigaBlox", source=ANY)


def test_all_keys_are_read(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_text(SVG)
    text = """name: GigaBlox
maker: BotBlox
url: https://botblox.example/gigablox
logo: logo.svg
colours: {paper: "#fffdf8", ink: "#222222", accent: "#a3123f", series: ["#a3123f", "#0b62c4"]}
dark: {accent: "#ff9db5"}
fonts: {text: [Inter, Arial], headings: Georgia}
columns: [Test, {column: Goodput of each pair, title: Speed of both}]
tests: [1, 5]
words: {goodput: Speed, notes: "Four hosts."}
claim: {tests: best, least: 99%, virtual: true}
"""
    theme = themed(tmp_path, text)
    assert theme.columns == (("Test", "Test"), ("Goodput of each pair", "Speed of both"))
    assert [theme.palette[name] for name in ("paper", "panel", "s1", "s3")] == ["#fffdf8"] * 2 + ["#a3123f"] * 2
    assert theme.text == ("Inter", "Arial", "sans-serif")
    assert theme.headings == ("Georgia", "sans-serif")
    assert known(theme.logo).aspect == 3.0
    assert (theme.claim.tests, theme.claim.least, theme.claim.virtual) == ("best", 0.99, True)


@from_file
def test_a_mistake_has_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path, text)


def test_text_that_cannot_be_read_is_refused_with_a_colour_that_can_and_bars_need_less_contrast(tmp_path: Path) -> None:
    found = refused(tmp_path, 'name: A\ncolours:\n  soft: "#aaaaaa"\n')
    assert "theme.yaml:3:9: colours: soft #aaaaaa on paper #ffffff has a contrast of 2.3:1; text needs 4.5:1" in found
    assert contrast(found.partition("(WCAG AA). ")[2][:7], "#ffffff") >= 4.5
    themed(tmp_path, 'name: A\ncolours: {series: ["#e17721"]}\n')
    found = refused(tmp_path, 'name: A\ncolours: {series: ["#0b62c4", "#ffe0b0"]}\n')
    assert "theme.yaml:2:31: colours: series 2 #ffe0b0 on paper #ffffff" in found
    assert "graphics need 3:1" in found


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#fff", "#ffffff") == 1
    assert legible_colour("#000000", "#ffffff", 4.5) == "#000000"


def _png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))


@pytest.mark.parametrize(
    ("content", "kind", "aspect"),
    [
        (SVG.encode(), "svg+xml", 3.0),
        (b'<?xml version="1.0"?><svg width="50px" height="100">', "svg+xml", 0.5),
        (_png(200, 50), "png", 4.0),
    ],
)
def test_a_logo_is_embedded_as_what_it_is(tmp_path: Path, content: bytes, kind: str, aspect: float) -> None:
    (tmp_path / "logo").write_bytes(content)
    logo = read_logo(tmp_path / "logo")
    assert logo.address == f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    assert logo.aspect == aspect


@pytest.mark.parametrize(
    ("content", "why"),
    [
        *((content, "expected an SVG") for content in (b"", b"%PDF-1.7", b"\xff\xd8\xff\xe0", b"\x89PNG")),
        (b"x" * 300_000, "too large"),
        (_png(60_000, 60_000), "60000 × 60000 pixels are too many"),  # of few bytes
    ],
)
def test_what_is_no_logo_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "logo").write_bytes(content)
    with pytest.raises(ValueError, match=why):
        read_logo(tmp_path / "logo")


THEME = Theme("GigaBlox", maker="BotBlox")


def gigablox(theme: Theme = THEME) -> Product:
    return product(RunView.in_memory(*builders.gigablox()), theme)


def test_a_theme_picks_columns_rows_and_words_and_an_abbreviation_stays_in_capitals() -> None:
    words = WordsSection(goodput="TCP rate", results="MTU tests")
    theme = replace(THEME, columns=(("Test", "No."), ("Retransmits", "Sent twice")), tests=(5, 7), words=words)
    assert rows_of(gigablox(theme).table) == [{"No.": "5", "Sent twice": "0, 0"}, {"No.": "7", "Sent twice": "0, 31"}]
    made = gigablox(replace(THEME, words=words))
    assert "TCP rate of each pair" in titles(made.table)
    assert (made.title, product_page.bars_title(made)) == ("GigaBlox: MTU tests", "TCP rate of each pair, Mbit/s")


def test_a_column_that_the_run_has_not_is_refused_at_its_place(tmp_path: Path) -> None:
    theme = themed(tmp_path, "name: A\ncolumns:\n  - Test\n  - Retransmit\n")
    with pytest.raises(InputError, match=r'theme.yaml:4:5: column "Retransmit": .*Did you mean "Retransmits"'):
        gigablox(theme)
    with pytest.raises(InputError, match=r"tests: the run has no test 9. Its tests are 1 to 7"):
        gigablox(replace(THEME, tests=(9,)))


def test_a_product_has_the_digits_of_its_report_and_the_mss_that_went_over_the_wire() -> None:
    cell = builders.cell(1)
    run = (builders.run(builders.plan([cell])), [builders.repetition(cell, (940.96, 929.5))])
    made, (report,) = product(RunView.in_memory(*run), THEME), rows_of(result_table(*run))
    (row,) = rows_of(made.table)
    assert row == {title: report[title] for title in row}
    assert made.bars[0].texts == ("941", "930")
    shown = gigablox()
    assert shown.footnote == (
        "MSS 1460 and MSS 8960 were requested; MSS 1448 was used in every test, so tests 1 and 3, tests 2 and 5 and "
        "tests 4 and 6 have the same settings."
    )
    assert "MSS" not in titles(shown.table)
    assert not any("8960" in bar.settings for bar in shown.bars)


def test_pictures_are_svg_and_png_with_their_source_inside() -> None:
    made = gigablox()
    for svg in (table_picture(made), bars(made) or "", card_picture(made)):
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg")
        assert "no product was connected" in "".join(root.itertext())
        assert ("MSS 1448 was used" in "".join(root.itertext())) == (svg != card_picture(made))
    files = files_of(made)
    assert {"chart.png", "table.png", "og.png"} <= set(files)
    assert all(files[name].startswith(b"\x89PNG") for name in files if name.endswith(".png"))
    assert (int.from_bytes(files["og.png"][16:20]), int.from_bytes(files["og.png"][20:24])) == product_page.CARD


def test_every_kind_of_test_has_a_page_and_draws_nothing_outside_its_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_page, "png", lambda svg, scale=2: svg.encode())  # drawn above, once
    for name, make in pages.RUNS.items():
        made = product(
            RunView.in_memory(*make()), replace(THEME, name="A product with a rather long name, second edition")
        )
        assert {"fragment.html", "table.svg", "table.png", "og.png"} <= set(files_of(made)), name
        for svg in filter(None, (table_picture(made), bars(made), bars(made, 340, framed=False))):
            root = ElementTree.fromstring(svg)
            for start, end, text in placed(root, {}, 0):
                assert start >= -2, (name, text)
                assert end <= float(root.attrib["width"]) + 2, (name, text)


def placed(element: ElementTree.Element, around: dict[str, str], left: float) -> Iterator[tuple[float, float, str]]:
    """Each text with its left and right ends, in the picture's own coordinates."""
    own = {**around, **element.attrib}
    if element.tag.endswith("}text"):
        wide = width_of(element.text or "", float(own["font-size"]), bold="font-weight" in own)
        start = left + float(own["x"]) - wide * {"end": 1, "middle": 0.5}.get(own.get("text-anchor", ""), 0)
        yield start, start + wide, element.text or ""
    left += float(element.get("x", 0)) if element.tag.endswith("}svg") else 0
    for child in element:
        yield from placed(child, own, left)


@pytest.mark.parametrize("fonts", [("No Font", "sans-serif"), ("serif",), ("monospace",), ("system-ui",), ("No Font",)])
def test_a_text_is_drawn_in_any_font(fonts: tuple[str, ...]) -> None:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20" font-family="{product_page.family(fonts)}">'
    first, second = (png(f'{head}<text x="2" y="15" font-size="12">{text}</text></svg>') for text in ("941", ""))
    assert first != second


def test_files_of_a_product_replace_links_and_pipes_and_nothing_behind_them(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "out/fragment.html").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / "out/og.png")
    (tmp_path / "out/table.svg").symlink_to(tmp_path)
    write_files(dict.fromkeys(("fragment.html", "og.png", "table.svg"), b"new"), tmp_path / "out")
    assert (tmp_path / "precious").read_text() == "precious"
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if not path.is_symlink()}
    assert written == dict.fromkeys(("fragment.html", "og.png", "table.svg"), b"new")
    with pytest.raises(InputError, match="cannot create this folder"):
        write_files({"a": b"1"}, tmp_path / "precious")
