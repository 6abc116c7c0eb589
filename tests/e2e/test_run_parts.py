"""A run with parts as a user measures it: a search, classes and a ping-pong in one run, and a product card of it."""

from pathlib import Path

from real_runs import Maker, Real
from user import User

from rigctl.records import RunStatus

PARTS = """
title: Three parts
rig: five-ports
duration: 300ms
max_skew: 300ms
parts:
  forwarding:
    test: udp
    pairs: [n1 -> n2, n2 -> n1]
    matrix: {size: 1472, rate: max}
  full port:
    test: udp
    size: 1472
    duration: 1s
    classes:
      free: {pairs: [n1 -> n2], rate: 20%}
      load: {pairs: [n3 -> n4], rate: 20%, start: 25%}
  delay:
    test: pingpong
    transport: udp
    pairs: [n1 -> n2]
    matrix: {size: 18, iterations: 20}
"""


def parts(maker: Maker) -> None:
    planned = maker.rigctl("plan", maker.scenario(PARTS))
    assert [line for line in planned.splitlines() if line.startswith("Part ")] == [
        "Part forwarding:",
        "Part full port:",
        "Part delay:",
    ]
    maker.measures("parts", PARTS, "--report", "parts.html")


def test_each_part_is_measured_and_reported_below_its_name(real: Real, host: User) -> None:
    made = real(parts, host)["parts"]
    rows = [row for row in made.rows() if row["counted"]]
    assert [(row["cell"], row["part"]) for row in rows] == [
        (1, "forwarding"),
        (1, "forwarding"),
        (2, "full port"),
        (3, "full port"),
        (4, "delay"),
    ]
    assert all(row["goodput_mbps"] > 0 for row in rows[:4])
    assert rows[4]["status"] == "ok"
    for name in ("forwarding", "full port", "delay"):
        assert f"\n\n{name}\n" in made.said
    page = (made.folder / "parts.html").read_text()
    assert all(f'id="test-{number}"' in page for number in range(1, 5))


def test_a_product_card_is_made_of_the_run(real: Real, host: User, tmp_path: Path) -> None:
    made = real(parts, host)["parts"]
    host.rigctl("report", "--fragment", str(tmp_path), "--store", str(made.folder / "store.db"))
    assert {path.name for path in tmp_path.iterdir()} == {"fragment.html", "table.svg", "table.png", "og.png"}
    fragment = (tmp_path / "fragment.html").read_text()
    assert "1518 B" in fragment
    assert "2 ports at once, both directions, trials of 300 ms. Idle – W, full – W." in fragment


def test_a_run_that_was_cut_in_one_part_is_taken_up_there(replayed: User) -> None:
    replayed.replay.says(failing={"4": "no route to host"})
    scenario = replayed.scenario(PARTS.replace("rate: max", "rate: 10M"))
    replayed.rigctl("run", scenario, "--no-report", code=3)
    assert {key[0] for key in replayed.replay.began} == {1, 2, 4}  # classes are measured together
    replayed.replay.says()
    before = len(replayed.replay.began)
    replayed.rigctl("run", scenario, "--no-report", "--resume")
    assert {key[0] for key in replayed.replay.began[before:]} == {4}
    with replayed.store() as store:
        info = store.run(None)
    assert info.status is RunStatus.COMPLETE
    assert info.plan.parts == ("forwarding", "full port", "delay")
