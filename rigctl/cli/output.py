"""Where a page goes: refused before anything is measured where it could not be written, never outside its folder."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rigctl.errors import InputError
from rigctl.texts import file_name

if TYPE_CHECKING:
    from rigctl.records import RunInfo

_ENDINGS: Final = (".html", ".htm")
VARIABLE: Final = "RIGCTL_REPORTS"
"""Environment variable: the folder for the pages of runs, or `none`."""


def reports_folder() -> Path | None:
    """Return the folder for pages that no --report names, or None if none are to be written."""
    given = os.environ.get(VARIABLE, "").strip()
    return None if given == "none" else Path(given or "rigctl-reports").expanduser()


def place_of_pages(report: Path | None) -> Path | None:
    """Return the folder of a run's page, or None if none is to be written. Raises `InputError` as `check_page`."""
    folder = reports_folder() if report is None else report.parent
    if folder is not None:
        check_page(report, folder)
    return folder


def page_of(info: "RunInfo", page: Path | None, folder: Path = Path()) -> Path:
    """`page`, or SCENARIO-RUN.html in `folder`; a name from a foreign store becomes a plain file name."""
    return page or folder / f"{file_name(info.plan.scenario_name)}-{file_name(info.run)}.html"


def check_page(page: Path | None, folder: Path | None = None) -> None:
    """Refuse a place where no report can be written. Raises `InputError`.

    None: a file of its own name here, or in `folder`, which need not exist yet.
    """
    shown = str(page or folder or "the working folder")
    try:
        target = (page or (folder or Path()) / "rigctl.html").resolve()
        if page is None:
            target = next(above for above in target.parents if above.exists()) / target.name
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
