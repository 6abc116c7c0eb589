"""The console for tables, and the places of pages."""

import os
import secrets
from pathlib import Path
from typing import Final

from rich.console import Console

from rigctl.base.errors import InputError
from rigctl.base.texts import file_name
from rigctl.records import RunInfo

VARIABLE: Final = "RIGCTL_REPORTS"
"""Environment variable: the folder for the pages of runs, or `none`."""
_ENDINGS: Final = (".html", ".htm")
_WIDTH: Final = 200
"""Columns of a pipe or file, which have no width: nothing is to be cut."""


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console that prints tables and lines of text without markup, and cuts nothing in a pipe or file."""
    console = Console(stderr=stderr, highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def folder_of_pages(report: Path | None) -> Path | None:
    """Return the folder of a run's page, or None if none is to be written. Raises `InputError` as `check_page`."""
    if report is not None:
        folder: Path | None = report.parent
    else:
        given = os.environ.get(VARIABLE, "").strip()
        folder = None if given == "none" else Path(given or "rigctl-reports").expanduser()
    if folder is not None:
        check_page(report, folder)
    return folder


def page_of(info: RunInfo, page: Path | None, folder: Path = Path()) -> Path:
    """Return `page`, or SCENARIO-RUN.html in `folder`; a name from a foreign store becomes a plain file name."""
    return page or folder / f"{file_name(info.plan.scenario_name)}-{file_name(info.run)}.html"


def check_page(page: Path | None, folder: Path | None = None) -> None:
    """Raise `InputError` if no page can be written to `page`.

    None: a file of its own name here, or in `folder`, which need not exist yet.
    """
    shown = str(page or folder or "the working folder")
    try:
        target = (page or (folder or Path()) / "rigctl.html").resolve()
        if page is None:
            target = next(parent for parent in target.parents if parent.exists()) / target.name
        if target.is_dir():
            raise InputError(f"{shown}: is a folder. Name a file in it, as {target / 'report.html'}")
        if target.exists() and not target.is_file():
            return  # a device or pipe
        if target.suffix.lower() not in _ENDINGS:
            raise InputError(f"{shown}: the report is HTML. Name a file that ends with .html")
        probe = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
        probe.touch(exist_ok=False)
        probe.unlink(missing_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{shown}: the report cannot be written there: {reason}. Name another place with --report, "
            f"or give --no-report to run"
        ) from error
