"""Small hosts, with dropbear and busybox alone: what other tests do with OpenSSH and a whole system."""

import asyncio
import json
from pathlib import Path

import pytest
from busybox_host import dropbear, serve_small
from openssh_lab import laboratory
from processes import eventually

from rigctl.base.errors import NodeError
from rigctl.remote.host import connected


@pytest.mark.usefixtures("home")
async def test_commands_that_begin_while_others_end_all_run(tmp_path: Path) -> None:
    with dropbear(tmp_path) as server:
        async with connected(server.node()) as host:

            async def one_after_the_other(which: int) -> list[str]:
                return [(await host.run(f"echo {which}.{number}")).stdout for number in range(15)]

            async with host.process("cat") as lasting:
                said = await asyncio.gather(*map(one_after_the_other, range(4)))
                lasting.write(b"still here\n")
                assert await lasting.readline() == b"still here\n"
    assert said == [[f"{which}.{number}\n" for number in range(15)] for which in range(4)]


@pytest.mark.usefixtures("home")
async def test_an_unknown_host_with_one_key_is_told_by_its_fingerprint(tmp_path: Path) -> None:
    with dropbear(tmp_path) as server:
        with pytest.raises(NodeError, match="pi1: its host key is not known: ssh-ed25519 SHA256:"):
            async with connected(server.node(known_hosts=None)):
                pass


def test_hosts_with_busybox_alone_are_checked_measured_and_left_as_they_were(tmp_path: Path) -> None:
    with laboratory(tmp_path, ["pi1", "pi2"], serve_small) as lab:
        assert json.loads(lab.rigctl("check", "lab.yaml", "--json")[0])["errors"] == 0
        (tmp_path / "s.yaml").write_text(
            "rig: lab.yaml\npairs: [pi1 -> pi2]\nduration: 500ms\nmax_skew: 60s\n"
            "conditions: {small: {mtu: 1400, sysctl: {net.ipv4.tcp_sack: 0}, offload: {gro: off}}}\n"
        )
        lab.rigctl("run", "s.yaml", "--no-report")
        exported, _ = lab.rigctl("export", "--format", "json", "--level", "pairs")
        assert [row["mtu"] for row in json.loads(exported)] == [1400]
        eventually(lambda: [len(lab.processes(name)) for name in ("pi1", "pi2")] == [1, 1])
        for name in ("pi1", "pi2"):
            assert not list((tmp_path / name / "root/.cache").rglob("settings-*"))
