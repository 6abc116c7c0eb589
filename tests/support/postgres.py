"""A real PostgreSQL server for tests, run by an ordinary user, with its socket and data in a temporary folder.

PostgreSQL refuses to run as root, so tests of root start it as `nobody`. It always ends with the process of the test.
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
    """Return the folder of `initdb` and `postgres`, of the highest version in Debian; None if not installed."""
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
        """Return the words that run a command as an ordinary user and end it with this process."""
        own = ["--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"] if os.geteuid() == 0 else []
        return ["setpriv", *own, "--pdeathsig", "QUIT", "--"]  # at SIGQUIT, PostgreSQL ends at once

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
            self._process.send_signal(3)  # SIGQUIT: end at once
            end(self._process, politely_for_s=DEADLINE_S)

    def sql(self, *statements: str, database: str = "postgres") -> None:
        with psycopg.connect(host=str(self.folder), user="rigctl", dbname=database, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def url(self, database: str, user: str = "rigctl", scheme: str = "postgresql") -> str:
        return f"{scheme}://{user}@/{database}?host={self.folder}"

    def emptied(self) -> str:
        """Remove all tables and return the database's name. The same database is reused, because this is faster."""
        self.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO public")
        return "postgres"


@contextmanager
def server() -> Iterator[Server]:
    """Yield a server in a temporary folder, outside of tmp_path, because a socket's path has at most 107 characters."""
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
