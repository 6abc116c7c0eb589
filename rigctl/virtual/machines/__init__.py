"""Virtual machines as nodes: QEMU machines with Debian's kernel, a disk, a clock and an SSH server, on one hub.

`rigctl.virtual.provide` turns them into an ordinary rig, as it does with namespaces.
"""
