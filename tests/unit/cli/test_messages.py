"""What a command prints of an error: one message, and no command to the terminal."""

import errno

import pytest

from rigctl.base.errors import NodeError, RigError
from rigctl.cli import errors


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
    assert words in message
    assert absent not in message
