"""What was copied, of flows whose kernels said so or did not."""

from rigctl.analysis.rows.cells import copy_values
from rigctl.records import Copying, Direction, Flow, Pair, Side


def flow(sent: Copying, received: Copying) -> Flow:
    return Flow(Pair("a", "b"), Direction.FORWARD, 1, Side(9, 1, 2, copying=sent), Side(9, 1, 2, copying=received))


def test_the_effective_share_is_of_all_sends_of_all_flows() -> None:
    flows = [flow(Copying(300, 300), Copying(copied=True)), flow(Copying(100, 0), Copying(copied=True))]
    assert copy_values(flows) == {"zerocopy_effective": 0.75, "copy_effective": True}


def test_nothing_is_known_of_what_was_not_asked_for() -> None:
    assert copy_values([flow(Copying(300), Copying())]) == {"zerocopy_effective": None, "copy_effective": None}
    assert copy_values([]) == {"zerocopy_effective": None, "copy_effective": None}


def test_a_kernel_that_copied_everything_is_a_share_of_nothing() -> None:
    assert copy_values([flow(Copying(300, 0), Copying(copied=False))])["zerocopy_effective"] == 0.0


def test_receivers_that_differ_have_no_one_answer() -> None:
    flows = [flow(Copying(1), Copying(copied=True)), flow(Copying(1), Copying(copied=False))]
    assert copy_values(flows)["copy_effective"] is None
