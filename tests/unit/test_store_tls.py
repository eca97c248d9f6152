"""A port that speaks the other of TLS and plain text is told at once, in words that help."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from world.errors import StoreUnavailableError
from world.store.base import StoreSettings
from world.store.connect import connect_url

ALERT = b"\x15\x03\x01\x00\x02\x02\x46"


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port on which every connection is served by `serve`."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(20.0)
            threads.append(threading.Thread(target=one, args=(connection,), daemon=True))
            threads[-1].start()

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                serve(connection)
            except OSError:
                return

    loop = threading.Thread(target=accept, daemon=True)
    loop.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        loop.join(5.0)
        for thread in threads:
            thread.join(5.0)


def plain_server(answer: bytes) -> Callable[[socket.socket], None]:
    """What a plain server does: it waits for the end of a line before it says anything."""

    def serve(connection: socket.socket) -> None:
        waiting = b""
        while chunk := connection.recv(4096):
            waiting += chunk
            if waiting.startswith(b"PING"):
                connection.sendall(answer)
                waiting = b""

    return serve


def _refused(url: str, timeout_s: float = 5.0) -> str:
    with pytest.raises(StoreUnavailableError) as caught:
        connect_url(url, StoreSettings(timeout_s=timeout_s))
    assert caught.value.exit_code == 3
    assert "secret" not in caught.value.line()
    return caught.value.line()


@pytest.mark.parametrize("answer", [b"+PONG\r\n", b"-NOAUTH Authentication required.\r\n",
                                    b"-DENIED protected mode\r\n"])  # fmt: skip
@pytest.mark.parametrize("query", ["", "?ssl_cert_reqs=none"])
def test_tls_to_a_plain_port_is_told_with_what_to_write(answer: bytes, query: str) -> None:
    with listening(plain_server(answer)) as port:
        line = _refused(f"rediss://me:secret@127.0.0.1:{port}/0{query}")
    assert "does not speak TLS" in line
    assert "Write redis://" in line
    assert "overloaded" not in line


def test_plain_text_to_a_tls_port_is_told_with_what_to_write() -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(ALERT)

    with listening(serve) as port:
        line = _refused(f"redis://:secret@127.0.0.1:{port}/0", 1.0)
    assert "does not speak plain text" in line
    assert "Write rediss://" in line


def test_a_port_that_fails_at_tls_and_says_nothing_is_not_called_plain() -> None:
    with listening(lambda connection: connection.close()) as port:
        line = _refused(f"rediss://:secret@127.0.0.1:{port}/0", 0.3)
    assert "does not speak TLS" not in line


def test_a_tls_address_where_nothing_listens_is_told_as_such() -> None:
    with listening(lambda connection: connection.close()) as port:
        pass
    assert "nothing listens there" in _refused(f"rediss://127.0.0.1:{port}/0", 0.3)
