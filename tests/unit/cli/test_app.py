import errno
import json
from pathlib import Path

import json_schemas
import pytest
from in_process import Rigctl

from rigctl.base.errors import NodeError, RigError
from rigctl.cli import errors
from rigctl.cli.app import COMMANDS, every_command, exit_code
from rigctl.cli.options import UNFINISHED, complete_resume

EVERY = every_command()  # here: asyncssh starts ldconfig when it is imported, which no unit test may


def test_the_list_of_commands_has_the_first_line_of_each_help_without_importing_one(rigctl: Rigctl) -> None:
    listed = " ".join(rigctl("--help").out.replace("│", " ").split())
    assert [name for name in COMMANDS if str(EVERY.commands[name].help).partition("\n")[0] not in listed] == []


def test_an_unknown_command_is_a_usage_error(rigctl: Rigctl) -> None:
    for words, said in (("plann", "Did you mean 'plan'"), ("rig statu", "'status'"), ("--nope", "--nope")):
        assert said in rigctl(*words.split(), code=2).errors


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", list(json_schemas.FILES))
def test_the_schema_in_docs_is_what_the_model_makes_and_on_its_page(name: str) -> None:
    made = json_schemas.schema_text(json_schemas.FILES[name])
    assert json.loads(made)["properties"]["version"]["const"] == 1
    assert (DOCS / "schemas" / name).read_text() == made, "python docs/json_schemas.py"
    assert f"schemas/{name})" in (DOCS / "reference" / "json.md").read_text()


def test_resume_needs_no_value() -> None:
    assert complete_resume(["run", "s.yaml", "--resume"]) == ["run", "s.yaml", "--resume", UNFINISHED]
    assert complete_resume(["run", "--resume", "s.yaml"]) == ["run", "--resume", UNFINISHED, "s.yaml"]
    for whole in (["run", "s.yaml", "--resume", "latest"], ["run", "s.yaml"]):
        assert complete_resume(whole) == whole


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


@pytest.fixture(autouse=True)
def no_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIGCTL_DEBUG", raising=False)


def test_an_error_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    first = NodeError("pi1", "in use by \x1b]0;pwned\x07\x1b[2J")
    errors.print_error(RigError(f"{first}\npi2: \x9b31m down"))
    assert capsys.readouterr().err == "rigctl: pi1: in use by ?]0;pwned??[2J\npi2: ?31m down\n"


@pytest.mark.parametrize(
    ("error", "words", "absent"),
    [
        (OSError(errno.EINVAL, "Invalid argument"), "Invalid argument", "output cannot be written"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "Broken pipe", "output cannot be written"),
        (OSError(errno.EMFILE, "Too many open files", "/tmp/x"), "ulimit -n", "internal error"),
        (RuntimeError("can't start new thread"), "ulimit -v", "internal error"),
        (MemoryError(), "ulimit -v", "internal error"),
    ],
)
def test_an_error_is_put_down_to_its_cause(
    error: BaseException, words: str, absent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert errors.exit_code_of(error) == RigError.exit_code
    message = capsys.readouterr().err
    assert (words in message, absent in message) == (True, False)
