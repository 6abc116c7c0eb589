"""Compare what rigctl prints of stored runs with the files in `pages/`. `make golden` renews them; read the diff.

`runs/` holds one stored run of each kind (`measure.py`), and three weeks of nights. The samples of the documentation
are compared in the same way, with the runs beside them.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from make_samples import without_data
from pages import PLANS, STORED
from progressing import lines_of

from rigctl.cli.app import exit_code
from rigctl.store import open_store

HERE: Final = Path(__file__).parent
PAGES: Final = HERE / "pages"
SAMPLES: Final = HERE.parents[1] / "reports" / "samples"
RENEW: Final = os.environ.get("RIGCTL_GOLDEN") == "renew"

FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "txt": ("show",),
    "all.txt": ("show", "--all"),
    "md": ("show", "--markdown"),
    "json": ("show", "--json"),
    "junit.xml": ("export", "--format", "junit"),
    "html": ("report",),
}
MORE: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "streams.pairs.json": ("streams", ("export", "--format", "json")),
    "streams.whole.json": ("streams", ("show", "--json")),
    "streams.whole.html": ("streams", ("report",)),
    **{f"{name}.openmetrics": (name, ("export", "--format", "openmetrics")) for name in ("streams", "pingpong")},
    **{f"{name}.ktap": (name, ("export", "--format", "ktap")) for name in ("expectations", "failed", "invalid")},
    "streams.pairs.md": ("streams", ("export", "--level", "pairs", "--format", "md")),
    **{
        f"{name}.{level}.csv": (name, ("export", "--level", level))
        for name, level in (
            ("streams", "cells"),
            ("streams", "pairs"),
            ("streams", "flows"),
            ("streams", "intervals"),
            ("search", "cells"),
            ("files", "bins"),
            ("pingpong", "histogram"),
        )
    },
    "against.compare.txt": ("against", ("compare",)),
    "against.compare.json": ("against", ("compare", "--json")),
    **{f"two.compare.{form}": ("two", ("compare", "--format", form)) for form in ("terminal", "html", "md", "json")},
    **{
        f"nights.regress.{form}": ("nights", ("regress", "--format", form))
        for form in ("terminal", "md", "json", "junit")
    },
    "nights.brief.md": ("nights", ("regress", "--format", "md", "--brief")),
    "nights.runs.json": ("nights", ("runs", "--json")),
}
Rigctl = Callable[..., str]


STYLE: Final = re.compile(r"<style>.*?</style>", re.DOTALL)


def cut(page: str, text: str) -> str:
    """Return what differs between runs: a page without data and style sheet, JSON without the figures by name.

    `MORE` has one page and one JSON document that are whole, and `test_one_truth.py` asks for every figure.
    """
    if page.endswith(".html"):
        return STYLE.sub("<style></style>", without_data(text))
    if page.endswith(".json"):
        return json.dumps(json.loads(text) | {"figures": []}, ensure_ascii=False, indent=1) + "\n"
    return text


def check(page: str, text: str, folder: Path = PAGES) -> None:
    """Compare a text with the stored page, or renew the page."""
    path = folder / page
    if RENEW:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text, "nothing was written"
    assert text == path.read_text(), f"{path} differs: `make golden` renews it, `git diff` shows what changed"


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", STORED)
def test_a_stored_run_is_printed_as_before(name: str, form: str, stores: Callable[[str], Path], rigctl: Rigctl) -> None:
    words = (*FORMATS[form], "--store", str(stores(name)))
    page = f"{name}.{form}"
    check(page, cut(page, rigctl(*words, file="page.html" if form == "html" else None)))


@pytest.mark.parametrize("name", STORED)
def test_the_table_of_a_run_fills_as_before(name: str, stores: Callable[[str], Path]) -> None:
    with open_store(str(stores(name))) as store:
        info = store.run(store.run_ids()[0])
        check(f"{name}.progress.txt", lines_of(info.plan, store.repetitions(info.run)))


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("page", MORE)
def test_further_output_of_stored_runs_is_as_before(page: str, stores: Callable[[str], Path], rigctl: Rigctl) -> None:
    name, words = MORE[page]
    check(page, rigctl(*words, "--store", str(stores(name)), file="page.html" if page.endswith("html") else None))


@pytest.mark.parametrize("name", PLANS)
def test_a_bundled_scenario_is_planned_as_before(name: str, rigctl: Rigctl) -> None:
    check(f"plan.{name}.json", rigctl("plan", name, "--json"))


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("form", ["txt", "html"])
@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.rigctl")))
def test_a_sample_is_what_rigctl_prints(name: str, form: str, stores: Callable[[str], Path], rigctl: Rigctl) -> None:
    words = (*FORMATS[form], "--store", str(stores(f"{SAMPLES / name}")))
    check(f"{name}.{form}", without_data(rigctl(*words, file="page.html" if form == "html" else None)), SAMPLES)


def test_a_run_survives_an_export_and_an_import(stores: Callable[[str], Path], tmp_path: Path) -> None:
    file = tmp_path / "again.rigctl"
    assert exit_code(["export", "--store", str(stores("streams")), "--format", "rigctl", "-o", str(file)]) == 0
    assert exit_code(["import", str(file), "--store", str(tmp_path / "again.db")]) == 0
    with open_store(str(stores("streams"))) as first, open_store(str(tmp_path / "again.db")) as second:
        assert [each.run for each in first.runs()] == [each.run for each in second.runs()]
        run = first.runs()[-1].run
        assert first.repetitions(run) == second.repetitions(run)


def test_no_page_is_left_over() -> None:
    of_runs = {f"{name}.{form}" for name in STORED for form in (*FORMATS, "progress.txt")}
    assert {path.name for path in PAGES.iterdir()} == {*of_runs, *MORE, *(f"plan.{each}.json" for each in PLANS)}
