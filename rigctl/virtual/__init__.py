"""The virtual rig: network namespaces as nodes, a bridge as the switch, shaped links, a real SSH server on each node.

`provide.provided` gives an ordinary rig: nobody above can tell. Nothing is imported here, so that the holder of a rig
imports only what it needs.
"""
