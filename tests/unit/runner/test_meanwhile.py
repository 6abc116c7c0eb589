"""What is done in a thread while nodes are opened."""

import asyncio
import threading

import pytest

from rigctl.runner.meanwhile import beside


async def test_the_second_follows_the_first_and_each_is_waited_for_on_its_own() -> None:
    done: list[str] = []
    go_on = threading.Event()

    def then() -> None:
        go_on.wait(10)
        done.append("then")

    async with asyncio.timeout(20), beside(lambda: done.append("first"), then) as (first, second):
        await first()
        assert done == ["first"]
        go_on.set()
        await second()
        assert done == ["first", "then"]


async def test_what_the_first_raises_is_raised_to_both_and_the_second_is_not_done() -> None:
    done: list[str] = []

    def fails() -> None:
        raise ImportError("no such module")

    async with asyncio.timeout(20), beside(fails, lambda: done.append("then")) as (first, second):
        with pytest.raises(ImportError):
            await first()
        with pytest.raises(ImportError):
            await second()
    assert done == []


async def test_what_ends_the_block_is_raised_when_the_thread_is_done() -> None:
    done: list[str] = []
    with pytest.raises(KeyError):
        async with asyncio.timeout(20), beside(lambda: None, lambda: done.append("then")):
            raise KeyError
    assert done == ["then"]
