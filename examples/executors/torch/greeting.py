# SPDX-License-Identifier: BSL-1.0
"""Who may speak: both ends of a connection prove, before anything else is read, that they have the key of the run.

The key is drawn by the program that starts the workers and reaches them by fork: no file, argument or environment has it. What
is sent afterwards is neither encrypted nor signed; a network that strangers can reach needs a tunnel.

Source: Bellare, Canetti, Krawczyk, "Keying Hash Functions for Message Authentication" (HMAC); Python, `multiprocessing`
(authentication keys: a challenge each way).
"""

import hmac
import secrets
import socket
import time

NONCE_BYTES, PROOF_BYTES = 32, 32
GREETING_SECONDS = 10.0  # for all of it, however slowly the other end speaks


class Stranger(ConnectionError):
    """The other end has not the key."""


def new_key() -> bytes:
    return secrets.token_bytes(32)


def greet(connection: socket.socket, key: bytes) -> None:
    """The end that connected; changes the connection's timeout. Throws Stranger; OSError."""
    end = time.monotonic() + GREETING_SECONDS
    theirs, ours = receive(connection, NONCE_BYTES, end), secrets.token_bytes(NONCE_BYTES)
    send(connection, ours + _proof(key, b"connects", theirs, ours), end)
    if not hmac.compare_digest(receive(connection, PROOF_BYTES, end), _proof(key, b"accepts", theirs, ours)):
        raise Stranger("no worker of this run")


def admit(connection: socket.socket, key: bytes) -> None:
    """The end that was connected to; changes the connection's timeout. Throws Stranger; OSError."""
    end = time.monotonic() + GREETING_SECONDS
    ours = secrets.token_bytes(NONCE_BYTES)
    send(connection, ours, end)
    answer = receive(connection, NONCE_BYTES + PROOF_BYTES, end)
    theirs = answer[:NONCE_BYTES]
    if not hmac.compare_digest(answer[NONCE_BYTES:], _proof(key, b"connects", ours, theirs)):
        raise Stranger("no worker of this run")
    send(connection, _proof(key, b"accepts", ours, theirs), end)


def _proof(key: bytes, role: bytes, accepting: bytes, connecting: bytes) -> bytes:
    """The role in it: what one end says proves nothing for the other."""
    return hmac.digest(key, role + accepting + connecting, "sha256")


def _wait_until(connection: socket.socket, end: float) -> None:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the greeting takes too long")
    connection.settimeout(left)


def send(connection: socket.socket, data: bytes, end: float) -> None:
    """All of it by then (time.monotonic), or TimeoutError."""
    _wait_until(connection, end)
    connection.sendall(data)


def receive(connection: socket.socket, size: int, end: float) -> bytes:
    """Exactly so many bytes by then (time.monotonic), or Stranger or TimeoutError."""
    data = b""
    while len(data) < size:
        _wait_until(connection, end)
        more = connection.recv(size - len(data))
        if not more:
            raise Stranger("the other end hung up")
        data += more
    return data
