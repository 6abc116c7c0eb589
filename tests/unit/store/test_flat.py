"""Cells and sides are stored flat, under names that stay, while the records nest their fields."""

import builders

from rigctl.records import DiskTimes, RoundTrips, Side, TcpInfo
from rigctl.store.flat import GROUPS, flattened, side_values


def test_a_cell_is_stored_under_the_names_of_its_settings() -> None:
    windows = {"window_bytes": 4096, "window_total_bytes": 8192, "resize": True}
    row = flattened(builders.cell(**windows, mss=536, rate="max", burst=8))
    assert (row["window_bytes"], row["window_total_bytes"], row["resize"]) == (4096, 8192, True)
    assert (row["mss"], row["rate"], row["burst"], row["read"]) == (536, "max", 8, None)
    assert not row.keys() & {"window", "tcp", "messages", "datagrams", "file"}


def test_a_side_is_stored_under_the_names_of_what_was_counted() -> None:
    side = Side(9, 1, 2, tcp=TcpInfo(mss=1448), round_trips=RoundTrips(3, 30, 9, 11), disk=DiskTimes(5, 6))
    row = flattened(side)
    assert (row["mss"], row["round_trips"], row["rtt_sum_ns"], row["rtt_max_ns"]) == (1448, 3, 30, 11)
    assert (row["disk_us"], row["sync_us"]) == (5, 6)
    assert not row.keys() & {"tcp", "disk"}


def test_stored_names_do_not_collide() -> None:
    stored = [name for names in GROUPS.values() for name in names.values()]
    assert len(set(stored)) == len(stored)
    others = Side.__dataclass_fields__.keys() - GROUPS.keys()
    assert not others & set(stored)


def test_what_no_kernel_said_is_no_group() -> None:
    assert not {"round_trips", "disk"} & side_values(flattened(Side(9, 1, 2))).keys()
