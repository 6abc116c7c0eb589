"""Every text of a run is someone else's: nothing is rendered, executed or calculated, in any form that is printed."""

import csv
import io
import json
import re
from collections import Counter

import hostile_runs
import pytest
from documents import document, printed
from hostile_runs import Elements
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from rigctl.analysis.run_view import RunView
from rigctl.base.texts import harmless, printable
from rigctl.figures import Level
from rigctl.report.export.formats import FORMATS
from rigctl.report.export.openmetrics import render
from rigctl.report.printers.html import PLACE, page
from rigctl.report.printers.markdown import markdown
from rigctl.results.frames import load_frames
from rigctl.store.bounds import harmless_row

DATA = re.compile(r'<script type="application/json" id="rigctl-data">\n(.*?)\n</script>', re.DOTALL)
NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?")


def tokens(text: str) -> Counter[str]:
    """Count what a reader of Markdown makes of such a run, GitHub's tables and lines through words included."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    found: Counter[str] = Counter()
    for token in parser.parse(markdown(document(*hostile_runs.run(text)))):
        found.update([token.type])
        found.update(child.type for child in token.children or () if child.type not in ("text", "text_special"))
    return found


@pytest.mark.parametrize("text", [*hostile_runs.MARKUP, PLACE])
def test_a_page_has_the_elements_of_any_other(text: str) -> None:
    hostile = page(document(*hostile_runs.run(text)))
    found = Elements(hostile).found
    assert found.keys() == Elements(page(document(*hostile_runs.run("x" * len(text))))).found.keys()
    # The data, and the script of the charts.
    assert found["script", ("id", "type")] == found["script", ()] == 1
    assert hostile.count("<script") == 2
    (data,) = DATA.findall(hostile)
    assert json.loads(data)["title"] == f"{text}GigaBlox: seven tests, two pairs at once"


@pytest.mark.parametrize("text", hostile_runs.MARKUP)
def test_markdown_is_no_more_than_words(text: str) -> None:
    hostile, plain = tokens(text), tokens("x" * len(text))
    assert hostile.keys() == plain.keys()
    assert not hostile.keys() & {"html_block", "html_inline", "image", "s_open", "entity"}


@pytest.mark.parametrize("text", hostile_runs.MARKUP[1:3])
def test_a_terminal_shows_markup_as_it_is(text: str) -> None:
    shown = "\n".join(printed(document(*hostile_runs.run(text)), 4000, everything=True))
    assert f"{text}GigaBlox" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("text", hostile_runs.FORMULAS)
@pytest.mark.parametrize("level", [Level.CELLS, Level.PAIRS, Level.FLOWS])
def test_no_field_of_a_csv_is_a_formula(text: str, level: Level) -> None:
    made = FORMATS["csv"](load_frames(*hostile_runs.run(text)).rows(level), level).decode()
    table = list(csv.reader(io.StringIO(made, newline="")))
    assert len({len(row) for row in table}) == 1
    signs = tuple(sign[0] for sign in hostile_runs.FORMULAS)
    fields = [field for row in table for field in row if field.startswith(signs)]
    assert all(NUMBER.fullmatch(field) for field in fields), fields


@pytest.mark.parametrize("text", hostile_runs.MARKUP)
def test_openmetrics_has_no_figure_that_a_text_brought(text: str) -> None:
    families = list(text_string_to_metric_families(render(RunView.in_memory(*hostile_runs.run(text))).decode()))
    assert all(family.name.startswith("rigctl_") for family in families)
    assert {sample.labels["rig"] for family in families for sample in family.samples} == {f"{text}gigablox"}


@pytest.mark.parametrize("form", ["json", "md", "parquet"])
def test_other_exports_hold_any_text(form: str) -> None:
    for text in hostile_runs.MARKUP:
        assert FORMATS[form](load_frames(*hostile_runs.run(text)).rows(Level.PAIRS), Level.PAIRS)


def test_what_commands_a_terminal_is_gone_before_it_is_a_record() -> None:
    said = hostile_runs.COMMANDS
    for made in (printable(said), json.dumps(harmless({said: said}))):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202e\u2066]", made)
        assert "pwned" in made


@pytest.mark.parametrize("sign", ["\ufffe", "\uffff"])
def test_what_xml_has_no_place_for_is_gone_too(sign: str) -> None:
    assert printable(f"a{sign}b") == harmless_row({"reason": f"a{sign}b"})["reason"] == "a?b"
