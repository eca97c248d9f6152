"""The keeper: a tiny process that stops the embedded server when its last client is gone.

Run as a file by a bare interpreter (``python -I -S keeper.py FOLDER SOCKET MODE``), so it imports
nothing but the standard library's smallest parts. Clients hold a shared lock on clients.lock for
as long as they live; the kernel drops it even on kill -9. The keeper waits for the exclusive one.

Its locks come as descriptors 3 to 6, so that it works even when the folder has been removed
meanwhile. The first, keeper.lock, is locked already by whoever started the keeper: there is never
a moment without an owner in which two keepers could start, or none.
"""

# pathlib would double what this process imports and holds.
# ruff: noqa: PTH106, PTH108, PTH118

import contextlib
import fcntl
import os
import signal
import socket
import sys
import time

FIRST_LOCK = 3
LOCKS = ("keeper", "elect", "clients", "server")
GRACE_S = 0.2
"""A client that stops and starts again at once should find its server still there."""
_SHUTDOWN_S = 30.0
_END_S = 10.0


def main(folder: str, address: str, mode: str) -> None:
    """Wait for the last client to go, then stop the server."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    keeper, elect, clients, server = range(FIRST_LOCK, FIRST_LOCK + len(LOCKS))
    while True:
        fcntl.flock(clients, fcntl.LOCK_EX)
        fcntl.flock(clients, fcntl.LOCK_UN)
        time.sleep(GRACE_S)
        # Whoever starts or attaches holds elect.lock, so nobody can come while we look.
        fcntl.flock(elect, fcntl.LOCK_EX)
        try:
            fcntl.flock(clients, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fcntl.flock(elect, fcntl.LOCK_UN)
            continue
        break
    stop_server(address)
    end_server(server)
    if mode == "temporary":
        _remove(folder)
    # In this order: the next one to hold elect.lock must not still see a keeper at work.
    os.close(keeper)
    os.close(clients)
    os.close(elect)


def stop_server(address: str) -> None:
    """Ask the server to write everything and stop, and wait until it has."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_SHUTDOWN_S)
        line.connect(address)
        line.sendall(b"*1\r\n$8\r\nSHUTDOWN\r\n")
        while line.recv(4096):
            pass
    # The listening socket closes before the process ends, and the file may stay behind.
    with contextlib.suppress(OSError):
        os.unlink(address)


def end_server(lock: int) -> None:
    """End a server that SHUTDOWN did not reach, for example because its folder was removed.

    The lock is the server's own for as long as it lives, so the pid in it is not somebody else's.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        until_s = time.monotonic() + _END_S
        sent = False
        while not _is_free(lock):
            if time.monotonic() > until_s:
                break
            if not sent:
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int(os.pread(lock, 32, 0)), number)
                sent = True
            time.sleep(0.01)
        else:
            return


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: str) -> None:
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(parent, name))
        for name in folders:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(parent, name))
    with contextlib.suppress(OSError):
        os.rmdir(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
