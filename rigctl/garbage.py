"""Python's search for reference cycles, put off while records are made by the hundred thousand."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No such search meanwhile; also a decorator. For work that makes many objects that all stay, and are no cycles.

    The search would look at all of them again and again: a third of the time of reading a matrix from the store.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


def seldom() -> None:
    """For a command, which makes much that stays and then ends: a tenth of the time of a short one is this search.

    What `rigctl report` imports is 190,000 objects.
    """
    gc.set_threshold(300_000, 20, 100)


def imported() -> None:
    """All that is there now stays: it is not looked at any more. A search while a start is ordered is short then."""
    gc.freeze()
