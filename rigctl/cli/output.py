"""Output of commands: JSON documents, tables, and the paths of HTML pages.

A JSON document is a pydantic model filled from rigctl's records. A field takes the record's attribute of the same
name, or the attribute that `at` names. The JSON Schemas in docs/schemas are generated from the models
(docs/reference/json.md). Fields may be added, but no field is renamed or removed while `version` stays the same.
An unknown value is null, never 0.
"""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from rigctl.base.errors import InputError
from rigctl.base.texts import file_name
from rigctl.records import RunInfo

if TYPE_CHECKING:
    from rich.console import Console

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
PAGES_FOLDER: Final = "rigctl-reports"
_WIDE: Final = 200


def plain_console(*, stderr: bool = False) -> "Console":
    """Return a console without markup and highlighting, wide enough in a pipe or file that no line is cut."""
    from rich.console import Console  # most commands print lines of text only

    console = Console(stderr=stderr, highlight=False, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    return console


def output_width() -> int:
    """Return the width of the terminal, or of `COLUMNS`; in a pipe or file so wide that no line is cut."""
    return shutil.get_terminal_size((_WIDE, 24)).columns


def say(text: str) -> None:
    """Print text on standard output; long lines break between words."""
    for line in text.split("\n"):
        lines = textwrap.wrap(line, output_width(), break_long_words=False, break_on_hyphens=False)
        print("\n".join(lines))


def write_output(content: str | bytes, output: Path | None = None) -> None:
    """Write a command's output to the file that the user named, or to standard output. Raises `InputError`."""
    if output is not None:
        from rigctl.base.files import write_whole

        write_whole(output, content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    elif isinstance(content, str) and (sys.stdout.isatty() or _is_encodable(content)):
        print(content, end="")
    else:  # in a pipe or file a document is UTF-8, whatever the locale
        sys.stdout.flush()
        sys.stdout.buffer.write(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()


def _is_encodable(content: str) -> bool:
    """Tell whether standard output's encoding has all signs of a text."""
    try:
        content.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def print_table(
    console: "Console",
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Collection[str] = (),
    spare: Collection[str] = (),
) -> None:
    """Print a table of texts; columns in `left` wrap between words. Drop columns in `spare` while it is too wide."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    columns = dict(zip(heads, zip(*rows, strict=True), strict=True))
    least = {
        head: max(map(cell_len, [*head.split(), *(" ".join(texts).split() if head in left else texts)]))
        for head, texts in columns.items()
    }
    for head in spare:
        if head in columns and sum(least.values()) + len(least) > console.width:
            del columns[head], least[head]
    gap = 1 if sum(least.values()) + 2 * len(least) > console.width else 2
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
    for head in columns:
        kept = head in left
        table.add_column(head, justify="left" if kept else "right", no_wrap=not kept, min_width=least[head])
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


def find_pages_folder(report: Path | None) -> Path | None:
    """Return the folder for a run's page; None if RIGCTL_REPORTS is `none`. Raise `InputError` if it is unwritable."""
    given = os.environ.get("RIGCTL_REPORTS", "").strip()
    if report is None and given == "none":
        return None
    folder = report.parent if report is not None else Path(given or PAGES_FOLDER).expanduser()
    _check_page(report, folder)
    return folder


def choose_page(info: RunInfo, page: Path | None, folder: Path) -> Path:
    """Return `page`, by default SCENARIO-RUN.html in `folder`; unsafe characters in both names are replaced."""
    name = f"{file_name(info.plan.scenario_name)}-{file_name(info.run)}"
    return page or folder / f"{name}{'-anonymous' if info.plan.anonymous else ''}.html"


def _check_page(page: Path | None, folder: Path) -> None:
    """Raise `InputError` if `page` cannot be written, or, if `page` is None, a new page in `folder`."""
    import secrets  # imports OpenSSL

    shown = str(page or folder)
    try:
        target = (page or folder / "rigctl.html").resolve()
        if page is None:
            target = next(parent for parent in target.parents if parent.exists()) / target.name
        if target.is_dir():
            raise InputError(f"{shown}: is a folder. Name a file in it, as {target / 'report.html'}")
        if target.exists() and not target.is_file():
            return  # a device or pipe, such as /dev/stdout
        if target.suffix.lower() not in {".html", ".htm"}:
            raise InputError(f"{shown}: the report is HTML. Name a file that ends with .html")
        probe = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
        probe.touch(exist_ok=False)
        probe.unlink(missing_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{shown}: the report cannot be written there: {reason}. Name another file with --report, "
            f"or leave the report out with --no-report"
        ) from error


class Model(BaseModel):
    """Base of all JSON objects in the output of commands. Their schemas allow no further fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, from_attributes=True, defer_build=True)


class Versioned(Model):
    """Base of all JSON documents: an object with the version of its format."""

    version: Literal[1] = 1

    @classmethod
    def text_of(cls, *, context: object = None, indent: int = 2, **records: object) -> str:
        """Return the document as JSON text, with fields read from these records."""
        text = cls.model_validate(SimpleNamespace(**records), context=context).model_dump_json(indent=indent)
        return text if _is_encodable(text) else _BEYOND_ASCII.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def at(path: str, description: str | None = None) -> Any:  # noqa: ANN401 — a default value, as of pydantic's Field
    """Return a model field that is read from this attribute of the record, such as `info.plan.title`."""
    return Field(validation_alias=AliasPath(*path.split(".")), description=description)


def of(attribute: str) -> BeforeValidator:
    """Return a validator that replaces a record with this attribute of the record; None stays None."""
    return BeforeValidator(lambda record: None if record is None else getattr(record, attribute))


def utc_text(unix_s: float) -> str:
    """Return Unix seconds as `2026-11-22T04:10:00Z`."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def in_percent(share: float, digits: int = 6) -> float:
    """Return a share (0 to 1) in percent, rounded to `digits`."""
    return round(100 * share, digits)


UtcText = Annotated[str, BeforeValidator(utc_text), Field(json_schema_extra={"format": "date-time"})]
"""UTC time such as `2026-11-22T04:10:00Z`, converted from Unix seconds."""
InMbps = Annotated[float, BeforeValidator(lambda rate_bps: round(rate_bps / 1e6, 3))]
"""Rate in Mbit/s, converted from bit/s."""
InPercent = Annotated[float, BeforeValidator(in_percent)]
"""Percent, converted from a share (0 to 1)."""
LengthOf = Annotated[int, BeforeValidator(len)]
"""Number of items, counted from a collection."""


class Variants(Model):
    """The two variants of every test of a run with --against."""

    setting: str = Field(description="Name of the axis that differs, such as window or condition.")
    before: str
    after: str
