"""Captures and fine bins as a user asks for them, on a virtual rig, through SSH and real agents."""

from user import User

from rigctl.model.capture import segments

SCENARIO = """
rig: gigablox
pairs: [pi1 -> pi2, pi3 -> pi2]
duration: 800ms
bins: 0.5ms
max_skew: 1s  # other tests run beside this one
matrix: {parallel: [1, 2]}
"""


def test_a_capture_of_both_ends_lies_beside_the_report(guest: User) -> None:
    (guest.folder / "out").mkdir()
    said = guest.rigctl("run", guest.scenario(SCENARIO), "--capture", "2", "--report", "out/r.html", deadline_s=60)
    files = sorted((guest.folder / "out").glob("*.pcap"))
    ends = [file.name.partition("-test2-1-")[2] for file in files]
    assert ends == [
        "pi1-to-pi2-at-pi1.pcap", "pi1-to-pi2-at-pi2.pcap", "pi3-to-pi2-at-pi2.pcap", "pi3-to-pi2-at-pi3.pcap",
    ]  # fmt: skip
    for file in files:
        assert file.name in said  # in the table of captures
        assert len({one.flow for one in segments(file.read_bytes()) if one.payload > 100}) == 2
    # Two gigabits meet at one port, which drops: what the captures say of it is compared with TCP's own count.
    page = (guest.folder / "out" / "r.html").read_text()
    assert "2 captures at senders confirm TCP&#39;s counters" in page or "of 2 captures differ from what TCP" in page
    assert "Captures" in page
    assert "Throughput over time, in bins of 0.5 ms" in page
    again = guest.rigctl("report", "--output", "out/again.html")
    assert "again.html" in again
    assert files[0].name in (guest.folder / "out" / "again.html").read_text()
    assert [row["status"] for row in guest.rows("cells")] == ["ok", "ok"]


def test_a_cell_that_is_not_there_cannot_be_captured(guest: User) -> None:
    said = guest.rigctl("run", guest.scenario(SCENARIO), "--capture", "3", code=2)
    assert "--capture 3: capture: there is no test 3; the scenario has 2." in said
