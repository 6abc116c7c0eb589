"""The engine iperf3, for real: the same cells in the same table, and nothing of it left on a node."""

import os
import re
import signal

from processes import eventually, program
from real_runs import Maker, Real
from user import User, listening_in, traffic

HEAD = "\nrig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\nduration: 1s\nmax_skew: 1s\n"
STREAMS = f"""{HEAD}congestion: cubic
include:
- {{engine: agent, direction: both, parallel: 2}}
- {{engine: iperf3, direction: both, parallel: 2}}
- {{engine: iperf3, direction: reverse, window: 64K, mss: 1000}}
- {{engine: iperf3, direction: reverse, window: 64K, mss: 8960}}
"""
DATAGRAMS = f"{HEAD}test: udp\nmatrix: {{rate: 20M, engine: iperf3}}\n"
LONG = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 60s\nmax_skew: 60s\nmatrix: {engine: iperf3, rate: 20M}\n"


def by_iperf3(maker: Maker) -> None:
    maker.measures("streams", STREAMS, "--no-report")
    maker.measures("datagrams", DATAGRAMS, "--no-report")


def test_both_engines_measure_the_same_cells_into_one_table_and_what_iperf3_grants_and_counts_is_told(
    real: Real, host: User
) -> None:
    run = real(by_iperf3, host)["streams"]
    assert "Engine" in run.said
    rows = [row for row in run.rows() if row["cell"] in (1, 2)]
    assert [row["engine"] for row in rows] == ["agent"] * 4 + ["iperf3"] * 4
    for row in rows:
        assert (row["status"], row["mss_effective"], row["mtu"], row["congestion"]) == ("ok", 1448, 1500, "cubic")
        assert 0 < row["bytes"] * 8e-6 < 1.01 * row["ceiling_mbps"]  # in a second
        assert row["retransmits"] is not None
        assert (row["start_skew_us"] is None) == (row["engine"] == "iperf3")
    assert {row["engine"] for row in run.rows("flows")} == {row["engine"] for row in run.rows("cells")}
    with run.user.store() as store:
        info = store.run(run.run)
    assert re.fullmatch(r"3\.\d+.*", info.versions["iperf3"])
    assert {facts["iperf3"] for facts in info.facts.values()} == {info.versions["iperf3"]}
    rows = [row for row in run.rows() if row["cell"] in (3, 4)]
    assert [row["mss_effective"] for row in rows] == [988, 988, 1448, 1448]
    assert {row["window_effective_bytes"] for row in rows} == {65536}
    assert "8960→1448" in run.said
    assert "1000→" not in run.said
    for row in real(by_iperf3, host)["datagrams"].rows():
        assert 0 < row["bytes"] * 8e-6 < 1.05 * row["rate_mbps"]  # in a second
        assert row["datagrams_sent"] >= row["datagrams_lost"] >= 0
        assert row["jitter_us"] is not None


def test_without_iperf3_nothing_is_measured_and_its_package_told(user: User) -> None:
    absent = program(user.folder / "bin" / "iperf3", "exit 127")
    user.environment["PATH"] = f"{absent.parent}:{os.environ['PATH']}"
    said = user.rigctl("run", user.scenario(STREAMS), code=3)
    assert said.count("iperf3 is not installed") == 1
    assert "pi1, pi2, pi3, pi4: iperf3 is not installed" in said
    assert "apt-get install iperf3" in said
    assert not (user.folder / "store.db").exists() or "no run" in user.rigctl("show", code=2)


def at_work(guest: User) -> dict[int, str]:
    """Return iperf3, and the shells and timeouts that run it."""
    return guest.on_nodes(re.compile("iperf3 -|read -r id command"))


def test_a_controller_that_is_killed_leaves_no_process_and_no_port(guest: User) -> None:
    with traffic(guest, guest.scenario(LONG), by=lambda: at_work(guest)) as run:
        eventually(lambda: sum(line.startswith("iperf3 ") for line in at_work(guest).values()) == 2)
        os.kill(run.pid, signal.SIGKILL)
        eventually(lambda: at_work(guest) == {})
    assert listening_in(guest, "pi2") <= 1  # the node's own SSH server


def test_an_iperf3_that_is_killed_fails_only_its_own_repetition_and_nothing_stays(guest: User) -> None:
    with traffic(guest, guest.scenario(LONG), "--repeat", "2", by=lambda: at_work(guest)) as run:
        for pid in eventually(lambda: [own for own, line in at_work(guest).items() if line.startswith("iperf3 -s")]):
            os.kill(pid, signal.SIGKILL)
        # The second would take a minute: that it is measured is enough.
        eventually(lambda: " 1/1     1/2 " in run.messages())
        eventually(lambda: any(line.startswith("iperf3 -c") for line in at_work(guest).values()))
        os.kill(run.pid, signal.SIGINT)
        done = run.ended()
    assert done.returncode == 130, done.stderr
    first, second = guest.rows("cells")
    assert (first["status"], second["status"]) == ("failed", "interrupted")
    assert "iperf3: " in first["reason"]
    eventually(lambda: at_work(guest) == {})
    guest.rigctl("run", "s.yaml", "--no-report", "--duration", "1s")
    assert [row["status"] for row in guest.rows("cells")] == ["ok"]
    eventually(lambda: at_work(guest) == {})
