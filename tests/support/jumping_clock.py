"""A clock for asynchronous code that waits: it jumps to the next deadline when no task can run."""

import asyncio
from types import ModuleType
from typing import Any

import pytest


class JumpingClock:
    """Replaces the clock of the running event loop, and `time` in these modules. Tests may change `now_s`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        loop: Any = asyncio.get_running_loop()
        self.now_s = 1000.0
        self._select = loop._selector.select
        monkeypatch.setattr(loop, "time", self.monotonic)
        monkeypatch.setattr(loop._selector, "select", self._jump)
        for module in modules:
            monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        self.now_s += 1e-6  # two readings differ, as with a real clock
        return round(self.now_s * 1e9)

    def _jump(self, timeout_s: float | None) -> object:
        if timeout_s:
            self.now_s += timeout_s
        return self._select(timeout_s and 0)
