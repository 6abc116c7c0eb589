#!/usr/bin/env python3
"""A hostile agent, uploaded and started over SSH like the real agent. It runs the real agent and changes its answers.

A test fills in how the answers are changed (MODE), and the path of the real agent (REAL).
"""

import json
import os
import subprocess
import sys
import threading
from typing import Any, Final

MODE: str = "@MODE@"
REAL: str = "@REAL@"
EVIL: Final = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e<script>alert(1)</script>=cmd|' /C calc'!A0[red]`x`\ufffe\x00"

out = sys.stdout.buffer


def flood(head: bytes, piece: bytes) -> None:
    """Write `head`, then a gigabyte of repeated `piece`, or as much as the reader takes."""
    out.write(head)
    for _ in range(2**30 // len(piece)):
        out.write(piece)
    out.flush()


def is_report(value: dict[str, Any]) -> bool:
    return "bytes" in value and "flow" in value


def texts(value: dict[str, Any]) -> dict[str, Any]:
    """Return the message with its texts replaced by control sequences, markup and formulas."""
    for name in ("machine", "agent", "unrestored", "congestion", "message", "error"):
        if name in value and (value[name] is not None or name == "unrestored"):
            value[name] = EVIL
    return value


def answered(line: bytes) -> None:
    """Write one line of the real agent, changed as MODE says."""
    value = json.loads(line)
    if MODE == "texts":
        out.write(json.dumps(texts(value)).encode() + b"\n")
        out.flush()
    elif MODE == "gigabyte" and is_report(value):
        flood(b'{"id":%d,"flow":' % value["id"], b"9" * 65536)
    elif MODE == "lines" and is_report(value):
        row = json.dumps({"id": value["id"], "flow": 0, "from": 0, "columns": ["t_ns", "bytes"], "rows": []}).encode()
        flood(b"", row + b"\n")
    elif MODE == "progress" and is_report(value):
        flood(b"", b'{"event":"progress","clock_ns":1,"bytes":{"1":1}}\n' * 100)
    else:
        out.write(line)
        out.flush()


def main() -> int:
    real = subprocess.Popen([REAL, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert real.stdin is not None and real.stdout is not None
    orders = real.stdin

    def passed_on() -> None:
        while block := os.read(0, 65536):
            orders.write(block)
        orders.close()

    threading.Thread(target=passed_on, daemon=True).start()
    buffer = b""
    while block := real.stdout.read(65536):
        *lines, buffer = (buffer + block).split(b"\n")
        for line in lines:
            answered(line + b"\n")
    return real.wait()


if __name__ == "__main__":
    try:
        code = main()
    except BrokenPipeError:
        code = 1
    os._exit(code)
