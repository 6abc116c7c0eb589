"""The list of commands, commands that do not exist, and the JSON Schemas of what `--json` prints."""

from pathlib import Path

import json_schemas
import pytest

from rigctl.cli.app import COMMANDS, every_command, exit_code
from rigctl.cli.options import UNFINISHED, with_resumed

EVERY = every_command()  # here: asyncssh starts ldconfig when it is imported, which no unit test may


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_list_is_the_first_line_of_a_command_s_own_help(name: str) -> None:
    whole = EVERY.commands[name].help or ""
    assert whole.partition("\n")[0] == COMMANDS[name][1]


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [(["plann"], "Did you mean 'plan'"), (["rig", "statu"], "'status'"), (["--nope"], "--nope")],
)
def test_an_unknown_command_is_a_usage_error(
    words: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(words) == 2
    assert suggestion in capsys.readouterr().err


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", list(json_schemas.FILES))
def test_the_schema_in_docs_is_what_the_model_makes(name: str) -> None:
    assert (DOCS / "schemas" / name).read_text() == json_schemas.schema_text(json_schemas.FILES[name]), (
        "python docs/json_schemas.py"
    )


def test_each_schema_is_on_its_page() -> None:
    page = (DOCS / "reference" / "json.md").read_text()
    assert [name for name in json_schemas.FILES if f"schemas/{name})" not in page] == []


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["run", "s.yaml", "--resume"], ["run", "s.yaml", "--resume", UNFINISHED]),
        (["run", "--resume", "s.yaml"], ["run", "--resume", UNFINISHED, "s.yaml"]),
        (["run", "s.yaml", "--resume", "latest"], ["run", "s.yaml", "--resume", "latest"]),
        (["run", "s.yaml"], ["run", "s.yaml"]),
    ],
)
def test_resume_needs_no_value(words: list[str], completed: list[str]) -> None:
    assert with_resumed(words) == completed


@pytest.mark.parametrize(
    ("typed", "completed"), [("rigctl run giga", ["gigablox"]), ("rigctl plan gigablox --rig fast", ["fast-ethernet"])]
)
def test_a_shell_completes_names(
    typed: str, completed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_RIGCTL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    with pytest.raises(SystemExit):
        exit_code([])
    assert capsys.readouterr().out.split() == completed
