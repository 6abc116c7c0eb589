"""No output of an anonymous run has a private text of the run, whatever is printed of it.

Every private text of each stored run is replaced by a mark that no page has by itself; then all outputs are searched.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final

import pandas as pd
import pytest
from documents import printed
from pages import STORED, stored
from private_runs import with_private_texts
from rich.console import Console

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.cli.app import exit_code
from rigctl.figures import Level
from rigctl.records import Capture, Direction, Repetition, RunInfo
from rigctl.report.document import document
from rigctl.report.export.ci import bencher, benchmark_action, ktap_of, suite_of
from rigctl.report.export.formats import FORMATS
from rigctl.report.export.hgrm import percentile_files
from rigctl.report.export.openmetrics import render
from rigctl.report.printers.html import page
from rigctl.report.printers.json import as_json
from rigctl.report.printers.junit import junit
from rigctl.report.printers.markdown import markdown
from rigctl.report.printers.terminal import print_brief
from rigctl.results.frames import Frames
from rigctl.results.read import read_results
from rigctl.store import open_store

MARKS: Final = re.compile(r"zq\d+zq|zqfe|0e:fe:|10\.254\.|fd99:", re.IGNORECASE)
COUNT: Final = 10
"""Least number of marks in the outputs of a run that is not anonymous: the search finds them."""


def marking() -> Callable[[str], str]:
    made: dict[str, str] = {}
    numbers = count(1)

    def change(text: str) -> str:
        if text not in made:
            number = next(numbers)
            if text.count(":") == 5:
                made[text] = f"0e:fe:00:00:{number // 256:02x}:{number % 256:02x}"
            elif ":" in text and not set(text) - set("0123456789abcdef:/"):
                made[text] = f"fd99::{number:x}"
            elif text.count(".") == 3 and text.split("/", maxsplit=1)[0].replace(".", "").isdigit():
                made[text] = f"10.254.{number // 256}.{number % 256}"
            else:
                made[text] = f"zq{number}zq"
        return made[text] if text else ""

    return change


def marked(name: str, change: Callable[[str], str]) -> tuple[RunInfo, list[Repetition]]:
    """Return a stored run with marks for its private texts, with a tag, and with a capture."""
    info, repetitions = stored(name)
    info = replace(info, tags={"firmware": "1.2", "rigctl.answer": "fast"})
    pair = info.plan.cells[0].pairs[0]
    capture = Capture(pair.source, pair, Direction.FORWARD, "x.pcap", 7, 0, False)
    return with_private_texts(info, [replace(one, captures=(capture,)) for one in repetitions], change)


@pytest.fixture
def private(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a store of runs with marks, the same for the same text, and returns its place."""

    def make(*names: str) -> Path:
        path, change = tmp_path / "private.db", marking()
        with open_store(str(path)) as store:
            for name in names:
                store.put(*marked(name, change))
        return path

    return make


def outputs(place: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each output of the run in a store."""
    with open_store(str(place), create=False) as store:
        info = store.run()
        view = RunView(read_results(store, info))
        made, frames = document(view), Frames(view.stored)
        yield "show", "\n".join(printed(made))
        yield "show --all", "\n".join(printed(made, everything=True))
        yield "show --markdown", markdown(made)
        yield "show --json", as_json(made)
        text = io.StringIO()
        print_brief(made, Console(file=text))
        yield "show --brief", text.getvalue()
        yield "report", page(made)
        for level in Level:
            for form, write in FORMATS.items():
                content = write(frames.rows(level), level)
                parquet = form == "parquet"
                shown = pd.read_parquet(io.BytesIO(content)).to_csv() if parquet else content.decode()
                yield f"export -f {form} -l {level.name.lower()}", shown
        yield "junit", junit([suite_of(view)])
        yield "ktap", ktap_of(view)
        yield "openmetrics", render(view).decode()
        with suppress(InputError):  # the run has no such times
            yield "hgrm", "".join(f"{name}\n{content.decode()}" for name, content in percentile_files(view).items())
        for name, write_figures in (("bencher", bencher), ("benchmark-action", benchmark_action)):
            try:
                yield name, write_figures(view).decode()
            except InputError as error:  # the run has no such figure
                yield name, str(error)


def found(place: Path) -> list[str]:
    """Return where marks are in the outputs of a run, and what they are."""
    return [f"{name}: {mark[0]}" for name, text in outputs(place) for mark in MARKS.finditer(text)]


@pytest.mark.parametrize("name", STORED)
def test_no_output_of_an_anonymous_run_has_a_private_text(
    name: str, private: Callable[..., Path], tmp_path: Path
) -> None:
    original, file = private(name), tmp_path / "shared.rigctl"
    words = ["export", "--format", "rigctl", "--anonymous", "-o", str(file), "--store", str(original)]
    assert exit_code(words) == 0
    assert found(file) == []
    whole = re.compile(MARKS.pattern.encode(), re.IGNORECASE)
    assert whole.search(file.read_bytes()) is None
    if name == "streams":
        assert len(found(original)) > COUNT


COMMANDS: Final = (
    ("show",), ("show", "--all"), ("show", "--brief"), ("show", "--json"), ("show", "--markdown"),
    *(("export", "--format", form) for form in ("junit", "ktap", "openmetrics", "bencher", "benchmark-action")),
    *(("export", "--format", form, "--level", "flows") for form in ("csv", "json", "md")),
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_prints_the_anonymous_run(
    words: tuple[str, ...], private: Callable[..., Path], rigctl: Callable[..., str]
) -> None:
    place = str(private("latency"))
    told, hidden = (rigctl(*words, *more, "--store", place) for more in ((), ("--anonymous",)))
    assert MARKS.search(told) or "--brief" in words
    assert MARKS.search(hidden) is None
    assert hidden
    if words == ("show", "--json"):
        assert {own["pair"] for own in json.loads(hidden)["figures"]} == {None, "A → B", "C → D"}


def test_pages_have_the_same_letters_and_a_name_of_their_own(
    private: Callable[..., Path], rigctl: Callable[..., str], tmp_path: Path
) -> None:
    place = str(private("before", "invalid"))
    with open_store(place) as store:
        first, second = store.run_ids()
    rigctl("report", first, "--anonymous", "--store", place)
    (made,) = (tmp_path / "rigctl-reports").iterdir()
    assert made.name == f"scenario-{first}-anonymous.html"
    compared = rigctl("report", second, "--compare", first, "--anonymous", "--store", place, file="both.html")
    rigctl("report", first, "--anonymous", "--fragment", "shop", "--store", place)
    texts = [made.read_text(), compared, *(path.read_text() for path in (tmp_path / "shop").glob("*.html"))]
    assert len(texts) > 2
    for text in texts:
        assert MARKS.search(text) is None
        assert "Reproduce" not in text
    assert "letters and numbers in place of their names" in texts[0]


def test_an_anonymous_run_file_is_imported_as_any_other_and_has_an_answer(
    private: Callable[..., Path], rigctl: Callable[..., str], tmp_path: Path
) -> None:
    place, other = str(private("mesh")), str(tmp_path / "other.db")
    assert exit_code(["export", "--anonymous", "-f", "rigctl", "-o", "m.rigctl", "--store", place]) == 0
    rigctl("import", "m.rigctl", "--store", other)
    listed = rigctl("runs", "--store", other)
    assert "A slow" in listed
    again = rigctl("show", "--anonymous", "--store", place)
    assert rigctl("show", "--store", other) == again == rigctl("show", "--anonymous", "--store", other)


def test_commands_for_slurm_are_refused_because_they_are_names_of_nodes(
    private: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["export", "--anonymous", "-f", "slurm", "--store", str(private("mesh"))]) == 2
    assert "slurm is commands with the names of nodes. Leave --anonymous out" in capsys.readouterr().err
