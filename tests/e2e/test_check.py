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


def test_a_clean_rig_is_said_to_be_ready_first_and_its_nodes_follow(guest: User) -> None:
    said = guest.rigctl("check", "gigablox", "--all")
    lines = said.splitlines()
    assert " ".join(said.split()).count(": no error and no warning on 4 nodes: traffic can start") == 1
    assert "MTU out" in " ".join(said.split())
    assert [line.split()[0] for line in lines if line.startswith("pi")][:4] == ["pi1", "pi2", "pi3", "pi4"]
    assert "ok: all 4 nodes: reached by SSH" in said


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


def test_a_condition_that_a_node_cannot_have_is_an_error_of_check_in_the_words_of_the_run(guest: User) -> None:
    scenario = guest.scenario(
        "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 800ms\nmax_skew: 800ms\n"
        "conditions:\n  rings: {mtu: 1400, rings: {rx: 512}}\n  name: {sysctl: {net.ipv4.tcp_nonsense: 1}}\n"
        "  processor: {rps: 1000}\n  fine: {qdisc: {kind: pfifo, limit: 500}}\n"
    )
    errors = (
        "rings rx of eth0: Not supported; 512 was asked for, the card has no rings (EOPNOTSUPP)",
        "sysctl net.ipv4.tcp_nonsense: No such file or directory (ENOENT)",
        "rps of eth0: Invalid argument; 1000 was asked for, the node has 0",
    )
    document = json.loads(guest.rigctl("check", scenario, "--json", code=3))
    found = [finding["text"] for finding in document["findings"] if finding["level"] == "error"]
    said = " ".join(guest.rigctl("run", scenario, "--no-report", code=3).split())
    assert sorted(row["status"] for row in guest.rows("cells")) == ["failed"] * 3 + ["ok"]
    assert len(found) == len(errors)
    for condition, error in zip(("rings", "name", "processor"), errors, strict=True):
        text = f"condition {condition}: set: {error}"
        assert [each for each in found if each.startswith(f"pi1, pi2: {text}")], found
        assert text in said


def test_wrong_input_is_refused_with_2(user: User) -> None:
    user.rigctl("check", "no-such-thing", code=2)
    rig = user.folder / "r.yaml"
    rig.write_text("virtual: namespaces\nnodes: {a: , b: }\n")
    assert "is a rig file" in user.rigctl("check", "r.yaml", "--set", "window=64K", code=2)
