"""Which file is meant, and its text: bounded before it is read, UTF-8, a regular file."""

import difflib
import stat
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.yamlfile.compose import parse_document, span_of_offset
from rigctl.yamlfile.document import Document, mistake_at
from rigctl.yamlfile.mistakes import Mistake, MistakesError, suggestion

MAX_BYTES: Final = 1024 * 1024
_ENDINGS: Final = (".yaml", ".yml")


def find_bundled(folder: Path) -> dict[str, Path]:
    """The YAML files in `folder`, by name without ending, sorted."""
    return {path.stem: path for path in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)}


def find(reference: str, *, what: str, bundled: Path, relative_to: Path | None = None) -> Path:
    """The file that `reference` means: a path (relative to `relative_to`, else to the working folder) or
    a bundled name.

    It is a path where it ends with .yaml or .yml, holds a slash, or a file of that name exists. Raises `InputError`,
    with what is bundled and a suggestion, where there is none. `what` is "scenario" or "rig".
    """
    names = find_bundled(bundled)
    shown = printable(reference)[:200]
    if not reference.strip() or "\0" in reference:
        raise InputError(f'{what} "{shown}": expected a file, or one of the bundled: {", ".join(names)}.')
    path = Path(reference)
    try:
        path = (relative_to or Path()) / path.expanduser()
        exists = path.is_file()
        is_path = reference.endswith(_ENDINGS) or "/" in reference or exists
        there = exists or (is_path and path.exists())
    except (OSError, RuntimeError) as error:
        raise InputError(f'{what} "{shown}": {error}') from error
    if there:
        return path
    if is_path:
        raise InputError(f'{what} "{shown}": there is no such file.{_beside(path)}')
    if reference in names:
        return names[reference]
    raise InputError(f'unknown {what} "{shown}".{_bundled_hint(reference, what, list(names))}')


def read_document(path: Path) -> Document:
    """The YAML mapping in `path`. Raises `MistakesError`; a file over `MAX_BYTES` is not read at all."""
    return parse_document(str(path), read_text(path))


def read_text(path: Path) -> str:
    """The text in `path`, which is UTF-8. Raises `MistakesError`, as `read_document`."""
    name = str(path)
    try:
        data = _read(path)
    except OSError as error:
        raise MistakesError([Mistake(name, f"cannot be read: {error.strerror or error}.")]) from error
    if len(data) > MAX_BYTES:
        raise MistakesError([Mistake(name, _too_large(None))])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8-sig", "replace")
        what = f"byte 0x{data[error.start]:02X} is not UTF-8. Save the file as UTF-8."
        shown = data.decode("utf-8-sig", "replace")
        raise MistakesError([mistake_at(name, shown, span_of_offset(good, len(good)), what)]) from error


def _read(path: Path) -> bytes:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise MistakesError([Mistake(str(path), "is a folder: expected a YAML file.")])
    if not stat.S_ISREG(status.st_mode):
        # A pipe or device could block or never end.
        raise MistakesError([Mistake(str(path), "is not a regular file: expected a YAML file.")])
    if status.st_size > MAX_BYTES:
        raise MistakesError([Mistake(str(path), _too_large(status.st_size))])
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _too_large(size: int | None) -> str:
    holds = "" if size is None else f" of {size:,} bytes"
    return f"a file{holds} is too large: at most {MAX_BYTES:,} bytes (1 MiB) are read. Is it a scenario or rig file?"


def _beside(path: Path) -> str:
    """The YAML file of nearly that name in the same folder."""
    others = {other.stem: other.name for ending in _ENDINGS for other in path.parent.glob(f"*{ending}")}
    near = difflib.get_close_matches(path.stem, sorted(others), n=1)
    return f' Did you mean "{others[near[0]]}"?' if near else ""


def _bundled_hint(reference: str, what: str, names: list[str]) -> str:
    near = suggestion(reference, names)
    listed = "" if near.startswith(" Known") else f" Bundled: {', '.join(names)}."
    return (
        f"{near.replace(' Known:', ' Bundled:')}{listed} For a file of your own give its path, as in ./my-{what}.yaml."
    )
