"""Calculate the best possible application rates from a link rate and a frame."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Annotated, Final, Literal, TypeVar

import typer
from pydantic import Field

from rigctl.base import units
from rigctl.base.errors import InputError
from rigctl.cli.options import Json
from rigctl.cli.output import InMbps, Model, Versioned, at, plain_console, print_table
from rigctl.limits.ceilings import FrameRates, best_rates, windows_bps
from rigctl.model.frames import Packet

_Number = TypeVar("_Number", int, float)
_LARGEST_MTU: Final = 65535
_MOST: Final = 12
"""Most values that one option takes; a larger table would be hard to read."""


class ExpectedRate(Model):
    """The best application rate for a payload at a link rate."""

    protocol: Literal["tcp", "udp"] = at("line.packet.protocol")
    timestamps: bool = Field(description="Whether each TCP segment has 12 bytes of timestamps; false for UDP.")
    payload_bytes: int = at("line.payload")
    frame_bytes: int = at("line.frame_bytes")
    rate_mbps: float = Field(description="The link rate.")
    system_mbps: InMbps = Field(description="rate x payload / frame.")
    link_mbps: InMbps = Field(description="rate x payload / (frame + 20); preamble and gap take 20 bytes per frame.")


class WindowRate(Model):
    """Highest goodput of one TCP flow with this window and round-trip time."""

    window_bytes: int
    rtt_s: float
    goodput_mbps: InMbps


class ExpectDocument(Versioned):
    """Best possible application rates, calculated without measuring."""

    mtu: int
    rates: list[ExpectedRate]
    windows: list[WindowRate] = Field(description="Rates for --window and --rtt.")


def calculate_rates(
    rates: Annotated[
        str, typer.Option("--rate", metavar="R,…", help="Calculate for these link rates, as 1G or 650M,750M.")
    ] = "1G",
    payloads: Annotated[
        str,
        typer.Option(
            "--payload",
            metavar="P,…",
            help="Payload bytes, as 1460 (TCP), 1448t (TCP with timestamps) or 1472u (UDP); full, fullt and fullu fill "
            "the MTU.",
        ),
    ] = "1,1u,fullt,full,fullu",
    mtu: Annotated[int, typer.Option("--mtu", help="MTU of the path in bytes.")] = 1500,
    windows: Annotated[
        str | None, typer.Option("--window", metavar="W,…", help="Calculate for these TCP windows, with --rtt.")
    ] = None,
    rtts: Annotated[
        str | None, typer.Option("--rtt", metavar="T,…", help="Calculate for these round-trip times, as 0.2ms.")
    ] = None,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Count 12 bytes of timestamps in all TCP.")] = False,
    ipv6: Annotated[bool, typer.Option("--ipv6", help="Count IPv6 headers.")] = False,
    vlan: Annotated[bool, typer.Option("--vlan", help="Count a VLAN tag in every frame.")] = False,
    as_json: Json = False,
) -> None:
    if not 68 <= mtu <= _LARGEST_MTU:
        raise InputError(f"--mtu {mtu}: expected 68 to {_LARGEST_MTU}")
    if (windows is None) != (rtts is None):
        raise InputError("--window and --rtt go together: a window's rate is window ÷ round-trip time")
    speeds = tuple(_values("--rate", rates, units.parse_rate))
    version, tags = 6 if ipv6 else 4, int(vlan)
    packets = {
        "u": Packet("udp", version, tags=tags),
        "t": Packet("tcp", version, timestamps=True, tags=tags),
        "": Packet("tcp", version, timestamps, tags),
    }
    found = dict.fromkeys(_payload(text, mtu, packets) for text in _texts("--payload", payloads))
    lines = [best_rates(speeds, *own) for own in found]
    sizes = tuple(_values("--window", windows, units.parse_bytes)) if windows is not None else ()
    times = tuple(_values("--rtt", rtts, units.parse_duration)) if rtts is not None else ()
    if as_json:
        print(_json(mtu, speeds, lines, sizes, times))
        return
    console = plain_console()
    heads = ["Payload", "Frame", *map(units.format_rate, speeds)]
    console.print("Best application rates [Mbit/s] over a link: rate × payload ÷ (frame + 20)")
    print_table(console, heads, [_row(line, math.inf, line.of_link_bps) for line in lines], left=heads[:1])
    console.print("Through a bus or driver, without preamble and gap: rate × payload ÷ frame")
    print_table(console, heads, [_row(line, 100e6, line.of_system_bps) for line in lines], left=heads[:1])
    if sizes:
        console.print("One TCP flow [Mbit/s]: window ÷ round-trip time")
        table = zip(sizes, windows_bps(sizes, times), strict=True)
        rows = [[units.format_bytes(size), *(f"{rate / 1e6:.2f}" for rate in row)] for size, row in table]
        print_table(console, ["Window", *map(units.format_duration, times)], rows)
    console.print(
        f"A frame: Ethernet's header{', VLAN tag' if vlan else ''}, IPv{version}, TCP or UDP, payload, padding up to "
        "64 bytes, check sequence. Timestamps, which Linux uses by default, take 12 bytes of each TCP segment."
    )


def _json(
    mtu: int, speeds: Sequence[int], lines: Sequence[FrameRates], sizes: tuple[int, ...], times: tuple[float, ...]
) -> str:
    rates = [
        SimpleNamespace(
            line=line, timestamps=_has_timestamps(line), rate_mbps=rate / 1e6, system_mbps=of_system, link_mbps=of_link
        )
        for line in lines
        for rate, of_system, of_link in zip(speeds, line.of_system_bps, line.of_link_bps, strict=True)
    ]
    windows = [
        {"window_bytes": size, "rtt_s": rtt_s, "goodput_mbps": rate}
        for size, row in zip(sizes, windows_bps(sizes, times), strict=True)
        for rtt_s, rate in zip(times, row, strict=True)
    ]
    return ExpectDocument.text_of(mtu=mtu, rates=rates, windows=windows)


def _has_timestamps(line: FrameRates) -> bool:
    return line.packet.protocol == "tcp" and line.packet.timestamps


def _row(line: FrameRates, whole_from_bps: float, rates_bps: Sequence[float]) -> list[str]:
    texts = (f"{rate / 1e6:.{0 if rate >= whole_from_bps else 1}f}" for rate in rates_bps)
    packet = line.packet
    options = " with timestamps" if _has_timestamps(line) else ""
    return [f"{line.payload} {packet.protocol.upper()}{options}", str(line.frame_bytes), *texts]


def _payload(text: str, mtu: int, packets: Mapping[str, Packet]) -> tuple[int, Packet]:
    kind = text[-1:] if text.endswith(("u", "t")) else ""
    packet = packets[kind]
    protocol, most = packet.protocol, packet.largest_payload(mtu)
    size = text.removesuffix(kind)
    if size == "full":
        return most, packet
    if not size.isascii() or not size.isdigit() or not int(size):
        raise InputError(
            f"--payload {text}: expected bytes per packet, as 1460, 1448t with timestamps, 1472u for UDP, or full"
        )
    if int(size) > most:
        raise InputError(f"--payload {text}: {protocol.upper()} carries {most} bytes at most in an MTU of {mtu}")
    return int(size), packet


def _texts(option: str, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(parts) > _MOST:
        raise InputError(f"{option} {text}: expected 1 to {_MOST} values with commas between them")
    return parts


def _values(option: str, text: str, parse: Callable[[str], _Number]) -> list[_Number]:
    found = []
    for part in _texts(option, text):
        try:
            found.append(parse(part))
        except units.UnitError as error:
            raise InputError(f"{option}: {error}") from None
        if found[-1] <= 0:
            raise InputError(f"{option} {part}: expected more than 0")
    return found
