"""Credentials of a switch: from the environment or a file of mode 0600, never from the rig file."""

import os
import re
import stat
from dataclasses import fields
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError, NodeError
from rigctl.rig.inventory import Secrets, Switch
from rigctl.yamlfile import MistakesError
from rigctl.yamlfile.read import read_document

_NAMES: Final = tuple(field.name for field in fields(Secrets))


def switch_secrets(switch: Switch) -> Secrets:
    """Return the credentials of `switch`: its own, as in a virtual rig, else those of environment and file.

    A variable such as RIGCTL_<KEY>_COMMUNITY has precedence over credentials.yaml. Raise `NodeError` if that file is
    malformed or readable by other users.
    """
    if switch.secrets is not None:
        return switch.secrets
    names = {name: env_name(switch, name) for name in _NAMES}
    from_environment = {name: os.environ[key] for name, key in names.items() if key in os.environ}
    return Secrets(**_from_file(switch, credentials_path()) | from_environment)


def env_name(switch: Switch, name: str) -> str:
    """Return the name of a secret's environment variable: RIGCTL_CORE_1_PASSWORD for `password` of switch core-1."""
    return f"RIGCTL_{re.sub('[^A-Z0-9]', '_', switch.key.upper())}_{name.upper()}"


def credentials_path() -> Path:
    """Return the path of the credentials: RIGCTL_CREDENTIALS, else credentials.yaml in the configuration folder."""
    if "RIGCTL_CREDENTIALS" in os.environ:
        return Path(os.environ["RIGCTL_CREDENTIALS"])
    base = os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "/")) / ".config"
    return Path(base) / "rigctl" / "credentials.yaml"


def _from_file(switch: Switch, path: Path) -> dict[str, str]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NodeError(switch.key, f"the credentials in {path} can't be read: {error.strerror}") from None
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & 0o077:
        raise NodeError(switch.key, f"{path} is open to others: chmod 600 {path}")
    try:
        section = read_document(path).data.get(switch.key)
    except MistakesError as error:
        # Only the place of the mistake is reported: its message quotes the line, which may hold a secret.
        what = f"the credentials in {error.mistakes[0].where} can't be read"
        raise NodeError(switch.key, f"{what}. Expected {switch.key}: {{user: …, password: …}}") from None
    except InputError as error:
        raise NodeError(switch.key, f"the credentials can't be read: {error}") from None
    if section is None:
        return {}
    if not isinstance(section, dict) or not section.keys() <= set(_NAMES):
        raise NodeError(switch.key, f"{path}: {switch.key} may only have the keys {', '.join(_NAMES)}")
    return {name: str(value) for name, value in section.items()}
