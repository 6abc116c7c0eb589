"""The address of a store: a path, a SQLAlchemy URL or a connection string of libpq. Its password is never shown."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from rigctl.base.errors import InputError, extra
from rigctl.base.texts import printable
from rigctl.base.urls import hide_secrets, is_password
from rigctl.store.postgresql import DIALECT as POSTGRESQL
from rigctl.store.postgresql import TIMEOUT, is_postgresql, password_parameters

_SQLITE: Final = "sqlite"
_FILES: Final = ("sqlite", "sqlite+pysqlite")
_MISSPELT: Final = re.compile(r"postgres(ql)?(\+\w+)?(:|//)", re.IGNORECASE)  # as a path it would be printed
# A connection string of libpq, `host=/run/pg dbname=rigctl`, or what is meant for one.
_CONNINFO: Final = re.compile(
    r"\s*(\w+\s*=.*[\s;])?(host|hostaddr|port|dbname|user|password|pwd|passfile|service|sslmode)\s*=", re.I | re.S
)
# `pi1:/data/r.db`, `anna@db/rigctl`, `sqlite:r.db`, or more than one line.
_NO_PATH: Final = re.compile(r"[^/]*[@:][^/]*/|(sqlite|mysql|mariadb|oracle|mssql|jdbc|file|https?)\S*:|[^\0\n]*[\0\n]")
_NAMES: Final = {"user": "username", "password": "password", "host": "host", "dbname": "database"}
STORE: Final = "RIGCTL_STORE"
"""Environment variable with the address of the store."""


def parse_address(given: str) -> URL:
    """Return a path, a URL or a connection string of libpq as a URL. Raise `InputError`, without a secret, for others.

    Also raise it if an @ is ambiguous.
    """
    if "://" not in given and not _MISSPELT.match(given):
        if _CONNINFO.match(given):
            return _from_libpq(given)
        if _NO_PATH.match(given) and not _begins_in_a_folder(given):
            shown = printable(re.split("[@:\0\n]", given)[0])[:32]
            raise InputError(
                f'store "{shown}…": looks like neither a path nor a URL. Write ./ in front of a path, or a URL as '
                "postgresql://user@host/name"
            )
        return URL.create(_SQLITE, database=str(Path(given).expanduser()))
    # Only the scheme is printed: the rest of the address, and the error, may contain a password.
    scheme = f"{printable(re.split('[:/]', given)[0])[:32]}://…"
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        # SQLAlchemy knows one host; libpq knows several, as in postgresql://db1:5432,db2:5433/rigctl.
        if "," in given and is_postgresql(given.partition("://")[0]):
            return _from_libpq(f"{POSTGRESQL}://{given.partition('://')[2]}")
        raise InputError(
            f'store "{scheme}": not a database URL. Use a path, or a URL as in postgresql://user@host/name'
        ) from None
    if url.drivername in _FILES and (url.host, url.port, url.username, url.password) != (None,) * 4:
        raise InputError(f'store "{scheme}": SQLite has no host. Use a path, or three slashes, as in sqlite:///runs.db')
    # SQLAlchemy takes the first @ behind the password for its end, so the rest of the password would be the host.
    ends = given.partition("://")[2].partition(":")[2].count("@")
    if ends > (url.password is not None) and url.get_backend_name() != _SQLITE:
        raise InputError(
            f"store {printable(hide_secrets(given))} has an @ too many. Write an @ of the user, the password or a "
            "parameter as %40, or leave the password to ~/.pgpass"
        )
    if is_postgresql(url.drivername):  # as libpq has it: a socket's folder is written %2Frun%2Fpostgresql
        url = url.set(host=unquote(url.host or "") or None)
    return url


def _begins_in_a_folder(given: str) -> bool:
    """Tell whether a text is a path, though it looks otherwise: it exists, or its first folder does."""
    try:
        path = Path(given).expanduser()
        return path.exists() or (len(path.parts) > 1 and Path(path.parts[0]).exists())
    except (OSError, ValueError, RuntimeError):
        return False


def _from_libpq(given: str) -> URL:
    """Return what libpq understands by a connection string or URL. Raise `InputError`, which repeats none of it."""
    given, timeout = _without_timeout(given)
    with extra("postgresql", 'store "host=…": PostgreSQL'):
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    try:
        known = {name: str(value) for name, value in conninfo_to_dict(given).items()}
    except ProgrammingError:  # its text may have a part of the password
        known = {"port": "?"}
    if not all(port.isdecimal() or not port for port in known.get("port", "").split(",")):
        raise InputError(
            'store "…": libpq understands it neither as name=value pairs nor as a URL. Write '
            "\"host=/run/postgresql dbname=rigctl user=anna\", a value with blanks in '…', or "
            "postgresql://user@host/name"
        )
    names = _NAMES if "user" in known else {"host": "host", "dbname": "database"}  # no URL has a password alone
    own = {new: known.pop(name, None) for name, new in names.items()}
    port = int(known.pop("port")) if known.get("port", "").isdecimal() else None  # several stay in the query
    return URL.create(POSTGRESQL, **own, port=port, query=known | timeout)


def _without_timeout(given: str) -> tuple[str, dict[str, str]]:
    """Return the text without rigctl's own parameter, which libpq would refuse, and that parameter."""
    found = re.search(rf"(^|(?<=[\s?&])){TIMEOUT}\s*=\s*([^\s&]*)&?", given)
    if found is None:
        return given, {}
    return given[: found.start()] + given[found.end() :], {TIMEOUT: found[2]}


def written_address(given: str) -> str:
    """Return an address for another process in another folder: an absolute path, or a URL."""
    if "://" in given:
        parse_address(given)
        return given
    url = parse_address(given)
    if url.get_backend_name() == _SQLITE:
        return str(Path(url.database or "").absolute())
    return url.set(host=quote(url.host or "", safe=",:") or None).render_as_string(hide_password=False)


def store_place(url: URL) -> str:
    """Return a database's name for messages, without parameters, which may contain passwords."""
    if url.get_backend_name() == _SQLITE:
        return url.database or ":memory:"
    bare = url.set(query={}, host=quote(url.host, safe=",:") if url.host else None)
    is_ours = is_postgresql(url.drivername)
    return hide_secrets((bare.set(drivername=POSTGRESQL) if is_ours else bare).render_as_string(False))


def passwords_in(address: str) -> Iterator[tuple[str, object]]:
    """Yield the parameter ("" for the URL's own password) and the value of each password. Raise `InputError`."""
    url = parse_address(address)
    if url.password:
        yield "", url.password
    known = password_parameters()
    for name, value in url.query.items():
        if is_password(name, known):
            yield name, value
