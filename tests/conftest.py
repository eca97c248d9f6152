"""What every test session needs: its own folders, a clean environment, markers by folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import Backend, backends, wait_until_stopped
from world.store.base import WorldStore

FOLDERS = frozenset({"unit", "property", "conformance", "e2e"})
_KEPT = "WARROOM_TEST_"
_session_folder: Path | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Nothing of the developer's own state is read or written, by tests or their children."""
    del config
    global _session_folder
    # Short, because sockets live under it, and a socket's path may have about 100 bytes.
    _session_folder = Path(tempfile.mkdtemp(prefix="wr-"))
    for name in tuple(os.environ):
        if name.startswith("WARROOM_") and not name.startswith(_KEPT):
            del os.environ[name]
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        folder = _session_folder / name.removeprefix("XDG_").removesuffix("_HOME").lower()
        folder.mkdir(mode=0o700)
        os.environ[name] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    del config
    if _session_folder is not None:
        wait_until_stopped(Path(os.environ["XDG_STATE_HOME"]) / "warroom" / "store")
        shutil.rmtree(_session_folder, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test carries the marker of the folder that it lies in."""
    for item in items:
        for part in item.path.parts:
            if part in FOLDERS:
                item.add_marker(part)


@pytest.fixture(scope="session", params=backends(), ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Every kind of store in turn. What cannot start fails in CI and is skipped elsewhere."""
    chosen: Backend = request.param
    reason = chosen.start()
    if reason:
        if os.environ.get("CI", "").lower() in {"1", "true", "yes"}:
            pytest.fail(f"no {chosen.name} store: {reason}")
        pytest.skip(f"no {chosen.name} store: {reason}")
    yield chosen
    chosen.stop()


@pytest.fixture(scope="session")
def store(backend: Backend) -> WorldStore:
    """One store of each kind. Tests keep apart by their episode ids."""
    return backend.store


@pytest.fixture
def episode(request: pytest.FixtureRequest) -> str:
    """An episode id of this test alone, also on a server that other sessions use."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"test.{name[:80]}.{os.urandom(6).hex()}"
