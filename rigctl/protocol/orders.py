"""Orders to the agent: one record for each order, which is written as one line."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from rigctl.settings import NO_SETTINGS, SETTINGS, Settings


def encode(text: str) -> str:
    """Return `text` as one word of an order: blanks, %, and bytes that are not printable ASCII become %XX."""
    return "".join(chr(byte) if 0x20 < byte < 0x7F and byte != 0x25 else f"%{byte:02X}" for byte in text.encode())


_ORDER_LIMIT: Final = 4096  # bytes of an order, newline included
_MOST: Final = 2**63 - 1
_WORD: Final = re.compile(r"[!-~]{1,2304}")  # an interface of Windows, percent-encoded: 256 characters of 9 bytes


def _keys(record: "Order | Sockets") -> Iterator[tuple[str, object]]:
    for each in dataclasses.fields(record):
        value = getattr(record, each.name)
        if isinstance(value, Sockets):
            yield from _keys(value)
        elif isinstance(value, Settings):
            yield from (
                (setting.order.key, setting.order.word(asked)) for setting, asked in value.items() if setting.order
            )
        elif each.name == "interface" and isinstance(value, str):
            yield each.name, encode(value)  # Windows has interface names with blanks: `Ethernet 2`
        else:
            yield each.name, value


@dataclass(frozen=True, slots=True)
class Order:
    """An order. Its verb is VERB or the class name; its fields become keys, unless they are None."""

    VERB: ClassVar[str] = ""
    BOUNDS: ClassVar[Mapping[str, tuple[int, int]]] = {
        **dict.fromkeys(("endpoint", "target", "source", "port", "first_port", "last_port"), (1, 65535)),
        "flows": (1, 128),
        **{each.order.key: each.order.bounds for each in SETTINGS.values() if each.order and each.order.bounds},
        "interval_ms": (1, 60000),
        "wait_ms": (1, 600000),
        "duration_ms": (1, 86400000),
        "hold_us": (0, 1000000),
        "size": (1, 2**40),
        "rate": (1, 10**12),
        "burst": (1, 1_000_000),
        "per_second": (1, 1_000_000),
        "bin_us": (100, 1_000_000),
        "capture": (4096, 2**26),
        "iterations": (1, 10**9),
        "at_ns": (0, _MOST),
    }

    def __init_subclass__(cls) -> None:
        cls.VERB = cls.__dict__.get("VERB", cls.__name__.lower())

    def to_line(self, number: int) -> bytes:
        """Return the order as a line that begins with `number`. Raise `ValueError` if a value is out of bounds."""
        words = [str(number), self.VERB]
        words += [f"{name}={self._word(name, value)}" for name, value in _keys(self) if value is not None]
        line = " ".join(words).encode("ascii") + b"\n"
        if len(line) > _ORDER_LIMIT:
            raise ValueError(f"{self.VERB}: the order is {len(line)} bytes long, {_ORDER_LIMIT} is the most")
        return line

    def _word(self, name: str, value: object) -> str:
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, int):
            low, high = self.BOUNDS[name]
            if not low <= value <= high:
                raise ValueError(f"{self.VERB}: {name}={value} is not within {low} … {high}")
            return str(value)
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise ValueError(f"{self.VERB}: {name}={value!r} is not one word of plain ASCII")
        return value


class Clock(Order):
    """Asks for the time on the node's clock."""


class AskHost(Order):
    """Asks the agent of a Windows node for the facts of its host."""

    VERB: ClassVar[str] = "facts"


class Ping(Order):
    """Tells the agent that the controller is alive."""


@dataclass(frozen=True, slots=True)
class Set(Order):
    """Changes a host setting, or with `dry` only asks whether it can be changed. The caller must `encode` the texts."""

    kind: str
    value: str
    name: str | None = None
    interface: str | None = None
    dry: bool | None = None


class Restore(Order):
    """Restores every host setting."""


@dataclass(frozen=True, slots=True)
class Sockets:
    """The keys that the orders `listen` and `connect` have in common."""

    token: str
    flows: int
    interval_ms: int
    wait_ms: int
    settings: Settings = NO_SETTINGS  # only settings with an order key (rigctl.settings.Setting.order)
    interface: str | None = None  # interface whose counters go into the report
    transport: str | None = None  # "udp", or None for TCP
    test: str | None = None  # "pingpong", "blast", "file" and so on (Kind.order); None for a stream
    size: int | None = None  # bytes of a message, datagram or file
    disk: bool | None = None  # file tests: read or write a file in `folder`, not memory
    folder: str | None = None  # path that the caller has encoded by `encode`
    role: str | None = None  # multicast tests: "send" or "wait" of a sender, "join" or "watch" of a receiver


@dataclass(frozen=True, slots=True)
class Listen(Order):
    """Makes a receiver on `address`."""

    endpoint: int
    address: str
    sockets: Sockets
    first_port: int | None = None  # lowest port of the receiver; None: the kernel chooses a port
    last_port: int | None = None


@dataclass(frozen=True, slots=True)
class Connect(Order):
    """Makes a sender from address `bind` to the receiver at `address` and `port`."""

    endpoint: int
    address: str
    port: int
    bind: str
    sockets: Sockets


@dataclass(frozen=True, slots=True)
class Ready(Order):
    endpoint: int


@dataclass(frozen=True, slots=True)
class Start(Order):
    endpoint: int
    at_ns: int  # start time on the node's clock
    duration_ms: int
    iterations: int | None = None  # messages per flow; None: as many as the time allows
    rate: int | None = None  # payload of a stream in bit/s; None: unlimited
    burst: int | None = None  # most datagrams that a late sender with a rate sends at once; None: 10 ms of traffic
    bin_us: int | None = None  # length of the intervals (bins) in which a receiver counts bytes; None: no bins
    capture: int | None = None  # most bytes of the file of captured frame headers; None: no capture
    per_second: int | None = None  # connections or requests per second of all flows; None: one after the other
    hold_us: int | None = None  # pause in µs after a flow's first send at `at_ns`; None: 1000


@dataclass(frozen=True, slots=True)
class Stop(Order):
    endpoint: int


@dataclass(frozen=True, slots=True)
class Report(Order):
    endpoint: int


@dataclass(frozen=True, slots=True)
class Close(Order):
    endpoint: int


@dataclass(frozen=True, slots=True)
class Probe(Order):
    """Sends unfragmented datagrams of `sizes` to the receiver at `address`:`port`; `stream` also opens a connection."""

    target: int
    source: int  # number by which the receiver reports these probes
    address: str
    port: int
    bind: str
    token: str
    sizes: str  # payload sizes in bytes, separated by commas
    stream: bool


@dataclass(frozen=True, slots=True)
class Probed(Order):
    """Asks for the probes that arrived or failed since the last such order. `last` also closes the probe sockets."""

    last: bool
