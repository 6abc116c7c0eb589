"""Virtual machines as nodes: QEMU machines with Debian's kernel, a disk, a clock and an SSH server, on one hub.

`rigctl.virtual.provide` makes an ordinary rig of them, as it does of namespaces.
"""
