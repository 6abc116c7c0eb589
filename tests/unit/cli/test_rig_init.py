"""`rig init`: what is refused before any host is asked."""

from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.cli.commands.rig import check_place, init, named_hosts
from rigctl.discovery.inventory import Inventory


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


def test_hosts_of_the_command_line_come_before_those_of_the_inventory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts").touch()
    groups = {"web": ["w1", "w2"], "db": ["d"]}
    read = Inventory(tmp_path / "hosts", groups, {"all": ["web", "db"]}, {"d": {"ansible_connection": "docker"}})
    monkeypatch.setattr("rigctl.cli.commands.rig.read_inventory", lambda _: read)
    found, notes = named_hosts(["pi1"], f"{tmp_path}/hosts:web", [])
    assert ([target.text for target in found], notes) == (["pi1", "w1", "w2"], [])
    found, notes = named_hosts([], f"{tmp_path}/hosts", [])
    assert ([target.text for target in found], len(notes)) == (["w1", "w2"], 1)


def test_a_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text("first")
    with pytest.raises(InputError, match="exists"):
        check_place(path, force=False)
    check_place(path, force=True)
