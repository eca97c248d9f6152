"""Opening a store by name: what there is, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stores import created
from world.errors import ConfigError, StoreUnavailableError
from world.store import binaries, embedded
from world.store.base import StoreSettings
from world.store.open import STORE_NAMES, open_store


@pytest.mark.parametrize("name", ["", "memory", "Embedded", "redis", "fakeredis", ":memory"])
def test_an_unknown_name_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(name)
    for choice in (*STORE_NAMES, "redis://"):
        assert choice in caught.value.line()


def test_a_url_of_another_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="scheme"):
        open_store("http://localhost:6379")


def test_a_server_that_is_not_there_is_said_at_once_and_without_the_password() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        open_store("redis://me:s3cr3t@127.0.0.1:1/0")
    line = caught.value.line()
    assert "redis://127.0.0.1:1/0" in line
    assert "nothing listens there" in line
    assert "docker compose up -d store" in line
    assert "s3cr3t" not in line
    assert "me:" not in line
    assert caught.value.exit_code == 3
    assert caught.value.__cause__ is None


def test_a_socket_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="no such socket"):
        open_store(f"unix://{tmp_path}/none.sock")


@pytest.mark.parametrize("name", ["embedded", ":memory:"])
def test_where_no_binary_runs_fakeredis_stands_in_and_says_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "candidates", lambda: iter([tmp_path / "no-such-binary"]))
    settings = StoreSettings(state_dir=str(tmp_path / "state"))
    store = open_store(name, settings)
    assert store.name == "fakeredis"
    assert store.description == "fakeredis: one process, not durable"
    assert store.durable is False
    created(store, "e1")
    shared = open_store(name, settings)
    assert (len(shared.episodes()) == 1) is (name == "embedded")


def test_a_binary_that_does_not_run_here_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "valkey-server"
    broken.write_bytes(b"\x7fELF not really")
    broken.chmod(0o755)
    silent = tmp_path / "redis-server"
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    old = tmp_path / "old-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0'\n")
    old.chmod(0o755)
    new = tmp_path / "new-server"
    new.write_text("#!/bin/sh\necho 'Valkey server v=8.1.2 sha=0'\n")
    new.chmod(0o755)
    monkeypatch.setattr(binaries, "candidates", lambda: iter([broken, silent, old, new]))
    found = binaries.find_binary()
    assert found == binaries.Binary(new, (8, 1, 2))


def test_a_server_that_does_not_start_is_said_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "valkey-server"
    fake.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "v=9.0.0"; exit 0; fi\n'
        "echo 'Bad file format reading the append only file'\nexit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(binaries, "candidates", lambda: iter([fake]))
    with pytest.raises(StoreUnavailableError, match="Bad file format") as caught:
        embedded.attach(tmp_path / "state")
    assert "does not start" in caught.value.line()
