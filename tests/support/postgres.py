"""A real PostgreSQL server for tests: of an ordinary user, on a socket of its own in a folder of its own.

PostgreSQL refuses to run as root: root's tests start it as `nobody`. It ends with whoever started it, whatever happens.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
import pytest
from processes import DEADLINE_S, end, eventually, output_of

_NOBODY: Final = 65534
_SETTINGS: Final = (
    "listen_addresses=", "fsync=off", "full_page_writes=off", "shared_buffers=16MB",
    "max_connections=40", "dynamic_shared_memory_type=mmap", "autovacuum=off", "log_min_messages=fatal",
)  # fmt: skip


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`: Debian has one per version, the highest is taken."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[4]))
    if found:
        return found[-1].parent
    where = shutil.which("postgres")
    return Path(where).parent if where else None


class Server:
    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder = folder
        self._bin = bin_folder
        self._process: subprocess.Popen[bytes] | None = None
        options = ["-U", "rigctl", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"]
        output_of([*self._as_user(), bin_folder / "initdb", "-D", self._data, *options], cwd=folder)
        # By password for one user, so that a wrong one is refused.
        (self._data / "pg_hba.conf").write_text("local all anna scram-sha-256\nlocal all all trust\n")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _as_user(self) -> list[str]:
        """The beginning of a command that runs as an ordinary user, and ends with us."""
        own = ["--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"] if os.geteuid() == 0 else []
        return ["setpriv", *own, "--pdeathsig", "QUIT", "--"]  # SIGQUIT: PostgreSQL ends at once

    def start(self) -> None:
        options = [word for setting in _SETTINGS for word in ("-c", setting)]
        self._process = subprocess.Popen(
            [*self._as_user(), self._bin / "postgres", "-D", self._data, "-k", self.folder, *options],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=(self.folder / "log").open("ab"),
        )  # fmt: skip
        eventually(self._answers, "the server does not answer")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the server has ended: {(self.folder / 'log').read_text()}"
        with suppress(psycopg.OperationalError):
            self.sql("SELECT 1")
            return True
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: at once
            end(self._process, politely_for_s=DEADLINE_S)

    def sql(self, *statements: str, database: str = "postgres") -> None:
        with psycopg.connect(host=str(self.folder), user="rigctl", dbname=database, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def url(self, database: str, user: str = "rigctl", scheme: str = "postgresql") -> str:
        return f"{scheme}://{user}@/{database}?host={self.folder}"

    def emptied(self) -> str:
        """The name of a database without a table: always the same one, as making another takes longer."""
        self.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO public")
        return "postgres"


@contextmanager
def server() -> Iterator[Server]:
    """A server in a folder of its own, gone with the block. A socket's path is short: 107 characters at most."""
    bin_folder = programs()
    if bin_folder is None:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL's server is not installed: Debian has it in the package postgresql")
        pytest.skip("takes PostgreSQL's server: Debian has it in the package postgresql")
    with tempfile.TemporaryDirectory(prefix="rigctl-pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        made = Server(folder, bin_folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()
