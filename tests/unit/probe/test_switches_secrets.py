"""Credentials of switches: from the environment or from a file that is closed to others, and nowhere else."""

from pathlib import Path

import pytest

from rigctl.base.errors import NodeError
from rigctl.probe.switches.secrets import secrets_of
from rigctl.rig.inventory import Secrets, Snmp, Switch

SWITCH = Switch("core-1", "Core", address="10.0.0.1", snmp=Snmp())


def written(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "credentials.yaml"
    path.write_text(text)
    path.chmod(mode)
    return {"RIGCTL_CREDENTIALS": str(path)}


def test_the_environment_names_the_switch_in_capitals() -> None:
    given = {"RIGCTL_CORE_1_COMMUNITY": "c", "RIGCTL_CORE_1_ENABLE": "e", "RIGCTL_OTHER_USER": "x", "HOME": "/nowhere"}
    assert secrets_of(SWITCH, given) == Secrets(community="c", enable="e")


def test_a_file_has_a_section_per_switch_and_a_variable_wins_over_it(tmp_path: Path) -> None:
    given = written(tmp_path, "core-1: {user: monitor, auth: one, priv: two}\nother: {community: x}\n")
    assert secrets_of(SWITCH, given) == Secrets(user="monitor", auth="one", priv="two")
    assert secrets_of(SWITCH, given | {"RIGCTL_CORE_1_AUTH": "three"}).auth == "three"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_is_open_to_others_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    given = written(tmp_path, "core-1: {community: topsecret}\n", mode)
    with pytest.raises(NodeError) as caught:
        secrets_of(SWITCH, given)
    assert f"is open to others: chmod 600 {tmp_path / 'credentials.yaml'}" in str(caught.value)
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "core-1: topsecret\n",
        "core-1: {comunity: topsecret}\n",
        "core-1: [topsecret]\n",
        "core-1: {community: *topsecret}\n",
        "{topsecret",
        "topsecret",
    ],
)
def test_a_file_that_is_none_is_refused_without_telling_what_is_in_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(NodeError) as caught:
        secrets_of(SWITCH, written(tmp_path, text))
    assert "credentials.yaml" in str(caught.value)
    assert "topsecret" not in str(caught.value)


def test_secrets_are_in_no_text_of_them() -> None:
    text = repr(
        Secrets(community="topsecret", auth="topsecret", priv="topsecret", password="topsecret", enable="topsecret")
    )
    assert "topsecret" not in text
