"""What a database says, in words a user can act on."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from rigctl.errors import InputError, RigctlError, RigError
from rigctl.store.foreign import harmless_row

_DAMAGED: Final = "is damaged. Save a copy, try `sqlite3 FILE .recover`, or name another file with --store"
# What sqlite3 says (its result codes' texts) → what it means and what to do.
_KNOWN: Final = (
    ("file is not a database", "is not a SQLite database. Name another file with --store"),
    ("codec can't decode", _DAMAGED),
    ("malformed", _DAMAGED),
    ("disk is full", "cannot be written: the disk is full. What was stored before is safe. Make room and try again"),
    ("readonly database", "cannot be written: the file or its folder is read-only. Name another with --store"),
    (
        "unable to open",
        "cannot be opened: its folder is missing or not accessible. Name another with --store",
    ),
    ("database is locked", "is locked by another program. Close it and try again"),
    ("disk i/o error", "cannot be read or written: the disk reports an I/O error"),
)
# What it takes to make a record of a row that no rigctl wrote so.
_UNREADABLE: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    zlib.error,
)

T = TypeVar("T")


class NoStoreError(InputError):
    """There is no store yet, or one without its tables: nothing was ever measured into it."""


def reason_of(error: BaseException) -> str:
    """The database's own words, without SQL, parameters or background links."""
    cause = getattr(error, "orig", None) or error
    return " ".join(str(cause).split()) or type(cause).__name__


def _wrong(error: Exception) -> str:
    """What is wrong with a row: the first of its wrong values, where it is one."""
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {reason_of(error)}"
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]


@contextmanager
def explained(place: str, writing: bool = False) -> Iterator[None]:
    """Turn what the database raises into one message that starts with the store's `place`.

    Opening and reading: `InputError` (the store was named wrongly). Writing: `RigError` (it failed under us).
    """
    try:
        yield
    except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:
        said = reason_of(error)
        kind: type[RigctlError] = RigError if writing else InputError
        meant = next((meaning for sign, meaning in _KNOWN if sign in said.lower()), None)
        raise kind(f"store {place} {meant or f'failed: {said}'}") from error


def records_of(
    place: str, name: Callable[[int], str], rows: Iterable[Any], make: Callable[[dict[str, Any]], T]
) -> Iterator[T]:
    """`make` of each of `rows`. `InputError` where one can't be read: `name` says what it is, by its place from 0."""
    left = iter(rows)
    for at in count():
        try:
            row = next(left, None)
            if row is None:
                return
            made = make(harmless_row(row))
        except _UNREADABLE as error:
            raise InputError(
                f"store {place}: {name(at)} can't be read ({_wrong(error)}). It is damaged, or another program "
                "changed it. The rest of the store is as it was: name another run, or an older copy with --store"
            ) from error
        yield made
