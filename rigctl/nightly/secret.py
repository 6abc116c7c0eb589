"""Secrets in the settings of a nightly: `${NAME}` stands for a value of the environment or of a file of mode 0600."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from rigctl.base.errors import InputError

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LINE: Final = re.compile(r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(["']?)(.*?)\2\s*""", re.ASCII)
_MOST_BYTES: Final = 64 * 1024


def filled_in(text: str, secrets: Mapping[str, str]) -> str:
    """Return `text` with each `${NAME}` replaced. Raise `InputError` for a missing one; no value is shown."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in secrets:
            raise InputError(
                f"the secret {found[1]} is neither in the environment nor in the file of --secrets. Put "
                f"{found[1]}=… into a file of mode 0600 and name it with --secrets"
            )
        return secrets[found[1]]

    return _REFERENCE.sub(value, text)


def secrets_of(file: Path | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return secrets of the file and the environment, which wins. Raise `InputError` for a file open to others."""
    return (_read(file) if file is not None else {}) | dict(environment)


def _read(file: Path) -> dict[str, str]:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise InputError(f"--secrets {file}: expected a file of lines NAME=VALUE, at most 64 KiB")
        if found.st_uid != os.geteuid():
            raise InputError(f"--secrets {file}: belongs to another user, so it is not used. Copy it")
        if found.st_mode & 0o077:
            mode = f"{stat.S_IMODE(found.st_mode):04o}"
            raise InputError(f"--secrets {file}: others may read it (mode {mode}), so it is not used. chmod 600 {file}")
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--secrets {file}: cannot be read: {error}") from None
    secrets = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:  # the line is not shown: it may be a secret
            raise InputError(f"{file}:{number}: expected NAME=VALUE")
        secrets[match[1]] = match[3]
    return secrets


def open_secret(address: str) -> str | None:
    """Return why an address of a web server or a database is not stored (it has a password), or None."""
    try:
        password = urlsplit(address).password
    except ValueError as error:
        return f"not an address: {error}"
    if password and not _REFERENCE.fullmatch(password):
        return "holds a password, which no file of rigctl keeps"
    return None
