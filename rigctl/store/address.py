"""The address of a store: a path, or a SQLAlchemy URL, whose password is never shown."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.base.urls import hide_secrets, is_password
from rigctl.store.postgresql import DIALECT as POSTGRESQL
from rigctl.store.postgresql import is_postgresql, password_parameters

_SQLITE: Final = "sqlite"
_FILES: Final = ("sqlite", "sqlite+pysqlite")
_MISSPELT: Final = re.compile(r"postgres(ql)?(\+\w+)?(:|//)", re.IGNORECASE)  # as a path it would be printed
STORE: Final = "RIGCTL_STORE"
"""Environment variable with the address of the store."""


def parse_address(given: str) -> URL:
    """Return a path or URL as a URL. Raise `InputError`, without a secret, if it is none or its @ is ambiguous."""
    if "://" not in given and not _MISSPELT.match(given):
        return URL.create(_SQLITE, database=str(Path(given).expanduser()))
    # Only the scheme is printed: the rest of the address, and the error, may contain a password.
    scheme = f"{printable(re.split('[:/]', given)[0])[:32]}://…"
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
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
    return url


def store_place(url: URL) -> str:
    """Return a database's name for messages, without parameters, which may contain passwords."""
    if url.get_backend_name() == _SQLITE:
        return url.database or ":memory:"
    bare = url.set(query={})
    return hide_secrets((bare.set(drivername=POSTGRESQL) if is_postgresql(url) else bare).render_as_string(False))


def passwords_in(address: str) -> Iterator[tuple[str, object]]:
    """Yield the parameter ("" for the URL's own password) and the value of each password. Raise `InputError`."""
    url = parse_address(address)
    if url.password:
        yield "", url.password
    known = password_parameters()
    for name, value in url.query.items():
        if is_password(name, known):
            yield name, value
