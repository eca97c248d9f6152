"""The folder of the embedded store: private, local, and with room for a socket."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from world.errors import ConfigError
from world.store import folder as folders
from world.store.folder import (
    MAX_SOCKET_PATH,
    default_folder,
    filesystem_of,
    prepare_folder,
    socket_path,
)


def test_the_default_folder_follows_the_xdg_specification() -> None:
    assert default_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/warroom/store")
    at_home = Path.home() / ".local" / "state" / "warroom" / "store"
    assert default_folder({}) == at_home
    assert default_folder({"XDG_STATE_HOME": "relative"}) == at_home


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    made = prepare_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.chmod(0o755)
    assert stat.S_IMODE(prepare_folder(made).stat().st_mode) == 0o700


def test_two_ways_to_name_a_folder_are_one_store(tmp_path: Path) -> None:
    real = prepare_folder(tmp_path / "real")
    (tmp_path / "link").symlink_to(real)
    assert prepare_folder(tmp_path / "link") == real
    assert prepare_folder(tmp_path / "x" / ".." / "real") == real


def test_a_folder_that_cannot_be_used_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        with pytest.raises(ConfigError, match="WARROOM_STATE_DIR"):
            prepare_folder(place)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, -1)
    with pytest.raises(ConfigError, match="another user"):
        prepare_folder(theirs)


def _mounts(tmp_path: Path, *rows: tuple[str, str]) -> Path:
    table = tmp_path / "mountinfo"
    lines = [
        f"{n} 1 0:{n} / {point} rw,relatime shared:1 - {kind} source rw"
        for n, (point, kind) in enumerate(rows)
    ]
    table.write_text("\n".join(lines))
    return table


def test_the_filesystem_is_that_of_the_longest_mount_above(tmp_path: Path) -> None:
    table = _mounts(
        tmp_path,
        ("/", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/My\\040Files", "xfs"),
        ("/home/you", "cifs"),
        ("/home/you", "tmpfs"),
    )
    for place, kind in {
        "/etc": "ext4",
        "/home/me/x": "nfs4",
        "/homestead": "ext4",
        "/home/me/My Files/x": "xfs",
        "/home/you/x": "tmpfs",
    }.items():
        assert filesystem_of(Path(place), table) == kind
    assert filesystem_of(Path("/etc"), tmp_path / "none") == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "lustre"])
def test_a_network_filesystem_is_refused_because_locks_do_not_hold_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = _mounts(tmp_path, ("/", "ext4"), (str(tmp_path.resolve()), kind))
    monkeypatch.setattr(folders.filesystem_of, "__defaults__", (table,))
    with pytest.raises(ConfigError, match="network filesystem"):
        prepare_folder(tmp_path / "store")


def test_a_short_path_keeps_its_socket_in_the_folder(tmp_path: Path) -> None:
    place = Path("/tmp/short")
    assert socket_path(place) == place / "store.sock"


def test_a_long_path_puts_its_socket_where_it_fits_always_in_the_same_place(
    tmp_path: Path,
) -> None:
    long = tmp_path / ("deep" * 40)
    short = socket_path(long)
    assert len(os.fsencode(short)) <= MAX_SOCKET_PATH
    assert socket_path(long) == short
    assert socket_path(tmp_path / ("deep" * 41)) != short
    assert stat.S_IMODE(short.parent.stat().st_mode) == 0o700
