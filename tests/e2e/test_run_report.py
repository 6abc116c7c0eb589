"""Where a run's report goes: checked before anything is measured, and never in the way of the result."""

import json
from pathlib import Path

from processes import eventually
from user import User

QUICK = "rig: loopback\npairs: [pi1 -> pi2]\nduration: 800ms\nmax_skew: 1s\n"


def test_a_place_where_no_report_can_be_written_is_refused_before_measuring(user: User) -> None:
    scenario = user.scenario(QUICK)
    (user.folder / "folder").mkdir()
    for place, said in (
        ("/nowhere/x.html", "the report cannot be written there: No such file or directory"),
        ("folder", "is a folder. Name a file in it"),
        ("r.pdf", "the report is HTML. Name a file that ends with .html"),
    ):
        told = user.rigctl("run", scenario, "--report", place, code=2)
        assert told.startswith(f"rigctl: {place}: {said}")
        assert told.count("\n") == 1
    assert not (user.folder / "store.db").exists()
    assert user.processes() == {}


def test_pages_are_kept_in_a_folder_of_their_own_or_not_at_all(user: User) -> None:
    user.environment["RIGCTL_REPORTS"] = "none"
    said = user.rigctl("run", user.scenario(QUICK))
    assert "\nrun    20" in said
    assert "report " not in said
    assert "unshaped" in said
    assert all(row["ceiling_mbps"] is None and row["limit"] not in ("line-rate", "rate") for row in user.rows())
    assert list(user.folder.rglob("*.html")) == []
    user.environment["RIGCTL_REPORTS"] = str(user.folder / "of" / "runs")
    said = user.rigctl("run", user.scenario(QUICK))
    told = [Path(line.removeprefix("report ")) for line in said.splitlines() if line.startswith("report ")]
    assert [page.parent for page in told] == [user.folder / "of" / "runs"]
    assert told == sorted(user.folder.rglob("*.html"))
    user.environment["RIGCTL_REPORTS"] = str(user.folder / "store.db")
    assert "the report cannot be written there" in user.rigctl("run", user.scenario(QUICK), code=2)


def test_whatever_happens_to_the_page_the_table_and_the_id_are_printed(user: User) -> None:
    # Good when it is looked at, no more when it is written: the page turns into a folder meanwhile.
    page = user.folder / "page.html"
    process = user.start("run", user.scenario(QUICK.replace("800ms", "2s")), "--report", "page.html")
    eventually(lambda: (user.folder / "store.db").exists())
    page.mkdir()
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    run = json.loads(user.rigctl("runs", "--json"))["runs"][0]["run"]
    assert f"run    {run}" in out
    assert "Mbit/s" in out
    last = errors.splitlines()[-1]
    assert last.startswith("rigctl: page.html: is a folder. Name a file in it. The run is stored: rigctl report")
    assert "Traceback" not in errors
