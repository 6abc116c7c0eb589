"""Grafana dashboards: each panel's query against a PostgreSQL with a week of nights, each metric against a file."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import builders
import many_nights
import postgres
import psycopg
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from rigctl.analysis.run_view import RunView
from rigctl.figures import Level
from rigctl.records import Night, NightOutcome
from rigctl.report.export.openmetrics import render
from rigctl.results.frames import load_frames
from rigctl.store import Store, open_store
from rigctl.store.run_files import take

FOLDER: Final = Path(__file__).parents[3] / "examples" / "grafana"
STORE: Final = json.loads((FOLDER / "postgresql.json").read_bytes())
METRICS: Final = json.loads((FOLDER / "openmetrics.json").read_bytes())
RUNS: Final = Path(__file__).parents[2] / "golden" / "runs"
NIGHTS: Final = 7
QUOTE: Final = "it's"
"""A scenario's name, which must not end a text of SQL."""


def panels(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {panel["title"]: panel for panel in board["panels"]}


@pytest.fixture(scope="module")
def nights(server: postgres.Server) -> Iterator[tuple[str, Store]]:
    database = server.emptied()
    with open_store(server.url(database)) as store:
        plan = many_nights.mesh_plan(("a", "b", "c"), repeat=2, scenario_name=QUOTE)
        for night in range(NIGHTS):
            run = many_nights.measure(store, plan, night)
            due_s = many_nights.FIRST_S + night * many_nights.DAY_S
            outcome = NightOutcome.QUIET
            store.history.put_night(Night(QUOTE, "lab", due_s, due_s, due_s + 60, outcome, run, None))
        store.add(run, builders.failed(plan.cells[0], repetition=3, started_at=due_s))
        store.history.tag(run, {"firmware": "1.2", "rigctl.x": "hidden"})
        many_nights.measure(store, replace(plan, rig_name="other"), NIGHTS)
        yield database, store


def asked(server: postgres.Server, database: str, sql: str) -> list[dict[str, Any]]:
    """The rows of a query, its macros and variables replaced as Grafana does."""
    begin = many_nights.FIRST_S - 60
    end = begin + (NIGHTS + 1) * many_nights.DAY_S
    sql = re.sub(r"\$__unixEpochFilter\(([^)]*)\)", rf"(\1 >= {begin:.0f} AND \1 <= {end:.0f})", sql)
    for name, value in (("scenario", QUOTE), ("rig", "lab")):
        sql = sql.replace(f"${{{name}:sqlstring}}", "'" + value.replace("'", "''") + "'")
    assert "$" not in sql
    with psycopg.connect(host=str(server.folder), user="rigctl", dbname=database) as connection:
        connection.read_only = True
        found = connection.execute(sql.encode())
        names = [column.name for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("title", panels(STORE))
def test_each_query_of_a_store_gives_rows(title: str, server: postgres.Server, nights: tuple[str, Store]) -> None:
    panel = panels(STORE)[title]
    (target,) = panel["targets"]
    rows = asked(server, nights[0], target["rawSql"])
    assert rows
    if panel["type"] == "timeseries":
        assert target["format"] == "time_series"
        assert set(rows[0]) == {"time", "metric", "value"}
        assert len({row["time"] for row in rows}) == NIGHTS
        assert len({(row["time"], row["metric"]) for row in rows}) == len(rows)


def test_its_goodput_is_that_of_rigctl(server: postgres.Server, nights: tuple[str, Store]) -> None:
    database, store = nights
    run = store.runs()[0]
    rows = [row for row in load_frames(run, store.repetitions(run.run)).rows(Level.PAIRS) if row["counted"]]
    at = datetime.fromtimestamp(run.started_at, UTC)
    for title, key in (("Goodput of each pair", "pair"), ("Goodput of each test", "test")):
        sql = panels(STORE)[title]["targets"][0]["rawSql"]
        found = {row["metric"]: float(row["value"]) for row in asked(server, database, sql) if row["time"] == at}
        expected: dict[str, list[float]] = {}
        for row in rows:
            pair = f": {row['source']} → {row['destination']}" if key == "pair" else ""
            name = f"test {row['cell']}{pair}"
            expected.setdefault(name, []).append(row["goodput_mbps"] * 1e6)
        assert found == {name: pytest.approx(fmean(values)) for name, values in expected.items()}
        assert len(found) == 6


def test_its_tables_and_variables_have_what_happened(server: postgres.Server, nights: tuple[str, Store]) -> None:
    def table(title: str) -> list[dict[str, Any]]:
        return asked(server, nights[0], panels(STORE)[title]["targets"][0]["rawSql"])

    first = table("Runs")[0]
    assert (first["measured"], first["tests"], first["tags"]) == (6, 6, "firmware=1.2")
    assert len(table("Nights")) == len(table("Runs")) == NIGHTS
    (failed,) = table("Repetitions that do not count")
    assert (failed["test"], failed["status"], failed["reason"]) == (1, "failed", "pi4: connection refused")
    assert [row["node"] for row in table("Nodes of the latest run")] == list(nights[1].runs()[0].facts)
    variables = {one["name"]: one["query"] for one in STORE["templating"]["list"] if one["type"] == "query"}
    assert [list(row.values()) for row in asked(server, nights[0], variables["scenario"])] == [[QUOTE]]
    assert [list(row.values()) for row in asked(server, nights[0], variables["rig"])] == [["lab"], ["other"]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of each metric in the files of recorded runs: of streams, with probes, with bounds, of messages."""
    found: dict[str, set[str]] = {}
    with open_store(str(tmp_path_factory.mktemp("runs") / "r.db")) as store:
        names = ("streams", "latency", "expectations", "pingpong")
        assert all(each.new for each in take(store, [RUNS / f"{name}.rigctl" for name in names]))
        for info in store.runs():
            text = render(RunView.in_memory(info, store.repetitions(info.run))).decode()
            for sample in (one for family in text_string_to_metric_families(text) for one in family.samples):
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("title", panels(METRICS))
def test_each_metric_and_label_of_the_other_dashboard_is_in_the_file(title: str, written: dict[str, set[str]]) -> None:
    (target,) = panels(METRICS)[title]["targets"]
    (metric,) = set(re.findall(r"rigctl_\w+", target["expr"]))
    labels = {
        *re.findall(r"(\w+)=", target["expr"]),
        *re.findall(r"{{(\w+)}}", target["legendFormat"]),
        *(label for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in group.split(", ")),
    }
    assert labels <= written[metric]


@pytest.mark.parametrize("board", [STORE, METRICS], ids=lambda board: board["title"])
def test_panels_have_places_of_their_own_and_the_chosen_data_source(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        fields = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                  for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert place["x"] + place["w"] <= 24
        assert not taken & fields
        taken |= fields
        assert panel["datasource"]["uid"] == panel["targets"][0]["datasource"]["uid"] == "${datasource}"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
