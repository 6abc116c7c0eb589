"""Sentences on the buffer of a port, and on what keeps bursts from showing it."""

from typing import Final

from rigctl.findings import Weight, note, warning

BUFFER_SHOWN: Final = note(
    "buffer-shown",
    "{ports}: {lossy} bursts with loss, {lengths}, show {span} frames of {frame} bytes{error}; the longest burst "
    "without loss had {longest}, the shortest with loss {shortest}.",
    weight=Weight.COMPARISON,
)
BUFFER_AT_LEAST: Final = note(
    "buffer-at-least",
    "{ports}: no burst lost a datagram, up to {longest} of {size} bytes: the buffer may hold more than the {least} "
    "frames ({bytes}) that these needed.",
    "Send longer bursts (length).",
    Weight.COMPARISON,
)
BUFFERS_DISAGREE: Final = warning(
    "buffers-disagree",
    "{ports}: bursts with loss show buffers of {low} to {high} frames, which differ by more than their error.",
    "Other traffic may share the buffer, or the port may drop early (RED). Repeat the tests while nothing else sends.",
)
NEVER_QUEUES: Final = warning(
    "bursts-not-faster",
    "In {tests} bursts came no faster ({arrival} Mbit/s) than the port drains ({drain} Mbit/s): no queue grows, and "
    "nothing follows on its buffer.",
    "Name a further sender to the same receiver, or a receiver with a slower link.",
)
SPACED: Final = note(
    "bursts-spaced",
    "In {tests} the senders did not fill their links: bursts came at {arrival} of {links} Mbit/s.",
    "A larger datagram needs fewer calls for the same rate; a faster processor makes shorter gaps.",
    Weight.SUSPECT,
)
ARRIVAL_UNKNOWN: Final = warning(
    "bursts-untimed",
    "In {tests} the senders' kernels do not tell when datagrams left: no buffer follows from these bursts.",
    "Use Linux senders, with a driver that gives time stamps in software (`ethtool -T INTERFACE`).",
)
PAUSED: Final = warning(
    "bursts-paused",
    "Pause frames were counted in {tests}: they hold frames back at the sender, which hides loss. No buffer follows "
    "from these bursts.",
    "Switch pause off: conditions: {{no pause: {{pause: {{autoneg: off, rx: off, tx: off}}}}}}.",
)
SOCKET_FULL: Final = warning(
    "bursts-socket-full",
    "Socket buffers of receivers were full in {tests}: a loss at the host, not at the port. No buffer follows from "
    "these bursts.",
    "A larger window sets a larger socket buffer.",
)
LEFT_OUT: Final = note(
    "bursts-left-out",
    "Senders left out bursts in {tests}, as they came to them too late: {sent} of {due} count.",
    "A longer interval gives a busy sender more time.",
)
