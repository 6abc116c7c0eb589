"""Errors of rigctl. Each class has an exit code, and each message says where, what, and what to do.

`rigctl.cli.errors` prints errors and exits with their codes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal, Self, TypeAlias

from rigctl.base.texts import printable_lines

Extra: TypeAlias = Literal["openmetrics", "parquet", "pictures", "postgresql"]
"""Names of extras: optional libraries that `pip install 'rigctl[NAME]'` adds."""


class RigctlError(Exception):
    """Base class of all errors that rigctl raises on purpose. The text is a message for users, without a traceback."""

    exit_code: ClassVar[int] = 1


class InputError(RigctlError):
    """The user's input is wrong (usage, scenario, rig file, store address), and nothing was changed."""

    exit_code: ClassVar[int] = 2


class RigError(RigctlError):
    """The rig failed: a node is unreachable, an agent violated the protocol, or a test could not be measured."""

    exit_code: ClassVar[int] = 3


class NodeError(RigError):
    """A node failed. `node` is the node's name in the rig file, with which the text begins.

    `what` may quote output of the node, so it is made printable.

    >>> str(NodeError("pi1", "connection refused"))
    'pi1: connection refused'
    """

    def __init__(self, node: str, what: str) -> None:
        what = printable_lines(what)
        super().__init__(f"{node}: {what}")
        self.node = node
        self.what = what

    def at_node(self, node: str) -> Self:
        """Return the same error at another node, as for each node behind a jump host that failed."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        NodeError.__init__(other, node, self.what)
        return other


def of_nodes(errors: Iterable[NodeError]) -> list[str]:
    """Return a message for each distinct error, with the names of the first three nodes that have the error.

    >>> of_nodes([NodeError(f"pi{number}", "no answer") for number in range(1, 6)])
    ['pi1, pi2, pi3 and 2 more: no answer']
    """
    nodes: dict[str, dict[str, None]] = {}
    for error in errors:
        nodes.setdefault(error.what, {})[error.node] = None
    return [f"{join_names(list(names))}: {what}" for what, names in nodes.items()]


def join_names(names: Sequence[str], most: int = 3) -> str:
    """Return names in one text: `pi1, pi2`, or `pi1, pi2, pi3 and 2 more` for more than `most` names."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return " ".join([", ".join(names[:most]), *more])


class BusyError(NodeError):
    """A node is in use, or other runs wait for it. `own`: this run itself uses it, through a lost connection."""

    def __init__(self, node: str, what: str, *, own: bool = False) -> None:
        super().__init__(node, what)
        self.own = own


class InterruptError(RigctlError):
    """Ctrl-C or SIGTERM ended the run. All completed measurements are stored."""

    exit_code: ClassVar[int] = 130


@contextmanager
def extra(name: Extra, purpose: str) -> Iterator[None]:
    """Raise `InputError` with a `pip install` command if an import in the block fails. `purpose` begins the message.

    >>> with extra("parquet", "export"):
    ...     import no_such_library
    Traceback (most recent call last):
    rigctl.base.errors.InputError: export needs the extra parquet of rigctl: pip install 'rigctl[parquet]'
    """
    try:
        yield
    except ImportError as error:
        raise InputError(f"{purpose} needs the extra {name} of rigctl: pip install 'rigctl[{name}]'") from error
