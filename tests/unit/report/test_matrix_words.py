"""What the eye sees in a matrix is said in words, and nothing that is not in the data."""

import re
from dataclasses import replace
from typing import Any

import builders
import das2
import documents
import pytest

from rigctl.analysis.views.panels import Matrix, matrix
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import Cell, Condition, HostSetting, Repetition, RunInfo, Trunk
from rigctl.report.document import document
from rigctl.report.sections.matrix.panels import gbps
from rigctl.report.sections.matrix.words import limit_text, low_text, matrix_findings
from rigctl.report.sections.streams import window_text
from rigctl.settings import WINDOW, WINDOW_TOTAL

QUIET = das2.Shape(noise=0.0)
COARSE: dict[str, Any] = {"windows": (131072,), "flows": (1, 2)}


def matrix_of(run: tuple[RunInfo, list[Repetition]]) -> Matrix:
    found = matrix(run[0].plan, documents.cells_of(*run))
    assert found is not None
    return found


def findings_of(run: tuple[RunInfo, list[Repetition]]) -> list[Finding]:
    return list(matrix_findings(run[0], matrix_of(run)))


def told(run: tuple[RunInfo, list[Repetition]]) -> str:
    return " ".join(finding.text for finding in findings_of(run))


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (das2.OFF, "From 8 pairs on, the sum stays at 7.53 Gbit/s: a shared limit of 8.0 Gbit/s on the wire."),
        (das2.JUMBO, "From 8 pairs on, the sum stays at 7.91 Gbit/s: a shared limit of 8.0 Gbit/s on the wire."),
    ],
)
def test_the_bottleneck_seen_by_eye_is_said_in_words(condition: Condition, sentence: str) -> None:
    assert sentence in told(das2.run((condition,), QUIET, **COARSE))


def test_the_headline_names_the_columns_of_the_table_for_which_it_does_not_hold() -> None:
    info, measured = das2.measured()
    answer = document(info, measured).answer
    assert answer.startswith("From 8 pairs on, the sum stays at 7.5")
    assert answer.endswith(
        "This does not hold with total window 32 KiB and 4 or 10 flows under no resize 1500 "
        "(12 pairs: 1.17 of 7.51 Gbit/s)."
    )
    clean = tuple(condition for condition in matrix_of((info, measured)).conditions if condition.name == "resize 1500")
    assert "does not hold" not in limit_text(info, clean)[0]


def test_a_headline_that_holds_for_few_columns_names_those() -> None:
    said = findings_of(das2.run(shape=QUIET, flows=(1, 2)))[0].text
    assert said.startswith("From 8 pairs on, the sum stays at 7.53 Gbit/s")
    assert "This does not hold with total window 32 KiB and total window 64 KiB (" in said

    def one_window(cell: Cell, mtu: int) -> float:
        return min(940.0 * len(cell.pairs), 7530.0) * (1.0 if cell[WINDOW_TOTAL] == das2.WINDOWS[3] else 0.5)

    said = findings_of(das2.run(shape=das2.Shape(noise=0.0, goodput_mbps=one_window), flows=(1, 2)))[0].text
    assert "This holds only with total window 256 KiB; elsewhere the sum is lower (" in said


def test_without_a_bottleneck_the_growth_is_said() -> None:
    said = told(das2.run((das2.JUMBO,), das2.Shape(trunk_bps=None, noise=0.0), **COARSE))
    assert said.startswith(
        "The sum grows with every pair up to 12: 11.87 Gbit/s, 0.99 for each; no shared limit was reached."
    )
    coarse = told(das2.run((das2.JUMBO,), das2.Shape(trunk_bps=None, noise=0.0), pairs=(1, 4, 12), **COARSE))
    assert "grows in proportion with the pairs up to 12" in coarse


def test_the_limit_is_found_without_the_rig_file_and_a_rig_file_that_disagrees_is_named() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    silent = replace(info, plan=replace(info.plan, trunk=None, ports=(), links={}))
    assert "a shared limit of 8.0 Gbit/s on the wire. With fewer" in told((silent, measured))
    assert "The rig file gives the same for the trunk, 8 Gbit/s." in told((info, measured))
    other = replace(info, plan=replace(info.plan, trunk=Trunk(das2.SWITCHES, 10**10)))
    assert "The rig file gives 10 Gbit/s for the trunk: something else limits, or the trunk has another rate." in told(
        (other, measured)
    )


def test_a_window_that_achieves_less_the_more_flows_share_it_is_reported_with_each_flow_s_part() -> None:
    def shared(cell: Cell, mtu: int) -> float:
        small = not cell.resize and (cell[WINDOW] or 0) < 8192
        return min(941.0 * len(cell.pairs), 1080.0 if small else 7530.0)

    axes: dict[str, Any] = {"windows": (32768, 131072), "flows": (1, 4, 10), "pairs": (1, 4, 12)}
    said = told(das2.run((das2.OFF, das2.ON), das2.Shape(noise=0.0, goodput_mbps=shared), **axes))
    assert (
        "Total windows of 32 KiB achieve less the more flows share them under resize-off: 12 pairs achieve 7.53 Gbit/s "
        "with 1 flow, 1.08 with 10 (3276 bytes each)."
    ) in said
    assert "Total windows of 128 KiB achieve" not in said


def test_what_busy_processors_hold_is_not_put_down_to_a_window_or_a_link() -> None:
    def shared(cell: Cell, mtu: int) -> float:
        return min(900.0 * len(cell.pairs), 3600.0 / (10 if cell.parallel == 10 else 1))

    axes: dict[str, Any] = {"windows": (32768, 65536), "flows": (1, 10), "pairs": (1, 4, 8, 12)}
    info, measured = das2.run((das2.OFF,), das2.Shape(noise=0.0, goodput_mbps=shared), **axes)
    assert "From 4 pairs on, the sum stays at 3.60 Gbit/s: a shared limit of 3.8 Gbit/s" in told((info, measured))
    busy = [
        replace(one, nodes=tuple(replace(node, node_busy_us=2 * (node.span_us or 0)) for node in one.nodes))
        for one in measured
    ]
    said = told((info, busy))
    assert "From 4 pairs on, the sum stays at 3.60 Gbit/s, but processors were busy all the time: they may be" in said
    assert "shared limit" not in said
    assert "(3276 bytes each), limited by processors." in said


def test_a_sum_that_neither_grows_nor_stays_level_claims_no_limit() -> None:
    shape = das2.Shape(goodput_mbps=lambda cell, mtu: 900.0 * len(cell.pairs) ** 0.6)
    said = told(das2.run((das2.OFF,), shape, **COARSE))
    assert re.search(
        r"The sum is highest with 12 pairs: \d\.\d\d Gbit/s, \d\d\.\d % of what the links of the rig", said
    )
    assert said.endswith("it neither grows in proportion with the pairs nor stays level.")
    assert "shared limit" not in said
    assert "Gbit/s on the wire" not in said


def test_conditions_with_one_story_are_told_of_once_and_others_apart() -> None:
    said = told(das2.run((das2.OFF, das2.ON), QUIET, **COARSE))
    assert said.count("From 8 pairs on") == 1
    assert "Under" not in said
    shape = das2.Shape(
        goodput_mbps=lambda cell, mtu: min(900 * len(cell.pairs), 3600 if mtu == 8192 else 1e9), noise=0.0
    )
    apart = told(das2.run((das2.ON, das2.JUMBO), shape, **COARSE))
    assert "Under resize-on: the sum grows with every pair up to 12" in apart
    assert "Under resize-on-8192: from 4 pairs on, the sum stays at 3.6" in apart


def test_different_frames_leave_the_rate_on_the_wire_unsaid() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    mixed = []
    for one in measured:
        side = one.flows[0].sender
        assert side is not None
        mixed.append(
            replace(one, flows=(replace(one.flows[0], sender=builders.counting(side, mss=1000)), *one.flows[1:]))
        )
    assert ": a shared limit. With fewer" in told((info, mixed))


def test_the_remarkable_result_low_sums_with_small_windows_is_said() -> None:
    said = told(das2.run(shape=QUIET, flows=(1, 2)))
    plain = re.sub(r" \(\d+ flows?\)", "", said)  # alike for any number of flows
    assert (
        "Total windows of 32 KiB and 64 KiB stay low: with 1 pair they achieve at most 0.33 and 0.66 of 0.94 Gbit/s "
        "and with 12 pairs they achieve at most 3.93 and 7.53 of 7.53 Gbit/s."
    ) in plain
    assert len(said) - len(plain) >= 4 * len(" (1 flow)")
    assert "128 KiB" not in said


def test_windows_that_are_all_alike_are_not_called_low() -> None:
    assert low_text(matrix_of(das2.run((das2.ON,), flows=(1, 2))).conditions[0]) == ""
    assert "stay low" not in told(das2.run(**COARSE))


def test_what_resizing_and_a_larger_mtu_brought_is_said_with_their_settings() -> None:
    said = told(das2.run((das2.OFF, das2.ON, das2.JUMBO), QUIET, flows=(1, 2)))
    assert "resize-on against resize-off (resizing of buffers on instead of off and" in said
    assert ": faster, +1.0" in said
    assert "the largest difference is +4.91 (total window 32 KiB, 8 pairs, " in said
    assert "resize-on-8192 against resize-on (MTU 8192 instead of 1500): faster, +0.27 Gbit/s on average" in said
    assert said.endswith("Each test was measured once: no significance is claimed.")
    assert "instead of" not in told(das2.run(shape=QUIET, flows=(1, 2)))


def test_a_difference_below_two_per_cent_is_called_none() -> None:
    twin = replace(das2.OFF, name="twin")
    said = told(das2.run((das2.OFF, twin), das2.Shape(noise=0.01), **COARSE))
    assert "twin against resize-off: no difference, " in said
    assert ", below the bound of 2 %; " in said
    slower = das2.Shape(goodput_mbps=lambda cell, mtu: 900 * len(cell.pairs) * (0.9 if cell.condition == "twin" else 1))
    assert "twin against resize-off: slower, −" in told(das2.run((das2.OFF, twin), slower, **COARSE))


def test_a_sysctl_that_can_not_have_done_anything_is_said() -> None:
    on = Condition("moderate", (HostSetting("mtu", "1500"), HostSetting("sysctl", "1", "net.ipv4.tcp_moderate_rcvbuf")))
    said = told(das2.run((das2.OFF, on), **COARSE))
    assert "windows were set, and Linux locks a buffer that was set" in said
    unset = told(das2.run((das2.OFF, on), windows=(None,), flows=(1, 2)))
    assert "locks" not in unset
    assert "locks" not in told(das2.run((das2.OFF, das2.ON), **COARSE))


def test_the_answer_begins_with_the_conclusions_of_the_matrix() -> None:
    info, measured = das2.run((das2.OFF,), QUIET, **COARSE)
    said = documents.texts(info, measured)
    assert said[0].startswith("From 8 pairs on, the sum stays at 7.53 Gbit/s")
    assert document(info, measured).answer == said[0]
    assert not [sentence for sentence in said if "highest" in sentence]


def test_of_many_windows_that_were_not_granted_three_are_reported() -> None:
    cells = tuple(builders.cell(at, window_bytes=at * 1000, mss=None) for at in range(3, 9))
    measured = [builders.repetition(cell, sender={"sndbuf_bytes": 4608 + cell.number}) for cell in cells]
    info = builders.run(builders.plan(cells))
    said = [text for text in documents.texts(info, measured) if "was granted" in text or "granted as" in text]
    assert len(said) == 4
    assert said[-1] == "3 more windows were not granted as requested; the table has them."


def test_a_window_that_the_kernel_resizes_is_where_the_buffers_start() -> None:
    info, measured = das2.run((das2.ON,), windows=(65536,), flows=(1,), pairs=(1, 2))
    said = window_text(info, documents.cells_of(info, measured)[0])
    assert said == "The window of 64 KiB is where the buffers of a flow start; the kernel resizes them."


def test_the_shared_limit_is_the_answer_and_carries_its_numbers() -> None:
    first, *others = findings_of(das2.run((das2.OFF, das2.ON), QUIET, **COARSE))
    assert first.weight is Weight.ANSWER
    assert first.numbers == {
        "pairs": 8,
        "goodput_mbps": pytest.approx(7531.9, rel=1e-4),
        "each_mbps": pytest.approx(941.5, rel=1e-4),
        "wire_mbps": pytest.approx(8000, rel=1e-4),
    }
    assert Weight.ANSWER not in {finding.weight for finding in others}
    (difference,) = (finding for finding in others if "against" in finding.text)
    assert (difference.weight, difference.level) == (Weight.COMPARISON, Severity.NOTE)
    assert f"({100 * float(difference.numbers['share'] or 0):+.1f} %)".replace("-", "−") in difference.text


def test_of_conditions_with_different_limits_the_one_of_most_conditions_is_the_answer() -> None:
    shape = das2.Shape(
        goodput_mbps=lambda cell, mtu: min(900 * len(cell.pairs), 3600 if mtu == 1500 else 1e9), noise=0.0
    )
    first, second, *_ = findings_of(das2.run((das2.JUMBO, das2.OFF, das2.ON), shape, **COARSE))
    assert first.text.startswith("Under resize-off and resize-on: from 4 pairs on")
    assert (second.weight, second.text[:23]) == (Weight.BOTTLENECK, "Under resize-on-8192: t")


def test_where_there_is_no_plateau_the_finding_has_no_rate_on_the_wire() -> None:
    growth, *_ = findings_of(das2.run((das2.JUMBO,), das2.Shape(trunk_bps=None, noise=0.0), **COARSE))
    assert growth.numbers["wire_mbps"] is None
    assert growth.numbers["pairs"] == 12


def test_no_significance_is_claimed_for_repeated_tests_either_way() -> None:
    info, measured = das2.run((das2.OFF, das2.ON), QUIET, **COARSE)
    repeated = replace(info, plan=replace(info.plan, repeat=3))
    assert "significance" not in told((repeated, measured))


def test_gigabits_have_two_decimals_and_a_difference_its_sign() -> None:
    assert [gbps(7912.5), gbps(0.4), gbps(-3.0)] == ["7.91", "0.00", "0.00"]
    assert [gbps(123.0, sign=True), gbps(-123.0, sign=True), gbps(-1.0, sign=True)] == ["+0.12", "−0.12", "+0.00"]
