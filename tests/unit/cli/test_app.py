"""The list of commands, and commands that do not exist."""

import pytest

from rigctl.cli.app import COMMANDS, every_command, exit_code

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
