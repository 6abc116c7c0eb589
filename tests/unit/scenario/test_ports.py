"""A range of ports that is too small for a test is told before any node is touched."""

from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.scenario.load import Overrides, load_plan

SCENARIO = "rig: r.yaml\nduration: 1s\n"


def planned(folder: Path, ports: str, lines: str) -> None:
    nodes = "".join(f"  {name}: {{data_ports: {ports}}}\n" for name in "abc")
    (folder / "r.yaml").write_text(f"virtual: loopback\nlinks: {{mtu: 1500}}\nnodes:\n{nodes}")
    (folder / "t.yaml").write_text(SCENARIO + lines)
    load_plan(str(folder / "t.yaml"), Overrides())


@pytest.mark.parametrize(
    ("ports", "lines", "node", "test", "needed"),
    [
        ("5000-5000", "pairs: [a -> c, b -> c]\n", "c", 1, 2),
        ("5000-5000", "pairs: [a -> b]\nlatency: true\n", "b", 1, 2),
        ("5000-5001", "pairs: [a -> c, b -> c]\nmatrix: {direction: [forward, both]}\nlatency: true\n", "c", 1, 4),
        ("5000-5000", "pairs: [a -> b]\nclasses: {voice: {test: udp, rate: 1M, size: 172}, bulk: {}}\n", "b", 1, 2),
    ],
)
def test_a_range_with_too_few_ports_is_refused(
    tmp_path: Path, ports: str, lines: str, node: str, test: int, needed: int
) -> None:
    with pytest.raises(InputError, match=rf"nodes\.{node}: data_ports: {ports} has .*; test {test} needs {needed} at"):
        planned(tmp_path, ports, lines)


def test_flows_of_a_stream_share_its_port(tmp_path: Path) -> None:
    planned(
        tmp_path, "5000-5000", "pairs: [a -> b]\nmatrix: {parallel: [1, 10], direction: [forward, reverse, both]}\n"
    )
    planned(tmp_path, "5000-5003", "pairs: mesh-parallel\nlatency: true\n")
