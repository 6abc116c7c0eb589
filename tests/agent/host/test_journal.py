"""The journal: where agent and guard were both killed, the next agent from the same folder puts the old values back."""

import fcntl
import resource
from pathlib import Path

import pytest
from fake_clock import FakeClock
from lab import Lab, kill_with_guard
from processes import eventually
from talk import Talk

SET_MTU = "set kind=mtu interface=v0 value=1400"
OLD_MTU = "set mtu - v0 1500\n"


def header() -> str:
    return f"rigctl-settings 1 {Path('/proc/sys/kernel/random/boot_id').read_text()}"


def left_by_an_earlier_agent(lab: Lab, text: str) -> None:
    lab.run("ip", "link", "set", "v0", "mtu", "1400")
    lab.journal.write_text(text)


def test_old_values_are_on_disk_and_where_agent_and_guard_were_killed_the_next_agent_restores_them(lab: Lab) -> None:
    before = lab.sysctl("net.ipv4.tcp_rmem")
    agent = lab.start()
    agent.ask(SET_MTU)
    agent.ask("set kind=sysctl name=net.ipv4.tcp_rmem value=4096%2065536%201048576")
    head, first, second = lab.journal.read_text().splitlines(keepends=True)
    assert (head, first) == (header(), OLD_MTU)
    assert second.startswith("set sysctl net.ipv4.tcp_rmem - 4096%20")
    assert lab.journal.stat().st_mode & 0o777 == 0o600
    kill_with_guard(lab, agent)
    assert (lab.mtu(), lab.sysctl("net.ipv4.tcp_rmem")) == (1400, "4096 65536 1048576")
    following = lab.start()
    assert (following.hello["restored"], following.hello["unrestored"]) == (2, None)
    assert (lab.mtu(), lab.sysctl("net.ipv4.tcp_rmem")) == (1500, before)
    assert not lab.journal.exists()


@pytest.mark.parametrize(
    ("text", "mode"),
    [*((text, 0o600) for text in (
        "nonsense\n\n", "{header}set mtu - v0\n", "{header}set mtu - v0 1500 more\n", "{header}put mtu - v0 1500\n",
        "{header}set mtu - v0 15%0\n", "{header}set mtu - " + "v" * 20 + " 1500\n", "{header}" + OLD_MTU * 65)),
     ("{header}" + OLD_MTU, 0o622)],
)  # fmt: skip
def test_a_journal_that_is_damaged_or_could_be_that_of_others_is_kept_aside(lab: Lab, text: str, mode: int) -> None:
    written = text.replace("{header}", header())
    left_by_an_earlier_agent(lab, written)
    lab.journal.chmod(mode)
    hello = lab.start().hello
    assert hello["restored"] == 0
    assert "damaged" in hello["unrestored"]
    assert lab.mtu() == 1400
    assert not lab.journal.exists()
    assert Path(f"{lab.journal}.damaged").read_text() == written


OTHER_BOOT = f"rigctl-settings 1 00000000-0000-0000-0000-000000000000\n{OLD_MTU}"


@pytest.mark.parametrize(
    ("text", "restored"),
    [("", 0), ("rigctl-sett", 0), ("{header}", 0), (OTHER_BOOT, 0), ("{header}" + OLD_MTU + "set mtu - v1 14", 1)],
)
def test_lines_of_another_boot_and_a_cut_one_are_not_acted_upon(lab: Lab, text: str, restored: int) -> None:
    left_by_an_earlier_agent(lab, text.replace("{header}", header()))
    hello = lab.start().hello
    assert (hello["restored"], hello["unrestored"]) == (restored, None)
    assert (lab.mtu("v0"), lab.mtu("v1")) == (1500 if restored else 1400, 1500)
    assert not lab.journal.exists()


def test_what_can_not_be_put_back_stays_in_the_journal_and_is_said_until_it_can(lab: Lab) -> None:
    left_by_an_earlier_agent(lab, f"{header()}set mtu - v9 1500\n{OLD_MTU}")
    for restored in (1, 1):
        agent = lab.start()
        assert agent.hello["restored"] == restored
        assert agent.hello["unrestored"] == "mtu of v9: No such device"
        assert lab.mtu() == 1500
        agent.end()
        assert lab.journal.exists()
    lab.run("ip", "link", "add", "v9", "mtu", "1300", "type", "veth", "peer", "name", "v8")
    hello = lab.start().hello
    assert (hello["restored"], hello["unrestored"], lab.mtu("v9")) == (2, None, 1500)
    assert not lab.journal.exists()


def test_while_one_agent_holds_settings_another_can_not_change_any(still_lab: Lab, clock: FakeClock) -> None:
    lab = still_lab
    first = lab.start()
    first.ask(SET_MTU)
    second = lab.start(by=clock.by_jumps)  # waits for who restores, and gives up
    assert second.hello["unrestored"] == "another agent holds this node's settings"
    assert second.ask("set kind=mtu interface=v1 value=1400")["error"] == "EBUSY"
    assert lab.mtu("v1") == 1500
    second.end()
    assert (lab.mtu(), lab.journal.exists()) == (1400, True)
    assert first.ask("restore")["restored"] == 1


def test_where_the_journal_can_not_be_written_nothing_is_changed(lab: Lab) -> None:
    victim = lab.folder / "victim"
    victim.write_text("mine\n")
    agent = lab.start()
    lab.journal.symlink_to(victim)
    link = agent.ask(SET_MTU)["message"]
    lab.journal.unlink()
    lab.journal.mkdir()
    folder = agent.ask(SET_MTU)["message"]
    for message, words in ((link, "symbolic link"), (folder, "is a directory")):  # each C library has its own
        assert message.startswith("mtu of v0: its old value could not be kept safe: ")
        assert words in message.lower()
    assert (lab.mtu(), victim.read_text()) == (1500, "mine\n")


def test_only_settings_of_the_network_are_restored_or_set(lab: Lab) -> None:
    agent = lab.start()
    assert agent.ask("set kind=sysctl name=kernel.core_pattern value=core")["error"] == "EPERM"
    agent.end()
    left_by_an_earlier_agent(lab, header() + "set sysctl kernel.core_pattern - core\n")
    assert lab.start().hello["restored"] == 0


def test_a_line_for_which_there_was_no_room_does_not_spoil_those_that_follow(lab: Lab) -> None:
    agent = lab.start()
    assert agent.ask(SET_MTU)["ok"]
    pid, size = agent.process.pid, lab.journal.stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
    refused = agent.ask("set kind=sysctl name=net.ipv4.tcp_sack value=0")
    assert (refused["ok"], lab.sysctl("net.ipv4.tcp_sack")) == (False, "1")
    assert lab.journal.stat().st_size == size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert agent.ask("set kind=sysctl name=net.ipv4.tcp_timestamps value=0")["ok"]
    agent.process.kill()
    eventually(lambda: (lab.mtu(), lab.sysctl("net.ipv4.tcp_timestamps")) == (1500, "1"))
    eventually(lambda: not lab.journal.exists())


def test_a_journal_that_its_last_holder_removes_meanwhile_is_made_anew(still_lab: Lab, clock: FakeClock) -> None:
    journal = still_lab.journal
    agent = still_lab.start(by=clock.by)
    journal.write_text(header())
    with journal.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        number = agent.send(SET_MTU)
        eventually(lambda: opened(agent, journal))  # it waits for the lock
        journal.unlink()
    clock.advance(0.01)
    assert agent.answer(number)[-1]["ok"]
    assert journal.read_text() == header() + OLD_MTU


def opened(agent: Talk, file: Path) -> bool:
    return any(entry.readlink() == file for entry in Path(f"/proc/{agent.process.pid}/fd").iterdir())
