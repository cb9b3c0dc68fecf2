"""Runs `reconciler` and notes the kind of every Kafka request that leaves the process, as read off its sockets.

    python counted_program.py LOG ARGUMENT...      # LOG gets one line a request: its API key

It knows nothing of the program or its client: it cuts the bytes handed to TCP sockets, before TLS encrypts them, into
Kafka's frames.
"""

import os
import runpy
import socket
import ssl
import struct
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEADER = struct.Struct(">ih")  # the length of what follows it, and the API key, which is the first of that
LENGTH = 4


def api_keys(stream: bytearray) -> list[int]:
    """Take the whole requests off a connection's bytes and return the API key of each."""
    keys = []
    while len(stream) >= HEADER.size:
        length, key = HEADER.unpack_from(stream)
        if len(stream) < LENGTH + length:
            break
        keys.append(key)
        del stream[: LENGTH + length]
    return keys


def watch(log: int) -> None:
    """Note each request that any TCP socket sends from now on in the file that is open at `log`."""
    streams: weakref.WeakKeyDictionary[socket.socket, bytearray] = weakref.WeakKeyDictionary()

    def noting(plain: Callable[[Any, bytes, int], int]) -> Callable[..., int]:
        def send(self: socket.socket, data: bytes, flags: int = 0, /) -> int:
            sent = plain(self, data, flags)
            if self.family in {socket.AF_INET, socket.AF_INET6}:
                stream = streams.setdefault(self, bytearray())
                stream += bytes(data[:sent])
                os.write(log, b"".join(b"%d\n" % key for key in api_keys(stream)))
            return sent

        return send

    def refuse(_self: socket.socket, *_arguments: object) -> None:
        raise NotImplementedError("the client sends in another way than when this was written: count that too")

    for kind in (socket.socket, ssl.SSLSocket):
        kind.send = noting(kind.send)  # type: ignore[method-assign]
        kind.sendall = refuse  # type: ignore[assignment,method-assign]
        kind.sendmsg = refuse  # type: ignore[assignment,method-assign]


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    _, log_path, *sys.argv[1:] = sys.argv
    watch(os.open(Path(log_path), os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    runpy.run_module("reconciler", run_name="__main__", alter_sys=True)
