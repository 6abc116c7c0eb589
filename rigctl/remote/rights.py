"""Commands on a node as its user or, where the rig file says `sudo: true`, as root by sudo(8), which must not ask."""

import shlex
from typing import Final

from rigctl.remote.host import Completed
from rigctl.rig.inventory import Node

# Texts of sudo in the C locale → their meaning.
_REFUSALS: Final = (
    ("password is required", "sudo asks for a password"),
    ("terminal is required", "sudo asks for a password"),
    ("not in the sudoers", "sudo does not know {who}"),
    ("not allowed", "sudo does not let {who} run a shell as root"),
    ("may not run", "sudo does not let {who} run a shell as root"),
    ("must have a tty", "sudo wants a terminal (requiretty in its sudoers file)"),
)


def shell(script: str, *, sudo: bool) -> str:
    """Return a command that runs `script` in a POSIX shell, whatever the user's own shell is; as root with `sudo`."""
    # exec: the user's own shell does not stay.
    plain = f"exec sh -c {shlex.quote(script)}"
    if not sudo:
        return plain
    # Root needs no sudo, and may have none. LC_ALL: the refusals below are read.
    as_root = f'[ "$(id -u)" != 0 ] || {plain}; LC_ALL=C; export LC_ALL; exec sudo -n -- sh -c {shlex.quote(script)}'
    return f"exec sh -c {shlex.quote(as_root)}"


def sudo_refusal(node: Node, reply: Completed) -> str | None:
    """Return why sudo did not run the command, and a remedy; None if it seems to have run."""
    said = reply.stderr
    who = node.user or "the user"
    leave = f"or leave `sudo: true` out of node {node.name} in the rig file"
    if reply.exit_code == 127 and "sudo" in said:
        return f"sudo is not installed there. Install it, log in as root, {leave}"
    meant = next((meaning for sign, meaning in _REFUSALS if sign in said), None)
    if meant is None:
        return None
    rule = shlex.quote(f"{node.user or 'USER'} ALL=(root) NOPASSWD: ALL")
    return f"{meant.format(who=who)}. As root on the node: echo {rule} >/etc/sudoers.d/rigctl, {leave}"
