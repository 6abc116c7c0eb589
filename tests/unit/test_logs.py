"""What a log line is about, and its form."""

import asyncio
import json
import logging
from typing import Any

from processes import turns

from rigctl.base.logs import JsonLines, TextLines, about, learnt


def line(message: str = "said", **own: Any) -> dict[str, Any]:
    record = logging.LogRecord("rigctl.x", logging.INFO, "x.py", 1, message, (), None)
    vars(record).update(own)
    parsed: dict[str, Any] = json.loads(JsonLines().format(record))
    return parsed


def subjects() -> tuple[Any, Any, Any]:
    made = line()
    return made["run"], made["cell"], made["node"]


def test_a_line_outside_of_a_run_has_the_same_keys() -> None:
    assert list(line()) == ["time", "level", "logger", "message", "run", "cell", "node"]
    assert subjects() == (None, None, None)


def test_what_a_block_is_about_ends_with_it() -> None:
    with about(run="r1"):
        with about(node="pi1"):
            learnt(cell=3)
            assert subjects() == ("r1", 3, "pi1")
        assert subjects() == ("r1", None, None)
    assert subjects() == (None, None, None)


def test_what_nobody_is_about_is_not_kept() -> None:
    learnt(run="lost")
    assert subjects() == (None, None, None)


async def test_a_task_learns_what_its_block_learns_later() -> None:
    known = asyncio.Event()

    async def node(name: str) -> tuple[Any, Any, Any]:
        with about(node=name):
            await known.wait()
            return subjects()

    with about():
        tasks = [asyncio.create_task(node(name)) for name in ("pi1", "pi2")]
        await turns()
        learnt(run="r1", cell=2)
        known.set()
        assert await asyncio.gather(*tasks) == [("r1", 2, "pi1"), ("r1", 2, "pi2")]


def test_a_line_has_what_is_its_own_and_is_one_line() -> None:
    made = line("one\ntwo \x1b[2J \udc80", event="test ended", reason=ValueError("x"))
    assert made["event"] == "test ended"
    assert made["reason"] == "x"
    assert made["message"] == "one\ntwo \x1b[2J ?"


def test_a_line_for_people_moves_no_cursor_and_names_its_subjects() -> None:
    record = logging.LogRecord("rigctl.x", logging.INFO, "x.py", 1, "lost: %s", ("\x1b[2J",), None)
    with about(run="r1", node="pi1"):
        assert TextLines().format(record).endswith(" rigctl.x [run r1, node pi1]: lost: ?[2J")
