"""Results of iperf3 as a run: what the receiver counted or unknown, settings, repetitions, files that are refused."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known
from planning import planned

from rigctl.analysis.nights.figures import keys_of_tests
from rigctl.analysis.rows.frames import load
from rigctl.base.errors import InputError
from rigctl.figures import Level
from rigctl.findings import Weight
from rigctl.measure.iperf3_files import Imported, import_reports, reports_of
from rigctl.records import RunInfo, RunStatus, Status
from rigctl.report.blocks import Table
from rigctl.report.document import document
from rigctl.settings import CONGESTION, DSCP, MSS, RATE, WINDOW
from rigctl.store.rows import refusal

FIXTURES = Path(__file__).parents[1] / "fixtures" / "iperf3"
NODES = {"10.9.9.1": "a", "10.9.9.2": "b"}
VERSIONS = pytest.mark.parametrize("version", ["3.9", "3.12", "3.21"])
Edit = Callable[[dict[str, Any]], object]


def made(*names: str, edit: Edit | None = None, nodes: dict[str, str] | None = None) -> Imported:
    """The run of recorded tests, each `VERSION/NAME.END`."""
    contents = [(FIXTURES / f"{name}.json").read_bytes() for name in names]
    if edit is not None:
        documents = [json.loads(content) for content in contents]
        for one in documents:
            edit(one)
        contents = [json.dumps(one).encode() for one in documents]
    found = [one for name, content in zip(names, contents, strict=True) for one in reports_of(f"{name}.json", content)]
    return import_reports(found, NODES if nodes is None else nodes)


def info(run: Imported) -> RunInfo:
    return RunInfo("20261123-221414-66f9", run.plan, RunStatus.COMPLETE, run.started_at, run.ended_at,
                   dict(run.versions), dict(run.facts))  # fmt: skip


def rows(run: Imported) -> Sequence[Mapping[str, Any]]:
    return load(info(run), run.repetitions).rows(Level.PAIRS)


def goodput(name: str, edit: Edit | None = None) -> list[float | None]:
    return [row["goodput_mbps"] for row in rows(made(name, edit=edit))]


def of_receiver(name: str, key: str = "sum_received") -> float:
    """The bit/s that iperf3 prints for the receiver, in Mbit/s."""
    document_ = json.loads((FIXTURES / f"{name}.json").read_bytes())
    return float(document_["end"][key]["bits_per_second"]) / 1e6


def as_3_1(document_: dict[str, Any]) -> None:
    """Leave out what iperf3 3.1 does not print."""
    start, end = document_["start"], document_["end"]
    start["version"] = "iperf 3.1.3"
    for name in ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual", "target_bitrate"):
        start.pop(name, None)
    for name in ("tos", "target_bitrate"):
        start["test_start"].pop(name, None)
    for stream in [each for interval in document_["intervals"] for each in interval["streams"]]:
        del stream["sender"]
        for name in ("pmtu", "rttvar", "snd_wnd"):
            stream.pop(name, None)
    for stream in end["streams"]:
        for total in stream.values():
            total.pop("sender", None)
    end.pop("sender_tcp_congestion", None)


@VERSIONS
@pytest.mark.parametrize(("name", "edit"), [*product(("tcp", "reverse"), (None, as_3_1)), ("many", None)])
def test_goodput_is_the_receivers_figure_of_a_clients_report(version: str, name: str, edit: Edit | None) -> None:
    (found,) = goodput(f"{version}/{name}.client", edit)
    assert found == pytest.approx(of_receiver(f"{version}/{name}.client"), rel=0.012)


@VERSIONS
def test_a_server_that_received_knows_the_goodput_and_one_that_sent_does_not(version: str) -> None:
    (found,) = goodput(f"{version}/tcp.server")
    assert found == pytest.approx(of_receiver(f"{version}/tcp.server"), rel=0.02)
    run = made(f"{version}/reverse.server")
    (row,) = rows(run)
    assert (row["goodput_mbps"], row["direction"], row["status"]) == (None, "reverse", "ok")
    assert row["retransmits"] is not None
    assert [found is None for found in goodput(f"{version}/bidir.server")] == [False, True]


def test_a_client_takes_the_servers_total_only_and_each_direction_its_own() -> None:
    assert goodput("3.12/tcp.client", lambda one: one["end"]["streams"][0].pop("receiver")) == [None]
    figures = [of_receiver("3.21/bidir.client", key) for key in ("sum_received", "sum_received_bidir_reverse")]
    assert goodput("3.21/bidir.client") == pytest.approx(figures, rel=0.02)


def test_datagrams_that_were_lost_at_the_end_are_lost() -> None:
    (row,) = rows(made("3.12/udp-lossy.client"))
    assert (row["datagrams_sent"], row["datagrams_lost"]) == (16852, 4)
    assert row["goodput_mbps"] == pytest.approx(of_receiver("3.12/udp-lossy.client"), rel=0.02)
    assert goodput("3.9/udp.client") == [None]  # it has the sender's bytes only
    (row,) = rows(made("3.21/udp-reverse.client"))
    intervals = json.loads((FIXTURES / "3.21/udp-reverse.client.json").read_bytes())["intervals"]
    received = sum(stream["bytes"] for interval in intervals for stream in interval["streams"])
    assert row["datagrams_sent"] - row["datagrams_lost"] == received // 1448


def test_settings_are_those_of_the_report() -> None:
    (cell,) = made("3.21/many.client").plan.cells
    assert (cell.parallel, cell[WINDOW], cell[MSS], cell[DSCP], cell[CONGESTION]) == (3, 65536, 1000, "EF", "cubic")
    (cell,) = made("3.21/omit.client").plan.cells
    assert (cell.duration_s, cell.omit_s, cell[WINDOW], cell[MSS], cell[DSCP]) == (2.0, 1.0, None, None, None)
    (cell,) = made("3.12/udp.client").plan.cells
    assert (cell.test, cell.message_bytes, cell[RATE]) == ("udp", 1448, 20_000_000)
    (cell,) = made("3.9/tcp.client", edit=as_3_1).plan.cells
    assert (cell[WINDOW], cell[DSCP], cell[CONGESTION], cell[RATE]) == (None, None, None, None)


@pytest.mark.parametrize("name", ["3.21/omit.client", "3.21/omit.server"])
def test_an_omitted_start_is_not_counted(name: str) -> None:
    assert goodput(name) == pytest.approx([of_receiver(name)], rel=0.02)


def test_reports_with_the_same_settings_are_repetitions() -> None:
    run = made("3.12/tcp.client", "3.9/tcp.client", "3.12/many.client", edit=lambda one: one["end"].update(
        {"sender_tcp_congestion": "cubic"}))  # fmt: skip
    keys = [repetition.key for repetition in run.repetitions]
    assert sorted(keys) == [(1, 1, 1), (1, 2, 1), (2, 1, 1)]
    assert run.plan.repeat == 2
    both = made("3.21/tcp.client", "3.21/tcp.server")
    (row,) = rows(both)
    assert len(both.repetitions) == 1
    assert (row["goodput_mbps"], row["mss_effective"]) == (goodput("3.21/tcp.server")[0], 1448)
    with pytest.raises(InputError, match=r"is the same test as 3\.21/tcp\.client\.json"):
        made("3.21/tcp.client", "3.21/tcp.client")


def test_nodes_have_the_names_given_else_host_names_else_addresses() -> None:
    assert made("3.21/tcp.client").plan.nodes == ("a", "b")
    assert made("3.21/tcp.client", nodes={}).plan.nodes == ("host", "10.9.9.2")
    # Both ends have the same host name.
    assert made("3.21/tcp.client", "3.21/tcp.server", nodes={}).plan.nodes == ("10.9.9.1", "10.9.9.2")


def test_a_run_with_the_engine_iperf3_has_the_same_test(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("nodes: {a: {address: 10.9.9.1}, b: {address: 10.9.9.2}}\n", encoding="utf-8")
    head = "rig: r.yaml\npairs: [a -> b]\nengine: iperf3\nduration: 5s\n"
    plan = planned(tmp_path, "matrix: {congestion: cubic}", head=head)
    assert keys_of_tests(plan.cells) == keys_of_tests(made("3.12/tcp.client").plan.cells)


def test_the_page_says_that_the_run_was_imported() -> None:
    run = made("3.12/tcp.client", "3.12/reverse.server", "3.12/udp.client")
    page = document(info(run), run.repetitions)
    assert page.about[0] == "imported from iperf3"
    assert "imported" in [finding.code for finding in page.findings]
    assert {section.title for section in page.sections} & {"Data", "Reproduce"} == {"Data"}
    assert all(row["limit"] in ("unknown", "rate") and row["efficiency"] is None for row in rows(run))


def test_a_test_that_ended_early_does_not_count() -> None:
    run = made("3.21/tcp.client", edit=lambda one: one["start"]["test_start"].update({"duration": 10}))
    assert [repetition.status for repetition in run.repetitions] == [Status.INVALID]


def _started(**changes: object) -> Edit:
    return lambda one: one["start"]["test_start"].update(changes)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_started(bytes=1_000_000), "of a number of bytes or blocks"),
        (_started(duration=0), "of a number of bytes or blocks"),
        (_started(protocol="SCTP"), "is a test of SCTP"),
        (_started(num_streams=0), "start.test_start.num_streams"),
        (lambda one: one.update(error="unable to connect"), "the test failed: unable to connect"),
        (lambda one: one["start"].pop("test_start"), "is no report of a whole test"),
        (lambda one: one.update(end={}), "is no report of a whole test"),
        (lambda one: one["start"].pop("connecting_to"), "whether a client or a server"),
        (lambda one: one.update(intervals=[]), "no interval"),
        (lambda one: one["intervals"][0]["streams"][0].update(bytes=2**70), "intervals.0.streams.0.bytes"),
        (lambda one: one["end"]["streams"][0]["receiver"].update(end=float("inf")), "end.streams.0.receiver.end"),
    ],
)
def test_what_rigctl_cannot_represent_is_refused(edit: Edit, said: str) -> None:
    with pytest.raises(InputError, match=f"3.21/tcp.client.json: .*{said}.*Nothing was imported"):
        made("3.21/tcp.client", edit=edit)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", " is empty"),
        (b"iperf3: error - unable to connect\n", " has no JSON. It begins with 'iperf3: error - unable to connect'"),
        (b'{\n "start": {,}\n}', "2:12: is no JSON"),
        (b'{"start": ', "1:11: is no JSON"),
        (b"\xff\xfe", " is empty"),
        (b"\xff{}", "is no report of a whole test"),
        (b'{"a": ' * 100_000, "1: is JSON that is nested too deep"),
        (b'{"event": "start", "data": {}}\n{"event": "end"}', "--json-stream"),
        (b"{host-a} iperf3 begins", " has no JSON. It begins with '{host-a} iperf3 begins'"),
        (b'[{"name": "x"}]', "is no report of a whole test"),
        (b'{"name": "x"}', "is no report of a whole test"),
    ],
)
def test_damaged_and_foreign_files_are_refused_with_their_place(content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=f"^f.json:.*{said}"):
        reports_of("f.json", content)


@pytest.mark.parametrize(
    "around",
    [
        lambda text: f"{text}iperf3: error - unable to send control message: Broken pipe\n".encode(),
        lambda text: f"warning: UDP block size 8192 exceeds TCP MSS 1448\n{text}".encode(),
        lambda text: f"2026-11-26T09:00:00 host-a {json.dumps(json.loads(text))}".encode(),
        lambda text: f"[{text}]".encode(),
        lambda text: f"{{host-a}} iperf3 begins\n{text}{{host-a}} iperf3 has ended\n".encode(),
        lambda text: text.encode("utf-16"),  # with a byte order mark, as `>` of PowerShell writes
        lambda text: text.replace("\n", "\r\n").encode("utf-16-le"),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: f"Trying 10.9.9.2\x85 \xe9t\xe9\n{text}".encode("latin-1"),
    ],
)
def test_text_around_a_report_and_its_encoding_do_not_matter(around: Callable[[str], bytes]) -> None:
    content = (FIXTURES / "3.12/tcp.client.json").read_bytes()
    (plain,), (other,) = reports_of("f", content), reports_of("f", around(content.decode()))
    assert other.report == plain.report


def test_several_reports_with_lines_between_and_without_are_all_read() -> None:
    text = (FIXTURES / "3.12/tcp.client.json").read_text("utf-8")
    one = json.dumps(json.loads(text))
    assert len(reports_of("log", f"run 1\n{text}\nrun 2\n{text}".encode())) == 2
    assert len(reports_of("log", f"{one}{one}\n[{one}, {one}]".encode())) == 4


OF_A_BSD = {"pmtu": -1, "rttvar": -1}
ALTOGETHER = {"pmtu": -1, "rtt": -1, "snd_wnd": -1, "snd_cwnd": -1, "retransmits": -2}


@pytest.mark.parametrize(("unknown", "rtt_us"), [(OF_A_BSD, 4804), (ALTOGETHER, None)])
def test_what_iperf3_does_not_know_is_unknown(unknown: dict[str, int], rtt_us: int | None) -> None:
    run = made("3.12/tcp.client", edit=lambda one: [each["streams"][0].update(unknown) for each in one["intervals"]])
    (flow,) = run.repetitions[0].flows
    tcp = known(flow.sender).tcp
    assert (tcp.pmtu, tcp.rtt_us, flow.retransmits) == (None, rtt_us, 0)
    assert [row["goodput_mbps"] for row in rows(run)] == goodput("3.12/tcp.client")


@pytest.mark.parametrize("jitter", ["-nan", "nan", "-1", "612345678.9"])
def test_a_jitter_that_cannot_be_is_unknown(jitter: str) -> None:
    text = (FIXTURES / "3.12/udp.server.json").read_text("utf-8")
    changed = re.sub(r'("jitter_ms":\s*)[0-9.e-]+', rf"\g<1>{jitter}", text)
    (row,) = rows(import_reports(reports_of("f", changed.encode()), NODES))
    (before,) = rows(made("3.12/udp.server"))
    assert (row["jitter_us"], row["datagrams_lost"]) == (None, before["datagrams_lost"])


_SOURCE = json.loads((FIXTURES / "3.21/many.client.json").read_bytes())


def _paths(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(one for key, each in items for one in _paths(each, (*path, key)))]


@given(
    st.sampled_from([path for path in _paths(_SOURCE) if path]),
    st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.booleans(), st.just([]), st.just({})),
)
def test_any_value_in_any_place_is_imported_or_refused(path: tuple[Any, ...], value: object) -> None:
    changed = json.loads(json.dumps(_SOURCE))
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    try:
        run = import_reports(reports_of("f.json", json.dumps(changed).encode()), {})
    except InputError as error:
        assert str(error).startswith("f.json: ")
        return
    assert [refusal(one) for one in run.repetitions] == [None] * len(run.repetitions)
    document(info(run), run.repetitions)


def test_a_record_that_no_store_takes_is_refused_with_the_reason() -> None:
    (repetition,) = made("3.12/tcp.client").repetitions
    assert refusal(repetition) is None
    assert refusal(builders.changing_flows(repetition, sender={"pmtu": -1})) == "pmtu is below 0"


def test_each_kind_of_imported_tests_has_its_table_and_its_answer() -> None:
    run = made("3.12/tcp.client", "3.12/udp.client", "3.12/udp-lossy.client")
    page = document(info(run), run.repetitions)
    (results,) = page.results
    tables = [block for block in results.blocks if isinstance(block, Table)]
    assert [[row.test for row in table.rows] for table in tables] == [[1], [2, 3]]
    assert [finding.weight for finding in page.findings].count(Weight.ANSWER) == 2
