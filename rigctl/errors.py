"""Errors: each class is an exit code (design, section 3); a message says where, what, and what to do.

The one place that turns them into exit codes and lines on the screen is `rigctl.cli.app`.
"""

from typing import ClassVar


class RigctlError(Exception):
    """The root of all that rigctl raises on purpose. Its text is one message for a person, without a traceback."""

    exit_code: ClassVar[int] = 1


class InputError(RigctlError):
    """The user's input is wrong (usage, scenario, rig file, store address): nothing was touched."""

    exit_code: ClassVar[int] = 2


class RigError(RigctlError):
    """The rig failed: a node unreachable, an agent that violated the protocol, a test that could not be measured."""

    exit_code: ClassVar[int] = 3


class NodeError(RigError):
    """One node failed. `node` is its name in the rig file; the text starts with it.

    >>> str(NodeError("pi1", "connection refused"))
    'pi1: connection refused'
    """

    def __init__(self, node: str, what: str) -> None:
        super().__init__(f"{node}: {what}")
        self.node = node
        self.what = what


class BusyError(NodeError):
    """A node is in use by another run, or others wait for it. `own`: by this run, over a connection that it lost."""

    def __init__(self, node: str, what: str, *, own: bool = False) -> None:
        super().__init__(node, what)
        self.own = own


class Interrupted(RigctlError):
    """Ctrl-C or SIGTERM ended the run; what was measured is stored."""

    exit_code: ClassVar[int] = 130
