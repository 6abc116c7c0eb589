"""The two ends of a command's pipes, driven by the event loop without a task or a copy of their own."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Final

_READ_BYTES: Final = 65536  # a pipe's default capacity, pipe(7)
_HIGH_BYTES: Final = 262144


class Outlet:
    """Reads a pipe and hands on what comes, until end-of-file; can be paused."""

    def __init__(self, descriptor: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._descriptor: int | None = descriptor
        self._on_data, self._on_end = on_data, on_end
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._readable)

    @property
    def ended(self) -> bool:
        return self._descriptor is None

    def pause(self) -> None:
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        if self._descriptor is not None:
            self._loop.add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _readable(self) -> None:
        assert self._descriptor is not None
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._on_data(data)
        else:
            self.close()
            self._on_end()


class Inlet:
    """Writes to a pipe what it is given, as fast as the reader takes it; `on_full` and `on_room` throttle the giver."""

    def __init__(self, descriptor: int, on_full: Callable[[], None], on_room: Callable[[], None]) -> None:
        self._descriptor: int | None = descriptor
        self._on_full, self._on_room = on_full, on_room
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._ending = self._full = False
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        if self._descriptor is None or self._ending:
            return  # the command closed its input: as in a pipeline, the rest is nobody's
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if len(self._waiting) == 1:
            self._writable()
        if self._waiting_bytes > _HIGH_BYTES and not self._full:
            self._full = True
            self._on_full()

    def end(self) -> None:
        """End-of-file, after what is still waiting."""
        self._ending = True
        if not self._waiting:
            self.close()

    def close(self) -> None:
        """End-of-file now; what is waiting is dropped."""
        if self._descriptor is not None:
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        self._waiting.clear()
        self._waiting_bytes = 0
        self._room()

    def _room(self) -> None:
        if self._full:
            self._full = False
            self._on_room()

    def _writable(self) -> None:
        assert self._descriptor is not None
        try:
            while self._waiting:
                written = os.write(self._descriptor, self._waiting[0])
                self._waiting_bytes -= written
                if written == len(self._waiting[0]):
                    self._waiting.popleft()
                else:
                    self._waiting[0] = self._waiting[0][written:]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._writable)
            return
        except BrokenPipeError:
            self.close()
            return
        self._loop.remove_writer(self._descriptor)
        self._room()  # which may bring more to write, and the end too
        if self._ending and not self._waiting:
            self.close()
