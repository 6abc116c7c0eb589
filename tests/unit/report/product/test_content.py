"""What is published: the table in a theme's columns and words, rounded down; pictures."""

import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import builders
import pages
import pytest

from rigctl.base.errors import InputError
from rigctl.report.blocks import Table
from rigctl.report.product import page as product_page
from rigctl.report.product.content import Product, product
from rigctl.report.product.page import files_of, write_files
from rigctl.report.product.pictures import CARD, bars, card, family, png, table, width_of
from rigctl.report.product.theme import Theme, WordsSection, load_theme

THEME = Theme("GigaBlox", maker="BotBlox")


def texts(made: Table) -> list[list[str]]:
    return [[entry.text for entry in row.entries] for row in made.rows]


def gigablox(theme: Theme = THEME) -> Product:
    return product(*builders.gigablox(), theme)


def test_a_theme_picks_columns_rows_and_words() -> None:
    words = WordsSection(goodput="Speed")
    theme = replace(THEME, columns=(("Test", "No."), ("Retransmits", "Sent twice")), tests=(5, 7), words=words)
    made = gigablox(theme).table
    assert [column.title for column in made.columns] == ["No.", "Sent twice"]
    assert texts(made) == [["5", "0, 0"], ["7", "0, 31"]]
    assert [column.title for column in gigablox(replace(THEME, words=words)).table.columns][4] == "Speed of each pair"


def test_a_column_that_the_run_has_not_is_refused_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("name: A\ncolumns:\n  - Test\n  - Retransmit\n")
    with pytest.raises(InputError, match=r't.yaml:4:5: column "Retransmit": .*Did you mean "Retransmits"'):
        gigablox(load_theme(tmp_path / "t.yaml"))
    with pytest.raises(InputError, match=r"tests: the run has no test 9. Its tests are 1 to 7"):
        gigablox(replace(THEME, tests=(9,)))


def test_no_figure_is_rounded_up() -> None:
    cell = builders.cell(1)
    info = builders.run(builders.plan([cell]))
    made = product(info, [builders.repetition(cell, (940.96, 929.5))], THEME).table
    titles = [column.title for column in made.columns]
    assert texts(made)[0][titles.index("Goodput of each pair")] == "940, 929"
    assert texts(made)[0][titles.index("Efficiency")] == "99.3"


def test_pictures_are_svg_and_png_with_their_source_inside() -> None:
    made = gigablox()
    for svg in (table(made), bars(made) or "", card(made)):
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg")
        assert "no product was connected" in "".join(root.itertext())
    files = files_of(made)
    assert {"chart.png", "table.png", "og.png"} <= set(files)
    assert all(files[name].startswith(b"\x89PNG") for name in files if name.endswith(".png"))
    size = (int.from_bytes(files["og.png"][16:20]), int.from_bytes(files["og.png"][20:24]))
    assert size == CARD


def test_every_kind_of_test_has_a_page_and_nothing_is_drawn_outside_its_pictures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(product_page, "png", lambda svg, scale=2: svg.encode())  # drawn above, once
    for name, make in pages.RUNS.items():
        made = product(*make(), replace(THEME, name="A product with a rather long name, second edition"))
        assert {"fragment.html", "table.svg", "table.png", "og.png"} <= set(files_of(made)), name
        for svg in filter(None, (table(made), bars(made), bars(made, 340, framed=False))):
            root = ElementTree.fromstring(svg)
            width = float(root.attrib["width"])
            for text in root.iter("{http://www.w3.org/2000/svg}text"):
                bold = "font-weight" in text.attrib
                wide = width_of(text.text or "", float(text.attrib["font-size"]), bold=bold)
                x = float(text.attrib["x"])
                start = x - wide if text.attrib.get("text-anchor") == "end" else x
                assert start >= -2, (name, text.text)
                assert start + wide <= width + 2, (name, text.text)


@pytest.mark.parametrize(
    "fonts", [("No Such Font", "sans-serif"), ("serif",), ("monospace",), ("system-ui",), ("No Such Font",)]
)
def test_a_text_is_drawn_in_any_font(fonts: tuple[str, ...]) -> None:
    def picture(text: str) -> bytes:
        return png(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20" font-family="{family(fonts)}">'
            f'<text x="2" y="15" font-size="12">{text}</text></svg>'
        )

    assert picture("941") != picture("")


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
    with pytest.raises(InputError, match="no folder can be made there"):
        write_files({"a": b"1"}, tmp_path / "precious")
