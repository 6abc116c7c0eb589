"""A real terminal for tests: tmux with a server of its own, whose screen can be read, resized and taken away."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class Terminal:
    """A window of tmux."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout

    def screen(self) -> list[str]:
        return self.tmux("capture-pane", "-p").splitlines()

    def shows(self, seen: Callable[[str], bool], deadline_s: float = 60) -> str:
        """The screen, once `seen` holds for it."""
        until_s = time.monotonic() + deadline_s
        while time.monotonic() < until_s:
            text = "\n".join(self.screen())
            if seen(text):
                return text
            time.sleep(0.1)
        raise AssertionError(f"not shown within {deadline_s:g} s:\n{text}")

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def process(self) -> int:
        """What runs in it."""
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))


@contextmanager
def terminal(
    folder: Path, command: Sequence[str], environment: Mapping[str, str], columns: int = 100, rows: int = 30
) -> Iterator[Terminal]:
    """`command` in a terminal of its own; the server ends with the block, at the latest."""
    found = Terminal(folder / f"tmux-{columns}x{rows}")
    given = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    size = ["-x", str(columns), "-y", str(rows)]
    kept = [";", "set-option", "-g", "remain-on-exit", "on"]  # what a command said at its end stays to be read
    found.tmux("new-session", "-d", "-c", str(folder), *size, *given, "--", *command, *kept)
    try:
        yield found
    finally:
        subprocess.run(["tmux", "-S", str(found._socket), "kill-server"], capture_output=True, timeout=20, check=False)
