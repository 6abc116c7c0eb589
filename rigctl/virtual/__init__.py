"""The virtual rig: network namespaces as nodes, a bridge as the switch, shaped links, an SSH server on each node.

`provide.provide` yields an ordinary rig, so the rest of rigctl need not know of it. This file imports nothing, so
that the holder process imports only what it needs.
"""
