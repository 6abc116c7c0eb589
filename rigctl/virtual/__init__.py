"""The virtual rig: network namespaces as nodes, a bridge as the switch, shaped links, an SSH server on each node.

`provide.provide` yields an ordinary rig, so other rooms need not know that it is virtual. This file imports nothing, so
that the holder process imports only what it needs.
"""
