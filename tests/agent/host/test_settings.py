"""Host settings: changed and read back, refused in the kernel's words, and always put back."""

import signal
from pathlib import Path

import pytest
from cases import from_file
from fake_clock import FakeClock
from lab import Lab, guard_of, is_running
from processes import DEADLINE_S, eventually
from talk import Talk

RMEM = "net.ipv4.tcp_rmem"
SET_MTU = "set kind=mtu interface=v0 value=1400"
SET_SACK = "set kind=sysctl name=net.ipv4.tcp_sack value=0"


@pytest.fixture(scope="module")
def idle(unchanged: Lab) -> Talk:
    unchanged.run("ip", "tuntap", "add", "t0", "mode", "tap")  # carries 65521 at most
    return unchanged.start()


def test_each_kind_is_changed_and_read_back_and_goes_back_to_what_it_was_at_first(lab: Lab) -> None:
    agent = lab.start()
    assert (agent.hello["restored"], agent.hello["unrestored"]) == (0, None)
    before = lab.sysctl(RMEM)
    assert agent.ask("set kind=mtu interface=v0 value=1300") == {"id": 1, "ok": True, "old": "1500", "value": "1300"}
    assert agent.ask(SET_MTU)["old"] == "1300"
    answer = agent.ask(f"set kind=sysctl name={RMEM} value=4096%2065536%201048576")
    assert (answer["old"], answer["value"]) == (before, "4096 65536 1048576")
    # Slashes where the name of an interface could hold a dot.
    answer = agent.ask("set kind=sysctl name=net/ipv4/conf/v0/rp_filter value=2")
    assert answer["value"] == "2"
    was = lab.gro()
    answer = agent.ask(f"set kind=offload name=gro interface=v0 value={'off' if was == 'on' else 'on'}")
    assert (answer["old"], answer["value"]) == (was, "off" if was == "on" else "on")
    assert (lab.mtu(), lab.sysctl(RMEM), lab.gro() != was) == (1400, "4096 65536 1048576", True)
    assert agent.ask("restore") == {"id": 6, "ok": True, "restored": 4}
    assert (lab.mtu(), lab.sysctl(RMEM), lab.gro()) == (1500, before, was)
    assert not lab.journal.exists()
    assert agent.ask("restore")["restored"] == 0


@pytest.mark.parametrize("name", [RMEM, "net.ipv4.tcp_sack", "net.ipv4.ip_local_port_range"])
def test_a_dry_order_tells_that_a_sysctl_cannot_be_written(lab: Lab, name: str) -> None:
    before = lab.sysctl(name)
    order = f"set kind=sysctl name={name} value=1 dry=1"
    assert lab.start().ask(order) == {"id": 1, "ok": True, "old": before, "value": before}
    read_only = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$0" "$@"'
    answer = lab.start(by=("unshare", "-m", "sh", "-c", read_only)).ask(order)
    assert (answer["error"], answer["message"]) == ("EROFS", f"sysctl {name}: Read-only file system")
    assert (lab.sysctl(name), lab.journal.exists()) == (before, False)


def test_the_last_one_set_is_put_back_first(lab: Lab) -> None:
    ports, privileged = "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"
    before = lab.sysctl(ports), lab.sysctl(privileged)
    agent = lab.start()
    # The range may not begin below the other: first to last, the old range would be refused.
    assert agent.ask(f"set kind=sysctl name={ports} value=50000%2060999")["ok"]
    assert agent.ask(f"set kind=sysctl name={privileged} value=45000")["ok"]
    assert agent.ask("restore")["restored"] == 2
    assert (lab.sysctl(ports), lab.sysctl(privileged)) == before


def test_a_fixed_offload_may_be_asked_to_stay_and_a_refused_one_needs_no_restoring(lab: Lab) -> None:
    agent = lab.start()
    assert agent.ask("set kind=offload name=rx interface=lo value=on")["value"] == "on"
    assert agent.ask("set kind=offload name=rx interface=lo value=off")["error"] == "EOPNOTSUPP"
    assert agent.ask("restore")["ok"]
    assert not lab.journal.exists()


@pytest.mark.parametrize("killed", [False, True])
@from_file
def test_offloads_are_as_before_even_where_their_single_features_differed(
    lab: Lab, own: tuple[str, ...], order: tuple[str, ...], killed: bool
) -> None:
    for each in own:
        lab.run("ethtool", "-K", "v0", *each.split())
    before = lab.run("ethtool", "-k", "v0")
    agent = lab.start()
    for name in order:
        assert agent.ask(f"set kind=offload name={name} interface=v0 value=off")["value"] == "off"
    assert lab.run("ethtool", "-k", "v0") != before
    if killed:
        agent.process.kill()
        eventually(lambda: not lab.journal.exists())
    else:
        assert agent.ask("restore")["ok"]
    assert lab.run("ethtool", "-k", "v0") == before


@from_file
def test_a_refusal_names_its_cause(unchanged: Lab, idle: Talk, order: str, error: str, message: str) -> None:
    answer = idle.ask(f"set {order}".rstrip())
    assert (answer["ok"], answer["error"]) == (False, error)
    assert answer["message"].startswith(message)
    assert (unchanged.sysctl("net.ipv4.tcp_sack"), unchanged.mtu("t0")) == ("1", 1500)
    assert idle.ask("restore")["ok"]
    assert not unchanged.journal.exists()


def test_without_permission_nothing_is_changed_and_that_is_said(lab: Lab) -> None:
    agent = lab.start(by=("unshare", "-U"))  # nobody's user: no rights over this network
    answer = agent.ask(SET_MTU)
    assert (answer["error"], answer["message"]) == ("EPERM", "mtu of v0: Operation not permitted")
    assert lab.mtu() == 1500


def test_at_most_64_settings_are_held_and_the_65th_changes_nothing(lab: Lab) -> None:
    agent = lab.start()
    names = [
        f"net.ipv4.conf.{interface}.{name}"
        for interface in ("v0", "v1", "lo", "default")
        for name in lab.run("ls", f"/proc/sys/net/ipv4/conf/{interface}").split()
        if name not in ("mc_forwarding", "forwarding")
    ][:65]
    answers = [agent.ask(f"set kind=sysctl name={name} value={lab.sysctl(name)}") for name in names]
    assert [answer["ok"] for answer in answers] == [True] * 64 + [False]
    assert answers[-1]["error"] == "ENOSPC"
    assert agent.ask("restore")["restored"] == 64


@pytest.mark.parametrize("how", ["end of file", "quit", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_however_the_agent_ends_old_values_are_back_and_nothing_is_left(lab: Lab, how: str | signal.Signals) -> None:
    agent = lab.start()
    guard = holding(agent)
    if isinstance(how, signal.Signals):
        agent.process.send_signal(how)
    elif how == "quit":
        assert agent.ask("quit")["ok"]
    else:
        agent.end()
    ended_and_restored(lab, agent, guard)


def test_silence_ends_an_agent_that_a_ping_would_keep_and_the_old_values_are_back(
    still_lab: Lab, clock: FakeClock
) -> None:
    agent = still_lab.start("--watchdog", "10", by=clock.by)
    guard = holding(agent)
    for _ in range(3):
        clock.advance(9)
        assert agent.ask("ping")["ok"]
    clock.advance(10)
    ended_and_restored(still_lab, agent, guard, code=1)


def holding(agent: Talk) -> int:
    for order in (SET_MTU, SET_SACK):
        assert agent.ask(order)["ok"]
    return guard_of(agent)


def ended_and_restored(lab: Lab, agent: Talk, guard: int, code: int = 0) -> None:
    assert agent.process.wait(DEADLINE_S) == code
    assert (lab.mtu(), lab.sysctl("net.ipv4.tcp_sack")) == (1500, "1")
    assert not lab.journal.exists()
    eventually(lambda: not is_running(guard))


def test_the_guard_outlives_signals_holds_nothing_of_the_session_and_is_followed_by_another(lab: Lab) -> None:
    agent = lab.start()
    agent.ask(SET_MTU)
    guard = guard_of(agent)
    held = sorted(str(entry.readlink()) for entry in Path(f"/proc/{guard}/fd").iterdir())
    assert len(held) == 2
    assert held[0] == str(lab.journal)
    assert held[1].startswith("pipe:")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        lab.run("kill", f"-{number:d}", str(guard))
    assert is_running(guard)
    lab.run("kill", "-9", str(guard))
    eventually(lambda: not is_running(guard))
    assert agent.ask(SET_SACK)["ok"]
    second = guard_of(agent)
    assert second != guard
    agent.process.kill()
    eventually(lambda: not is_running(second))
    assert (lab.mtu(), lab.sysctl("net.ipv4.tcp_sack")) == (1500, "1")
