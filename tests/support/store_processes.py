"""Processes that use a store until they are killed, and a line that loses replies."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.stores import bare_client, delta_of
from world.errors import EpisodeClosedError, LeaseLostError, StaleWorldError
from world.store.base import StoreSettings
from world.store.connect import connect_url
from world.store.embedded import attach

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.support.store_processes"])


def start(target: Callable[..., None], *args: Any) -> multiprocessing.process.BaseProcess:
    """Run a function of this module in a process of its own."""
    process = PROCESSES.Process(target=target, args=args)
    process.start()
    return process


def write_until_killed(url: str, episode: str, holder: str, acknowledged: str) -> None:
    """Compete for the lease, commit steps, and note what was acknowledged."""
    store = connect_url(url, StoreSettings())
    notes = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while True:
        lease = store.lease(episode, "0", holder, ttl_s=0.15)
        if lease is None:
            time.sleep(0.005)
            continue
        step = store.attach(episode).step
        with contextlib.suppress(LeaseLostError, StaleWorldError, EpisodeClosedError):
            for _ in range(10_000):
                request = f"{holder}/{step + 1}"
                store.apply(lease, step, request, delta_of(step + 1), request.encode())
                step += 1
                os.write(notes, f"{step} {request}\n".encode())


def count_once(folder: str, gate: Any, results: Any) -> None:
    """Attach at the same moment as everybody else, count, and say which server it was."""
    gate.wait(30)
    attachment = attach(Path(folder))
    assert attachment is not None
    with bare_client(attachment.socket) as client:
        client.incr("counted")
        results.put(client.info("server")["process_id"])
        gate.wait(30)
    attachment.detach()


class LossyLine:
    """A proxy before a unix socket that drops every n-th reply together with its connection.

    Attributes:
        path: Where to connect instead of the server.
        dropped: Replies dropped so far.
    """

    def __init__(self, server: Path, path: Path, every: int) -> None:
        self.path = path
        self.dropped = 0
        self._server = server
        self._every = every
        self._replies = itertools.count(1)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop, and wait for every thread."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            _hang_up(each)
        for thread in self._threads:
            thread.join(5)
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            self._open += [client, server]
            for source, target, replies in ((client, server, False), (server, client, True)):
                thread = threading.Thread(
                    target=self._pump, args=(source, target, replies), daemon=True
                )
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if replies and next(self._replies) % self._every == 0:
                    self.dropped += 1
                    break
                target.sendall(data)
        _hang_up(source)
        _hang_up(target)


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def lossy_line(server: Path, every: int) -> Iterator[LossyLine]:
    """A `LossyLine` beside the server's socket."""
    line = LossyLine(server, server.with_name("lossy.sock"), every)
    try:
        yield line
    finally:
        line.close()
