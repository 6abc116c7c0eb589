"""The known switch snoops as RFC 4541 says, and as switches with a missing or late querier do."""

from collections import Counter

import pytest
from known_switch.model import SECOND, Departure, Design, Link, Switch
from known_switch.multicast import Snooping, igmp_frame, query

GROUP, OTHER, ALL_ROUTERS = "239.1.2.3", "239.1.2.4", "224.0.0.22"
MAC = bytes.fromhex("020000000001")


def packed(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def made(**how: object) -> Switch:
    return Switch(Design({port: Link(20_000_000) for port in "abcd"}, 10**6, multicast=Snooping(**how)))  # type: ignore[arg-type]


def report(group: str) -> bytes:
    return igmp_frame(MAC, "10.0.0.2", group, b"\x16\0\0\0" + packed(group))


def leave(group: str) -> bytes:
    return igmp_frame(MAC, "10.0.0.2", "224.0.0.2", b"\x17\0\0\0" + packed(group))


def report_3(*records: tuple[int, str, list[str]]) -> bytes:
    """Return a report of version 3 with records of type, group and sources (RFC 3376, 4.2)."""
    parts = [
        bytes([kind, 0]) + len(sources).to_bytes(2) + packed(group) + b"".join(map(packed, sources))
        for kind, group, sources in records
    ]
    return igmp_frame(MAC, "10.0.0.2", ALL_ROUTERS, b"\x22\0\0\0\0\0" + len(parts).to_bytes(2) + b"".join(parts))


def data(group: str) -> bytes:
    low = packed(group)
    header = b"\x45\0\0\x64" + bytes(5) + b"\x11\0\0" + b"\x0a\0\0\1" + low
    return b"\1\0\x5e" + bytes([low[1] & 127]) + low[2:] + MAC + b"\x08\0" + header + bytes(80)


def received(switch: Switch, at_s: float, port: str, frame: bytes) -> str:
    """Send a frame; return the ports it left from."""
    switch.advance(round(at_s * SECOND))
    switch.arrive(round(at_s * SECOND), port, frame)
    departures, drops = switch.advance(round(at_s * SECOND) + SECOND // 100)
    assert drops == []
    return "".join(gone.port for gone in departures if gone.frame == frame)


def queries(departures: list[Departure]) -> Counter[tuple[int, str]]:
    return Counter((gone.time_ns // SECOND, gone.port) for gone in departures if gone.frame[34 + 4] == 0x11)


def test_without_snooping_a_group_goes_everywhere_and_is_counted() -> None:
    switch = Switch(Design({port: Link(20_000_000) for port in "abcd"}, 10**6))
    assert received(switch, 1, "b", report(GROUP)) == "acd"
    assert received(switch, 2, "a", data(GROUP)) == "bcd"
    assert switch.forwarded[GROUP] == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_group_goes_to_the_ports_that_joined_it_until_they_leave() -> None:
    switch = made()
    assert received(switch, 1, "a", data(GROUP)) == ""
    assert received(switch, 2, "b", report(GROUP)) == ""
    assert received(switch, 3, "c", report(GROUP)) == ""
    assert received(switch, 4, "c", report(OTHER)) == ""
    assert received(switch, 5, "a", data(GROUP)) == "bc"
    assert received(switch, 6, "b", data(GROUP)) == "c"
    assert received(switch, 7, "a", data(OTHER)) == "c"
    received(switch, 8, "b", leave(GROUP))
    assert received(switch, 9, "a", data(GROUP)) == "bc"
    assert received(switch, 10.5, "a", data(GROUP)) == "c"  # 2 s after the leave
    assert switch.forwarded[GROUP] == {"b": 2, "c": 4}


def test_a_host_that_reports_within_the_time_after_a_leave_stays() -> None:
    switch = made()
    received(switch, 1, "b", report(GROUP))
    received(switch, 2, "b", leave(GROUP))
    received(switch, 3, "b", report(GROUP))
    assert received(switch, 9, "a", data(GROUP)) == "b"


@pytest.mark.parametrize(
    ("record", "joined"),
    [
        ((2, GROUP, []), True),  # MODE_IS_EXCLUDE
        ((4, GROUP, []), True),  # CHANGE_TO_EXCLUDE_MODE
        ((5, GROUP, ["10.0.0.1"]), True),  # ALLOW_NEW_SOURCES
        ((3, GROUP, ["10.0.0.1"]), True),  # CHANGE_TO_INCLUDE_MODE
        ((3, GROUP, []), False),
        ((1, GROUP, []), False),
        ((6, GROUP, ["10.0.0.1"]), False),  # BLOCK_OLD_SOURCES
    ],
)
def test_version_3_joins_and_leaves_by_its_records(record: tuple[int, str, list[str]], joined: bool) -> None:
    switch = made(leave_s=0)
    received(switch, 1, "c", report_3((4, OTHER, ["10.0.0.8", "10.0.0.9"]), record))
    assert received(switch, 2, "a", data(GROUP)) == ("c" if joined else "")
    assert received(switch, 3, "a", data(OTHER)) == "c"
    received(switch, 4, "c", report_3((3, OTHER, []), (3, GROUP, [])))
    assert received(switch, 5, "a", data(GROUP)) + received(switch, 6, "a", data(OTHER)) == ""


def test_local_groups_are_flooded() -> None:
    switch = made()
    assert received(switch, 1, "a", data("224.0.0.251")) == "bcd"
    assert received(switch, 2, "a", data("224.0.1.1")) == ""


def test_the_switch_asks_from_its_time_on_with_valid_packets() -> None:
    switch = made(querier_after_s=20, query_interval_s=60)
    departures, _ = switch.advance(150 * SECOND)
    assert queries(departures) == Counter({(at, port): 1 for at in (20, 80, 140) for port in "abcd"})
    packet = departures[0].frame[14:]
    for part in (packet[:24], packet[24:]):  # RFC 1071: the sum with its checksum is all ones
        total = sum(int.from_bytes(part[at : at + 2]) for at in range(0, len(part), 2))
        assert total % 0xFFFF == 0
        assert total > 0
    assert departures[0].frame[:6] == bytes.fromhex("01005e000001")


def test_a_membership_ends_if_no_query_makes_the_host_report_again() -> None:
    missing, present = made(querier_after_s=None, membership_s=260), made(membership_s=260)
    for switch in (missing, present):
        received(switch, 1, "b", report(GROUP))
        assert received(switch, 124, "a", data(GROUP)) == "b"
    assert queries(missing.advance(126 * SECOND)[0]) == {}
    assert queries(present.advance(126 * SECOND)[0]) == Counter({(125, port): 1 for port in "abcd"})
    received(present, 127, "b", report(GROUP))
    for switch, expected in ((missing, ""), (present, "b")):
        assert received(switch, 260, "a", data(GROUP)) == "b"
        assert received(switch, 262, "a", data(GROUP)) == expected
    assert received(present, 388, "a", data(GROUP)) == ""


def test_a_port_with_a_querier_gets_reports_and_every_group() -> None:
    switch = made(querier_after_s=None)
    assert received(switch, 1, "d", igmp_frame(MAC, "10.0.0.4", "224.0.0.1", query())) == "abc"
    assert received(switch, 2, "b", report(GROUP)) == "d"
    assert received(switch, 3, "a", data(GROUP)) == "bd"
    assert received(switch, 4, "a", data(OTHER)) == "d"
    assert received(switch, 1 + 256, "a", data(OTHER)) == ""  # RFC 2236, 8.5: 255 s


def test_a_switch_that_needs_a_querier_floods_until_it_has_settled() -> None:
    late = made(querier_after_s=20, query_interval_s=5, needs_querier=True, settle_s=10)
    missing = made(querier_after_s=None, needs_querier=True)
    for switch in (late, missing):
        received(switch, 1, "b", report(GROUP))
        assert received(switch, 5, "a", data(GROUP)) == "bcd"
    assert received(late, 29, "a", data(GROUP)) == "bcd"
    assert received(late, 31, "a", data(GROUP)) == "b"
    assert received(missing, 31, "a", data(GROUP)) == "bcd"


def test_a_switch_may_flood_a_group_that_nobody_has_joined() -> None:
    switch = made(floods_unknown=True)
    assert received(switch, 1, "a", data(GROUP)) == "bcd"
    received(switch, 2, "b", report(GROUP))
    assert received(switch, 3, "a", data(GROUP)) == "b"
