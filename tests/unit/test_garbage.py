"""The search for cycles is put off, and comes back."""

import gc

import pytest

from rigctl.garbage import uncollected


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
