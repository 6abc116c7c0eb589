"""Effective values of settings, of flows whose kernels said so or did not."""

from rigctl.analysis.rows.flows import effective_values, zerocopy_share
from rigctl.records import Copying, Direction, Flow, Pair, Side
from rigctl.settings import COPY, NODELAY, Settings


def flow(sent: Copying, copied: bool | None = None, nodelay: bool | None = None) -> Flow:
    sender = Side(9, 1, 2, copying=sent, granted=Settings({NODELAY: nodelay, COPY: False}))
    return Flow(Pair("a", "b"), Direction.FORWARD, 1, sender, Side(9, 1, 2, granted=Settings({COPY: copied})))


def test_the_effective_share_is_of_all_sends_of_all_flows() -> None:
    flows = [flow(Copying(300, 300), True, True), flow(Copying(100, 0), True, True)]
    assert zerocopy_share(flows) == {"zerocopy_effective": 0.75}
    assert zerocopy_share([flow(Copying(300, 0))]) == {"zerocopy_effective": 0.0}
    values = effective_values(flows)
    assert (values["copy_effective"], values["nodelay"], values["congestion"]) == (True, True, None)


def test_nothing_is_known_of_what_was_not_asked_for() -> None:
    assert zerocopy_share([flow(Copying(300))]) == zerocopy_share([]) == {"zerocopy_effective": None}
    assert effective_values([])["copy_effective"] is None


def test_receivers_that_differ_have_no_one_answer() -> None:
    assert effective_values([flow(Copying(1), True), flow(Copying(1), False)])["copy_effective"] is None
