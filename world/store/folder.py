"""The folder of the embedded store: where it is, whose it is, and where its socket goes.

Locks and sockets need a local disk and a folder that is ours alone; anything else is refused in
one line before a server is started.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from world.errors import ConfigError

SOCKET_NAME = "store.sock"
MAX_SOCKET_PATH = 100
"""A unix socket's path has 108 bytes on Linux and 104 on macOS, its end included.

Source: unix(7); xnu bsd/sys/un.h.
"""
_NETWORK_FILESYSTEMS = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "beegfs"),
        *("gpfs", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.gcsfuse", "ncpfs", "davfs"),
    }
)
_MOUNTS = Path("/proc/self/mountinfo")


def default_folder(environment: Mapping[str, str] | None = None) -> Path:
    """``$XDG_STATE_HOME/warroom/store``, or under ``~/.local/state``.

    Source: XDG Base Directory Specification 0.8.

    Raises:
        ConfigError: There is no home folder to put it in.
    """
    values = os.environ if environment is None else environment
    base = values.get("XDG_STATE_HOME", "")
    # The specification says that a relative path is invalid and must be ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "warroom" / "store"
    try:
        return Path.home() / ".local" / "state" / "warroom" / "store"
    except RuntimeError:
        raise ConfigError(
            "there is no folder for the embedded store",
            "neither XDG_STATE_HOME nor a home folder is known",
            "Set WARROOM_STATE_DIR",
        ) from None


def prepare_folder(folder: Path) -> Path:
    """Make the folder, readable by us alone.

    Returns:
        Its real path, so that two ways of naming it mean one store.

    Raises:
        ConfigError: It cannot be made, is not ours, or lies on a network filesystem.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        real = folder.resolve(strict=True)
        found = real.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(20, "it is not a folder")
        if found.st_uid != os.getuid():
            raise PermissionError(1, "it belongs to another user")
        if found.st_mode & 0o077:
            real.chmod(0o700)
        if not os.access(real, os.W_OK | os.X_OK):
            raise PermissionError(13, "it is not writable")
    except OSError as error:
        raise ConfigError(
            f"the folder {folder} cannot hold the embedded store",
            error.strerror or type(error).__name__,
            "Name another with WARROOM_STATE_DIR, or use --store :memory:",
        ) from None
    kind = filesystem_of(real)
    if kind in _NETWORK_FILESYSTEMS:
        raise ConfigError(
            f"the folder {folder} cannot hold the embedded store",
            f"it lies on a network filesystem ({kind}), where locks do not hold",
            "Name a local one with WARROOM_STATE_DIR, or use --store redis://…",
        )
    return real


def filesystem_of(folder: Path, mounts: Path = _MOUNTS) -> str:
    """Type of the filesystem that a folder lies on; "" where the system does not say.

    Source: proc_pid_mountinfo(5).
    """
    best, kind = -1, ""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        before, separator, after = line.partition(" - ")
        words = before.split(" ")
        if not separator or len(words) < 5:
            continue
        point = Path(words[4].replace("\\040", " "))
        # A later line mounts over an earlier one, so the last of equal length wins.
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def socket_path(folder: Path) -> Path:
    """Where the server of a folder listens: in it, or elsewhere where its path is too long.

    Raises:
        ConfigError: There is no private place for a short path.
    """
    inside = folder / SOCKET_NAME
    if len(os.fsencode(inside)) <= MAX_SOCKET_PATH:
        return inside
    # The name only has to be the same for every process that means this folder.
    name = hashlib.sha1(os.fsencode(folder), usedforsecurity=False).hexdigest()
    for base in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 - the owner is checked
        place = base / f"warroom-{os.getuid()}"
        short = place / f"{name}.sock"
        if len(os.fsencode(short)) <= MAX_SOCKET_PATH and _is_private(place):
            return short
    raise ConfigError(
        f"the path {inside} is too long for a socket",
        f"it has more than {MAX_SOCKET_PATH} bytes, and no temporary folder is ours alone",
        "Name a shorter one with WARROOM_STATE_DIR",
    )


def _is_private(place: Path) -> bool:
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return ours and not found.st_mode & 0o077
