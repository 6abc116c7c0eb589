"""`rigctl check` as a user: the answer, the table, the exit code, JSON; and what `run` refuses by itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
from user import User

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "check.schema.json"
RULE = "ip length > 1000 drop"
HOLE = f"echo 'table inet t {{ chain c {{ type filter hook input priority 0; iifname eth0 {RULE}; }}; }}' | nft -f -"


@contextmanager
def ruled(guest: User, rule: str) -> Iterator[None]:
    guest.rigctl("rig", "exec", "gigablox", "pi2", "--", rule)
    try:
        yield
    finally:
        guest.rigctl("rig", "exec", "gigablox", "pi2", "--", "nft delete table inet t")


def test_a_black_hole_is_an_error_of_check_and_run_refuses_it_before_the_first_test(guest: User) -> None:
    scenario = guest.scenario("rig: gigablox\npairs: [pi1 -> pi2]\nduration: 1s\n")
    with ruled(guest, HOLE):
        document = json.loads(guest.rigctl("check", scenario, "--json", code=3))
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))
        (hole,) = (path for path in document["paths"] if path["path_mtu_bytes"] == 1000)
        assert (hole["source"], hole["destination"], hole["icmp_payload_bytes"]) == ("pi1", "pi2", 972)
        refused = guest.rigctl("run", scenario, code=3)
        assert "no test can be measured on the rig as it is" in refused
        assert "pi1 -> pi2: black hole" in refused
        assert json.loads(guest.rigctl("runs", "--json"))["runs"] == []


def test_a_run_says_which_tests_cannot_work_and_measures_the_others(guest: User) -> None:
    pairs = "pairs: [pi3 -> pi4, pi1 -> pi2]\nmatrix: {pairs: [2, 1]}"
    scenario = guest.scenario(f"rig: gigablox\nduration: 800ms\nmax_skew: 800ms\n{pairs}\n")
    with ruled(guest, HOLE.replace(RULE, "drop")):
        said = guest.rigctl("run", scenario, "--no-report", code=3)
    assert "pi1 -> pi2: TCP and UDP to port" in said
    first, second = guest.rows("cells")
    assert (first["status"], second["status"]) == ("failed", "ok")
    assert first["reason"].startswith("pi1: connect: ")


def test_wrong_input_is_refused_with_2(user: User) -> None:
    user.rigctl("check", "no-such-thing", code=2)
    rig = user.folder / "r.yaml"
    rig.write_text("virtual: namespaces\nnodes: {a: , b: }\n")
    assert "is a rig file" in user.rigctl("check", "r.yaml", "--set", "window=64K", code=2)
