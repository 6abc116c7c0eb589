"""What a PostgreSQL server may do to a store, each in one message; no password is in any."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread, Timer
from typing import Any
from urllib.parse import quote

import builders
import postgres
import psycopg
import pytest
from cases import from_file
from processes import DEADLINE_S

from rigctl.base.errors import InputError, RigError
from rigctl.store import NoStoreError, open_store
from rigctl.store.address import written_address
from rigctl.store.errors import SilentStoreError, explain_errors
from rigctl.store.rows import flow_row

PASSWORD = "hush-5417"
PACE_S = 0.2
"""Time between two notices of a server that says nothing else."""


@pytest.fixture
def database(server: postgres.Server) -> Iterator[str]:
    """An empty database, with a user `anna` whose password it is."""
    name = server.emptied()
    server.sql("DROP ROLE IF EXISTS anna", f"CREATE ROLE anna LOGIN PASSWORD '{PASSWORD}'")
    yield name
    server.sql("DROP OWNED BY anna", "DROP ROLE anna")


def refused(address: str, create: bool = True) -> str:
    with pytest.raises(InputError) as raised:
        open_store(address, create=create)
    text = str(raised.value)
    assert PASSWORD not in text
    assert "\n" not in text
    return text


def test_both_forms_of_the_url_name_one_store_and_need_only_psycopg(server: postgres.Server, database: str) -> None:
    with open_store(server.url(database)) as store:
        run = store.begin(builders.plan(), {}, {}, 1.0)
        assert store.place == f"postgresql://rigctl@/{database}"
    for scheme in ("postgresql+psycopg", "postgres"):
        with open_store(server.url(database, scheme=scheme), create=False) as store:
            assert store.run_ids() == [run]
            assert store.place == f"postgresql://rigctl@/{database}"


@pytest.mark.parametrize(
    "form",
    [
        "host={folder} dbname={name} user=rigctl",
        "  host = '{folder}'   user=rigctl dbname='{name}' rigctl_timeout=60",
        "postgresql://rigctl@{quoted}/{name}",
        "postgres://rigctl@{quoted}:5432/{name}?rigctl_timeout=60",
        "postgresql+psycopg://rigctl@{quoted}/{name}?sslmode=disable",
        "postgresql://rigctl@{quoted}:5433,{quoted}:5432/{name}",
    ],
)
def test_the_forms_of_libpq_name_the_same_store(server: postgres.Server, database: str, form: str) -> None:
    with open_store(server.url(database)) as store:
        run = store.begin(builders.plan(), {}, {}, 1.0)
    address = form.format(folder=server.folder, quoted=quote(str(server.folder), safe=""), name=database)
    for each in (address, written_address(address)):
        with open_store(each, create=False) as store:
            assert store.run_ids() == [run]
            assert "rigctl_timeout" not in store.place


def test_a_password_in_a_connection_string_is_used_and_not_shown(server: postgres.Server, database: str) -> None:
    server.sql("GRANT CREATE ON SCHEMA public TO anna")
    with open_store(f"host={server.folder} dbname={database} user=anna password={PASSWORD}") as store:
        assert store.run_ids() == []
        assert PASSWORD not in store.place
    assert "refuses the user" in refused(f"host={server.folder} dbname={database} user=anna password='{PASSWORD} '")


def test_a_user_needs_a_name_a_password_and_the_right_to_make_tables(server: postgres.Server, database: str) -> None:
    assert "GRANT CREATE ON SCHEMA public" in refused(server.url(database, user=f"anna:{PASSWORD}"))
    server.sql("GRANT CREATE ON SCHEMA public TO anna")
    with open_store(server.url(database, user=f"anna:{PASSWORD}")):
        pass
    wrong = refused(server.url(database, user=f"anna:{PASSWORD}x"))
    advice = "Check both in the URL, or name another store with --store"
    assert wrong == f"store postgresql://anna:***@/{database} refuses the user or its password. {advice}"
    assert "requires a password. Put it into" in refused(server.url(database, user="anna"))
    assert "refuses the user or its password" in refused(server.url(database, user="nobody-of-that-name"))


def test_a_database_that_is_not_there_and_one_that_is_empty(server: postgres.Server, database: str) -> None:
    assert "does not exist on its server. Make it with createdb" in refused(server.url("nowhere"))
    with pytest.raises(NoStoreError, match="is empty"):
        open_store(server.url(database), create=False)


@from_file
def test_a_server_that_is_not_there_is_one_message(address: str, words: str) -> None:
    assert words in refused(address)


def test_tables_of_other_programs_may_stand_beside_but_not_in_the_way(server: postgres.Server, database: str) -> None:
    server.sql("CREATE TABLE photos (name text)", database=database)
    with open_store(server.url(database)) as store:
        store.begin(builders.plan(), {}, {}, 1.0)
    server.sql("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE flows (name text)")
    assert "is the database of another program (it has a table flows)" in refused(server.url(database))


def test_a_server_that_goes_in_mid_run_loses_nothing_that_was_stored(server: postgres.Server, database: str) -> None:
    with open_store(server.url(database)) as store:
        run = store.begin(builders.plan(), {}, {}, 1.0)
        store.add(run, builders.repetition(builders.cell()))
        server.stop()
        try:
            for what in (lambda: store.add(run, builders.failed(builders.cell(2))), lambda: store.repetitions(run)):
                with pytest.raises((RigError, InputError), match=rf"^store {store.place} cannot be reached"):
                    what()
        finally:
            server.start()
        store.add(run, builders.failed(builders.cell(2)))
        assert store.repetitions(run) == [builders.repetition(builders.cell()), builders.failed(builders.cell(2))]


def test_a_connection_that_is_lost_in_the_middle_of_a_repetition_stores_nothing_of_it(
    server: postgres.Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(*arguments: Any) -> object:
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rigctl'")
        return flow_row(*arguments)

    with open_store(server.url(database)) as store:
        run = store.begin(builders.plan(), {}, {}, 1.0)
        monkeypatch.setattr("rigctl.store.store.flow_row", ending)
        with pytest.raises(RigError, match=r"lost its connection: .*What was stored before is safe"):
            store.add(run, builders.repetition(builders.cell()))
        monkeypatch.undo()
        assert store.repetitions(run) == []
        store.add(run, builders.repetition(builders.cell()))
        assert store.repetitions(run) == [builders.repetition(builders.cell())]


@pytest.mark.parametrize(
    ("notice", "create"),
    [(b"", True), (b"N" + struct.pack(">I", 5) + b"\0", False)],
    ids=["silent", "a notice now and then"],
)
def test_a_server_that_takes_connections_and_answers_nothing_is_given_up(notice: bytes, create: bool) -> None:
    """It lets anybody in, then says at most notices."""
    version = b"server_version\x0016.0\0"
    greeting = b"R" + struct.pack(">II", 8, 0) + b"S" + struct.pack(">I", 4 + len(version)) + version
    greeting += b"Z" + struct.pack(">I", 5) + b"I"

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if len(connection.recv(4096)) == 8:  # asks for TLS
                connection.sendall(b"N")
                connection.recv(4096)
            connection.sendall(greeting)
            while not ended.wait(PACE_S):
                connection.sendall(notice)

    def serve() -> None:
        with suppress(OSError):
            while True:
                Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    ended = Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=serve, daemon=True).start()
        address = f"postgresql://u@127.0.0.1:{listening.getsockname()[1]}/x?rigctl_timeout=1"
        with pytest.raises(SilentStoreError, match="the server does not answer, waited 1 s"):
            open_store(address, create=create)
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_a_statement_that_takes_too_long_is_given_up_and_the_next_one_has_a_new_connection(
    server: postgres.Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timer(most_s: float, *given: Any) -> Timer:
        """Only the statement that sleeps is given up in time."""
        return Timer(most_s if sleeps.is_set() else DEADLINE_S, *given)

    sleeps = Event()
    monkeypatch.setattr("rigctl.store.postgresql.Timer", timer)
    with open_store(f"{server.url(database)}&rigctl_timeout=1") as store:
        with store.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            sleeps.set()
            with pytest.raises(SilentStoreError), explain_errors(store.place):
                connection.exec_driver_sql("SELECT pg_sleep(600)")
            sleeps.clear()
        assert store.run_ids() == []


@pytest.mark.parametrize("given", ["x", "0", "-1", "nan", "1e9"])
def test_a_timeout_has_bounds(given: str) -> None:
    with pytest.raises(InputError, match="expected 1 to 86400 seconds"):
        open_store(f"postgresql://u@127.0.0.1:9/x?rigctl_timeout={given}")


def test_readers_write_nothing(server: postgres.Server, database: str) -> None:
    with open_store(server.url(database)) as store:
        with store.engine.connect() as connection, pytest.raises(Exception, match="read-only") as raised:
            connection.exec_driver_sql("DELETE FROM runs")
    assert isinstance(raised.value.__cause__, psycopg.errors.ReadOnlySqlTransaction)
