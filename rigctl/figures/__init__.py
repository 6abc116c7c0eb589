"""Figures (results of a test): one record for each, as `rigctl.settings` has one record for each setting."""

from rigctl.figures.columns import BY_NAME, COLUMNS, FIGURES, NAMES, columns_at, dtype
from rigctl.figures.figure import Figure, FlowGroup, combine_repetitions, combine_streams
from rigctl.settings.setting import DataColumn, Level

__all__ = [
    "BY_NAME",
    "COLUMNS",
    "FIGURES",
    "NAMES",
    "DataColumn",
    "Figure",
    "FlowGroup",
    "Level",
    "columns_at",
    "combine_repetitions",
    "combine_streams",
    "dtype",
]
