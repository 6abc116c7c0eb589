"""Progress of a run as printed to a pipe, from given repetitions, without traffic and clock."""

from collections.abc import Iterable, Mapping
from io import StringIO

from rich.console import Console

from rigctl.base.processes import Process
from rigctl.records import Repetition, RunPlan, Status
from rigctl.runner.board import Board, LinePrinter
from rigctl.runner.progress import Broadcast, find_not_granted
from rigctl.runner.schedule import missing


def board_of(plan: RunPlan, done: Mapping[tuple[int, int, int], Status] = {}) -> Board:
    return Board(plan, missing(plan, done), Process(4711, 1), 0.0)


def lines_of(plan: RunPlan, measured: Iterable[Repetition]) -> str:
    """Return the progress lines of a run that measures these repetitions."""
    text, board = StringIO(), board_of(plan)
    everybody = Broadcast(board, LinePrinter(board, Console(file=text, width=80)))
    cells = {cell.number: cell for cell in plan.cells}
    for result in measured:
        cell = cells[result.cell]
        if cell.number == cell.first:
            everybody.on_begin(cell, result.repetition, result.attempt)
        everybody.on_result(cell, result, find_not_granted(cell, result))
    return text.getvalue()
