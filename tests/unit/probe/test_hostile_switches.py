"""A switch may answer anything: a value of another type is unknown, a table that never ends does."""

import asyncio
from typing import Any, cast

import pytest
from pysnmp.hlapi.v3arch import asyncio as hlapi
from pysnmp.proto import rfc1902

from rigctl.base.errors import NodeError
from rigctl.probe.switches import snmp
from rigctl.probe.switches.snmp import Session, text_of, whole
from rigctl.rig.inventory import Snmp, Switch


@pytest.mark.parametrize(
    "value", [rfc1902.OctetString("abc"), rfc1902.OctetString(""), rfc1902.IpAddress("1.2.3.4"), rfc1902.Integer32(-5),
              rfc1902.ObjectIdentifier("1.3.6")],
)  # fmt: skip
def test_what_is_no_count_is_unknown(value: object) -> None:
    assert whole(value) is None


@pytest.mark.parametrize("value", [rfc1902.Integer32(2**31 - 1), rfc1902.Counter64(2**64 - 1)])
def test_a_name_that_is_a_number_takes_no_memory(value: object) -> None:
    """`bytes(number)` would be gigabytes of zeros."""
    assert text_of(value) == ""


def test_a_name_commands_no_terminal() -> None:
    assert text_of(rfc1902.OctetString(b"\x1b[2J\xe2\x80\xae\xff" * 1000)).startswith("?[2J?")
    assert len(text_of(rfc1902.OctetString(b"\x1b" * 65535))) == 255


class Endless(Session):
    """A switch whose table begins again and again, or whose answers come late."""

    asked = 0

    def _bindings(self, answer: tuple[Any, Any, Any, Any]) -> Any:
        type(self).asked += 1
        return [(f"1.2.{number}", rfc1902.Integer32(1)) for number in (7, 8, 9)]


def endless() -> Endless:
    return Endless(Switch("sw", "sw", address="127.0.0.1", snmp=Snmp()), cast(Any, None), None, None)


def test_a_table_that_begins_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(*_: object, **__: object) -> tuple[Any, Any, Any, Any]:
        return None, 0, 0, ()

    monkeypatch.setattr(hlapi, "bulk_cmd", answered)
    rows = asyncio.run(endless().walk("1.2", 10_000))
    assert (len(rows), Endless.asked) == (6, 2)


def test_a_table_that_is_never_read_whole_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*_: object, **__: object) -> tuple[Any, Any, Any, Any]:
        await asyncio.sleep(3600)
        return None, 0, 0, ()

    monkeypatch.setattr(hlapi, "bulk_cmd", late)
    monkeypatch.setattr(snmp, "WALK_S", 0.01)
    with pytest.raises(NodeError, match="a table of it was not read within"):
        asyncio.run(endless().walk("1.2", 10))
