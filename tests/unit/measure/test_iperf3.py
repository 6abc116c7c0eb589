"""iperf3: its command lines, and what versions of it printed: as a repetition, and as a run; files that are refused."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import builders
import pytest
from documents import document
from hypothesis import given
from hypothesis import strategies as st
from known import known
from planning import planned

from rigctl.analysis.nights.comparison import keys_of_tests
from rigctl.base.errors import InputError
from rigctl.figures import Level
from rigctl.findings import Weight
from rigctl.measure.iperf3 import Exchange, ReportError, client_words, flows_of_pair, interval_s, report, server_words
from rigctl.measure.iperf3_files import RunFromFiles, import_reports, reports_of
from rigctl.records import Cell, Direction, Flow, Pair, RunInfo, RunStatus, Side, Status
from rigctl.report.blocks import Table
from rigctl.results.frames import load_frames
from rigctl.settings import CONGESTION, DSCP, MSS, NODELAY, RATE, WINDOW, Settings
from rigctl.store.rows import refusal

FIXTURES = Path(__file__).parents[1] / "fixtures" / "iperf3"
NODES = {"10.9.9.1": "a", "10.9.9.2": "b"}
VERSIONS = pytest.mark.parametrize("version", ["3.9", "3.12", "3.21"])
Edit = Callable[[dict[str, Any]], object]


def made(*names: str, edit: Edit | None = None, nodes: dict[str, str] | None = None) -> RunFromFiles:
    """The run of recorded tests, each `VERSION/NAME.END`."""
    contents = [(FIXTURES / f"{name}.json").read_bytes() for name in names]
    if edit is not None:
        documents = [json.loads(content) for content in contents]
        for one in documents:
            edit(one)
        contents = [json.dumps(one).encode() for one in documents]
    found = [one for name, content in zip(names, contents, strict=True) for one in reports_of(f"{name}.json", content)]
    return import_reports(found, NODES if nodes is None else nodes)


def info(run: RunFromFiles) -> RunInfo:
    return RunInfo("20261123-221414-66f9", run.plan, RunStatus.COMPLETE, run.started_at, run.ended_at,
                   dict(run.versions), dict(run.facts))  # fmt: skip


def rows(run: RunFromFiles) -> Sequence[Mapping[str, Any]]:
    return load_frames(info(run), run.repetitions).rows(Level.PAIRS)


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


FAR = [json.loads(line) for line in (FIXTURES / "udp-far.jsonl").read_text("utf-8").splitlines()]
"""Tests of 2 s at 10 Mbit/s without a loss: three versions, three round-trip times, `-R` and `--bidir`, both ends."""


def of_far(*reports: dict[str, Any]) -> list[Mapping[str, Any]]:
    found = [one for number, each in enumerate(reports) for one in reports_of(f"{number}", json.dumps(each).encode())]
    return list(rows(import_reports(found, NODES)))


@pytest.mark.parametrize("far", FAR, ids=lambda far: f"{far['version']} {far['rtt_ms']} ms {far['mode']}")
def test_what_is_on_the_way_when_the_receiver_ends_is_not_lost(far: dict[str, Any]) -> None:
    loss = {row["direction"]: row["datagrams_lost"] for row in of_far(far["client"])}
    of_server = {} if far["mode"] == "reverse" else {"forward": None if far["version"] == "3.10.1" else 0}
    assert loss == {"reverse": 0} | of_server  # a client of 3.10 has no bytes of the server
    assert {row["datagrams_lost"] for row in of_far(far["client"], far["server"])} == {0}
    client, server = (report(json.dumps(far[end]).encode()) for end in ("client", "server"))
    cell = replace(UDP, direction=Direction(far["mode"]), message_bytes=1400)
    for sender, receiver in map(ends, flows_of_pair(Exchange(Pair("a", "b"), client, server, START_NS), cell)):
        assert known(sender.datagrams).count == known(receiver.datagrams).count > 1700


def _lose(first_s: float, until_s: float, *, known: bool) -> Edit:
    """Take the datagrams of a time from the receiver, who counts them as missed if `known`: others came later."""

    def edit(one: dict[str, Any]) -> None:
        for each in [stream for interval in one["intervals"] for stream in interval["streams"]]:
            inside = min(each["end"], until_s) - max(each["start"], first_s)
            if not each["sender"] and inside > 0:
                lost = round(each["packets"] * inside / (each["end"] - each["start"]))
                each["bytes"] -= 1400 * lost
                each["lost_packets" if known else "packets"] += lost if known else -lost

    return edit


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(
    ("first_s", "known", "least", "most"),
    [(0.5, True, 440, 460), (0.9, True, 880, 910), (0.5, False, 1330, 1345), (0.9, False, 970, 990)],
)
def test_what_was_lost_counts_also_where_nothing_came_until_the_end(
    both: bool, first_s: float, known: bool, least: int, most: int
) -> None:
    far = next(far for far in FAR if (far["version"], far["rtt_ms"], far["mode"]) == ("3.12", 40, "reverse"))
    client = json.loads(json.dumps(far["client"]))
    until_s = {0.5: 1.0, 0.9: 1.9}[first_s] if known else 9.9
    _lose(first_s, until_s, known=known)(client)
    (row,) = of_far(client, far["server"]) if both else of_far(client)
    assert least <= row["datagrams_lost"] <= most


def _totals_of_a_quiet_end(one: dict[str, Any]) -> None:
    """Let the server have got nothing of the last half: its gaps do not show it."""
    one["end"]["sum_received"].update(bytes=892 * 1400, packets=892)


def test_a_client_that_sent_knows_from_the_servers_totals_that_the_last_half_was_lost() -> None:
    far = next(far for far in FAR if (far["version"], far["rtt_ms"], far["mode"]) == ("3.12", 40, "both"))
    client = json.loads(json.dumps(far["client"]))
    _totals_of_a_quiet_end(client)
    lost = {row["direction"]: row["datagrams_lost"] for row in of_far(client)}
    assert lost == {"forward": 1785 - 892, "reverse": 0}


def as_3_19(one: dict[str, Any]) -> None:
    """Let the receiver count the datagrams, and 16 bytes of each: iperf3 3.19 and 3.20."""
    if one["start"].get("accepted_connection"):
        one["intervals"][0]["streams"][0]["packets"] = 191
    one["end"]["sum_received"]["packets"] = 191


def as_3_19_by_chance(one: dict[str, Any]) -> None:
    as_3_19(one)
    as_blocks_of_16(one)


def as_blocks_of_16(one: dict[str, Any]) -> None:
    """Let 16 bytes of each datagram make up whole datagrams by chance."""
    for each in (one["end"]["sum_received"], *(interval["streams"][0] for interval in one["intervals"])):
        each["bytes"] = 32768 * (191 if each.get("sender") else 2)


@pytest.mark.parametrize("edit", [None, as_3_19, as_blocks_of_16, as_3_19_by_chance])
@pytest.mark.parametrize("names", [("client",), ("client", "server"), ("server",)])
def test_counts_that_contradict_each_other_are_unknown_and_said_so(names: Sequence[str], edit: Edit | None) -> None:
    run = made(*(f"3.21/skip-rx-copy.{name}" for name in names), edit=edit)
    (row,) = rows(run)
    assert [row[name] for name in ("goodput_mbps", "datagrams_lost", "loss_pct")] == [None] * 3
    assert row["datagrams_sent"] == (191 if "client" in names else None)
    (finding,) = [one for one in document(info(run), run.repetitions).findings if one.code == "contradicting-report"]
    assert all(f"skip-rx-copy.{name}.json: the receiver's bytes" in finding.text for name in names)
    assert "3.21/" not in finding.text  # the folders of whoever imported it


@pytest.mark.parametrize("name", ["3.21/udp-lossy.client", "3.21/udp-reverse.client", "3.12/udp.client"])
def test_counts_that_agree_have_no_note(name: str) -> None:
    assert made(name).plan.notes == ""


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
        lambda text: f"begins\r\n{text}".encode("utf-16-be"),
        lambda text: f"\x1b[32mok\x1b[0m {text}".encode(),  # the report begins before the lines that begin with a brace
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
    assert len(reports_of("log", f"run 1: {one} and then {one}\nrun 3: {one} over".encode())) == 3


STREAMED = (FIXTURES / "3.21/stream-full.client.json").read_text("utf-8")
EVENTS = "\n".join(line for line in STREAMED.splitlines() if line.startswith('{"event"')) + "\n"


@pytest.mark.parametrize("text", [STREAMED, STREAMED * 2, f"run 1\n{STREAMED}run 2\n{STREAMED}over\n"])
def test_the_report_behind_the_events_of_a_stream_is_read(text: str) -> None:
    assert [one.report.seconds for one in reports_of("f.json", text.encode())] == [1.00188] * text.count(
        '"event":"end"'
    )


@pytest.mark.parametrize(
    ("text", "place"), [(EVENTS, "f.json"), (STREAMED + EVENTS, "f.json:"), (EVENTS + STREAMED, "f.json")]
)
def test_events_without_their_report_are_refused(text: str, place: str) -> None:
    with pytest.raises(InputError, match=f"^{place}.*from --json-stream, without a report.*--json-stream-full-output"):
        reports_of("f.json", text.encode())


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


CELL = Cell(1, "tcp", (Pair("a", "b"),), 10.0, 0.0, 1)
START_NS = 5 * 10**9
OTHERS = "-M 1460 -C cubic -N"
TWO_VERSIONS = pytest.mark.parametrize("version", ["3.9", "3.12"])


def printed(version: str, name: str, end: str) -> bytes:
    return (FIXTURES / version / f"{name}.{end}.json").read_bytes()


def measured(version: str, name: str, cell: Cell = CELL) -> list[Flow]:
    """The flows of a recorded test of one second between two namespaces, shaped to 200 Mbit/s."""
    client, server = (report(printed(version, name, end)) for end in ("client", "server"))
    assert client.start.version == f"iperf {version}"
    return list(flows_of_pair(Exchange(Pair("a", "b"), client, server, START_NS), cell))


def ends(flow: Flow) -> tuple[Side, Side]:
    return known(flow.sender), known(flow.receiver)


SET = Settings({WINDOW: 65536, MSS: 1460, CONGESTION: "cubic", NODELAY: True})
UDP = replace(CELL, test="udp", transport="udp", message_bytes=1448)


@pytest.mark.parametrize(
    ("cell", "rate_bps", "options"),
    [
        (CELL, None, "-P 1"),
        (CELL, 10**8, "-P 1 --fq-rate 100000000"),  # the kernel keeps a stream to its rate
        (replace(CELL, parallel=3, direction=Direction.REVERSE, settings=SET), None, f"-P 3 -R -w 65536 {OTHERS}"),
        (replace(CELL, direction=Direction.BOTH, settings=SET, resize=True), None, f"-P 1 --bidir {OTHERS}"),
        (UDP, 20_000_000, "-P 1 -u -b 20000000 -l 1448"),
        (UDP, None, "-P 1 -u -b 0 -l 1448"),
    ],
)
def test_what_was_asked_for_has_its_option_and_no_other(cell: Cell, rate_bps: int | None, options: str) -> None:
    words = client_words(cell, "10.0.0.2", 5301, "10.0.0.1", 0.1, rate_bps)
    assert " ".join(words) == f"iperf3 -c 10.0.0.2 -p 5301 -B 10.0.0.1 -J -i 0.1 -t 10 {options}"
    assert " ".join(server_words("10.0.0.2", 5301, 0.1)) == "iperf3 -s -1 -J -B 10.0.0.2 -p 5301 -i 0.1"


@pytest.mark.parametrize(("duration_s", "parallel", "expected"), [(10.0, 1, 0.1), (60.0, 128, 0.2), (86400.0, 128, 60)])
def test_samples_are_fewer_where_there_are_many_flows(duration_s: float, parallel: int, expected: float) -> None:
    cell = builders.cell(duration_s=duration_s, parallel=parallel)
    assert interval_s(cell, 0.1) == expected


@TWO_VERSIONS
def test_one_flow_has_both_sides_on_the_controllers_clock_and_quotes_the_senders_kernel(version: str) -> None:
    (flow,) = measured(version, "tcp")
    sender, receiver = ends(flow)
    assert (flow.pair, flow.direction, flow.number) == (Pair("a", "b"), Direction.FORWARD, 1)
    assert 0 < receiver.bytes <= sender.bytes
    assert receiver.first_byte_ns == START_NS
    assert 0.99e9 < (receiver.last_byte_ns or 0) - START_NS < 1.1e9
    assert receiver.bytes * 8e-6 == pytest.approx(191, rel=0.03)  # 200 Mbit/s less headers
    assert receiver.series.columns["t_ns"] == sorted(receiver.series.columns["t_ns"])
    assert receiver.series.columns["bytes"][-1] == receiver.bytes
    tcp = sender.tcp
    assert (tcp.mss, tcp.timestamps, tcp.pmtu, sender[CONGESTION]) == (1448, True, 1500, "cubic")
    assert tcp.retransmits == sender.series.columns["retransmits"][-1]
    assert tcp.rtt_us is not None
    assert 1000 < fmean(sender.series.columns["rtt_us"]) < 20_000
    assert tcp.cwnd == sender.series.columns["cwnd"][-1] > 10
    assert ("advertised_window" in sender.series.columns) == (version == "3.12")
    # Buffers that nobody asked for are unknown: it tells those of a new socket, which the kernel has since resized.
    assert (sender.sndbuf_bytes, receiver.rcvbuf_bytes) == (None, None)


@TWO_VERSIONS
def test_many_flows_have_their_numbers_windows_and_the_mss_that_was_granted(version: str) -> None:
    cell = builders.cell(settings=Settings({WINDOW: 65536, MSS: 1000}))
    found = measured(version, "many", cell)
    assert [flow.number for flow in found] == [1, 2, 3]
    for sender, receiver in map(ends, found):
        # It reports the 1000 that were requested; 12 bytes of them are timestamps.
        assert (sender.tcp.mss, sender.tcp.timestamps) == (988, True)
        assert (sender.sndbuf_bytes, receiver.rcvbuf_bytes) == (131072, 131072)
        assert receiver.bytes <= sender.bytes


@TWO_VERSIONS
def test_reversed_data_are_the_destinations_and_both_directions_are_told_apart(version: str) -> None:
    reverse, both = measured(version, "reverse"), measured(version, "bidir")
    assert [(flow.direction, flow.number) for flow in reverse] == [(Direction.REVERSE, 1), (Direction.REVERSE, 2)]
    expected = [(way, number) for way in (Direction.FORWARD, Direction.REVERSE) for number in (1, 2)]
    assert [(flow.direction, flow.number) for flow in both] == expected
    for sender, receiver in map(ends, reverse):
        assert (sender[CONGESTION], sender.tcp.mss) == ("reno", 1448)
        assert "rtt_us" not in receiver.series.columns
    assert all(0 < receiver.bytes <= sender.bytes for sender, receiver in map(ends, [*reverse, *both]))


@pytest.mark.parametrize(
    ("version", "name", "sent", "received"),
    [("3.9", "udp", 1725, 1725), ("3.12", "udp", 1725, 1725), ("3.12", "udp-lossy", 16852, 16848)],
)
def test_datagrams_are_counted_by_both_sides(version: str, name: str, sent: int, received: int) -> None:
    cell = builders.cell(test="udp", transport="udp", settings=Settings({RATE: 20_000_000}))
    sender, receiver = ends(measured(version, name, cell)[0])
    counted = known(receiver.datagrams)
    assert (known(sender.datagrams).count, counted.count) == (sent, received)
    assert receiver.bytes == received * 1448 or name == "udp-lossy"
    assert counted.jitter_ns is not None
    assert counted.highest is None  # the longest loss burst is not known
    assert sender.tcp.mss is None


@TWO_VERSIONS
def test_the_processors_time_is_that_of_the_process_and_a_test_that_did_not_run_is_refused(version: str) -> None:
    found = report(printed(version, "tcp", "client"))
    assert 0 < (found.cpu_us or 0) < 1_000_000
    assert found.seconds == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ReportError, match="refused" if version == "3.12" else "no output"):
        report(printed(version, "refused", "client"))


PRELOAD = (
    b"ERROR: ld.so: object '/usr/lib/libarmmem-${PLATFORM}.so' from /etc/ld.so.preload cannot be preloaded "
    b"(cannot open shared object file): ignored.\n"
)


@pytest.mark.parametrize("before", [PRELOAD, PRELOAD * 2, b"iperf3: {warning}\n", b"{x}\n"])
@pytest.mark.parametrize("after", [b"", b"{end}\n", PRELOAD])
def test_text_with_braces_around_a_report_is_passed_over(before: bytes, after: bytes) -> None:
    output = printed("3.12", "tcp", "client")
    assert report(before + output + after) == report(output)
    with pytest.raises(ReportError, match=r"^iperf3: error"):
        report(before + b"iperf3: error - unable to connect\n")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (b"", "no output"),
        (b"timeout: failed to run command 'iperf3': No such file or directory\n\n", "No such file"),
        (b'{"intervals": "none"}', "no output"),
        (b'{"end": ' * 90_000 + b"}", "no output"),
        (b'iperf3: error\n{"start": {}, "intervals": []}\n', "iperf3: error"),
    ],
)
def test_what_is_no_report_is_an_error_with_what_was_said(output: bytes, said: str) -> None:
    with pytest.raises(ReportError, match=said):
        report(output)
