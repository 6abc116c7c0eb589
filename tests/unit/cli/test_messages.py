"""What a command prints of an error: one message, and no command to the terminal."""

import errno

import pytest

from rigctl.base.errors import NodeError, RigError
from rigctl.cli import errors


def test_an_error_moves_no_cursor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIGCTL_DEBUG", raising=False)
    first = NodeError("pi1", "in use by \x1b]0;pwned\x07\x1b[2J")
    errors.print_error(RigError(f"{first}\npi2: \x9b31m down"))
    assert capsys.readouterr().err == "rigctl: pi1: in use by ?]0;pwned??[2J\npi2: ?31m down\n"


@pytest.mark.parametrize(
    "error", [OSError(errno.EINVAL, "Invalid argument"), BrokenPipeError(errno.EPIPE, "Broken pipe")]
)
def test_an_error_of_something_else_is_not_put_down_to_the_output(
    error: OSError, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIGCTL_DEBUG", raising=False)
    assert errors.exit_code_of(error) == RigError.exit_code
    said = capsys.readouterr().err
    assert str(error.strerror) in said
    assert "output cannot be written" not in said


@pytest.mark.parametrize(
    ("error", "option"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/tmp/x"), "ulimit -n"),
        (RuntimeError("can't start new thread"), "ulimit -v"),
        (MemoryError(), "ulimit -v"),
    ],
)
def test_a_limit_of_the_process_is_named_with_how_to_raise_it(
    error: BaseException, option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIGCTL_DEBUG", raising=False)
    assert errors.exit_code_of(error) == RigError.exit_code
    said = capsys.readouterr().err
    assert option in said
    assert "internal error" not in said
