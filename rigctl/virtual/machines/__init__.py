"""Nodes that share nothing: QEMU machines with Debian's kernel, a disk, a clock and an SSH server each, on one hub.

`rigctl.virtual.provide` makes an ordinary rig of them, as of namespaces.
"""
