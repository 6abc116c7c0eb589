"""The virtual rig: network namespaces as nodes, a bridge as the switch, shaped links, a real SSH server on each node.

`provided` gives an ordinary rig: nobody above can tell.
"""

from rigctl.virtual.provide import down, find, provided, up

__all__ = ["down", "find", "provided", "up"]
