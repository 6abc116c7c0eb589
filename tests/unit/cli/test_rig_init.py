"""`rig init`: what is refused before any host is asked."""

from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.cli.commands.rig import check_place, init, named_hosts


def refused(*hosts: str, output: str = "lab.yaml", groups: tuple[str, ...] = (), as_json: bool = False) -> str:
    with pytest.raises(InputError) as caught:
        init([*hosts], groups=[*groups], output=output, as_json=as_json)
    return str(caught.value)


def test_what_can_be_known_beforehand_is_refused_beforehand(tmp_path: Path) -> None:
    assert "no host is named" in refused()
    assert "runs backwards" in refused("n[2-1]")
    assert "--group chooses from an inventory" in refused("pi1", groups=("web",))
    assert "-o - and --json both print" in refused("pi1", output="-", as_json=True)
    assert "is a folder. Name a file in it" in refused("pi1", output=str(tmp_path))
    assert "is no folder that you may write to" in refused("pi1", output=str(tmp_path / "none" / "lab.yaml"))


def test_hosts_of_the_command_line_come_before_those_of_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[web]\nw[1:2]\n[db]\nd\n")
    found = named_hosts(["pi1"], f"{tmp_path}/hosts:web", [])
    assert [target.text for target in found] == ["pi1", "w1", "w2"]
    assert [target.text for target in named_hosts([], f"{tmp_path}/hosts", ["db"])] == ["d"]


def test_a_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text("first")
    with pytest.raises(InputError, match="exists"):
        check_place(path, force=False)
    check_place(path, force=True)
