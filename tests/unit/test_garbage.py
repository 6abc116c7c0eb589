"""The search for cycles is put off, and comes back."""

import gc

import pytest

from rigctl.garbage import imported, uncollected


def test_it_is_off_meanwhile_and_on_again_after_a_failure_too() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="why"), uncollected():
        assert not gc.isenabled()
        raise ValueError("why")
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_imported_is_not_looked_at_again() -> None:
    kept: list[object] = [[]]
    imported()
    try:
        assert gc.get_freeze_count() > 0
        assert not any(each is kept for each in gc.get_objects())
    finally:
        gc.unfreeze()
