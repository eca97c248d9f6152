"""Whether a port speaks TLS, asked before a client waits for it in vain.

A server that expects plain text waits for the end of a line that a TLS hello never has. To the
client that looks like a server that is overloaded.
"""

from __future__ import annotations

import socket
import ssl

from world.store.address import Address

_HANDSHAKE_S = 1.0
_PING = b"PING\r\n"
_REPLIES = (b"+", b"-")
"""First bytes of an answer to PING in plain text."""


def speaks_plainly(address: Address, timeout_s: float) -> bool:
    """Whether a port to which TLS is meant to be spoken fails at it and answers plain text.

    Anything else (nothing listens, a bad certificate, silence) is left to the client to tell.

    Args:
        address: A ``rediss://`` address.
        timeout_s: How long the server may take, in seconds; 1 s at most is waited for a handshake.
    """
    patience_s = min(timeout_s, _HANDSHAKE_S)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only whether it is TLS is asked here; nothing is sent, and the client checks who answers.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((address.host, address.port), patience_s) as plain:
            context.wrap_socket(plain, server_hostname=address.host).close()
    except (ssl.SSLError, TimeoutError, ConnectionResetError):
        return _answer(address, patience_s).startswith(_REPLIES)
    except (OSError, ValueError):
        return False
    return False


def _answer(address: Address, patience_s: float) -> bytes:
    """What the port says to a plain PING; empty when it says nothing."""
    try:
        with socket.create_connection((address.host, address.port), patience_s) as plain:
            plain.settimeout(patience_s)
            plain.sendall(_PING)
            return plain.recv(64)
    except OSError:
        return b""
