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

NONCE_BYTES, PROOF_BYTES = 32, 32
GREETING_SECONDS = 10.0


class Stranger(ConnectionError):
    """The other end has not the key."""


def new_key() -> bytes:
    return secrets.token_bytes(32)


def greet(connection: socket.socket, key: bytes) -> None:
    """The end that connected. Throws Stranger; OSError."""
    theirs, ours = receive(connection, NONCE_BYTES), secrets.token_bytes(NONCE_BYTES)
    connection.sendall(ours + _proof(key, b"connects", theirs, ours))
    if not hmac.compare_digest(receive(connection, PROOF_BYTES), _proof(key, b"accepts", theirs, ours)):
        raise Stranger("no worker of this run")


def admit(connection: socket.socket, key: bytes) -> None:
    """The end that was connected to. Throws Stranger; OSError."""
    ours = secrets.token_bytes(NONCE_BYTES)
    connection.sendall(ours)
    answer = receive(connection, NONCE_BYTES + PROOF_BYTES)
    theirs = answer[:NONCE_BYTES]
    if not hmac.compare_digest(answer[NONCE_BYTES:], _proof(key, b"connects", ours, theirs)):
        raise Stranger("no worker of this run")
    connection.sendall(_proof(key, b"accepts", ours, theirs))


def _proof(key: bytes, role: bytes, accepting: bytes, connecting: bytes) -> bytes:
    """The role in it: what one end says proves nothing for the other."""
    return hmac.digest(key, role + accepting + connecting, "sha256")


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes, or Stranger."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise Stranger("the other end hung up")
        data += more
    return data
