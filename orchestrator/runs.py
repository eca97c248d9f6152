"""Run folders: claiming one, and the files that lie in it.

``runs/<run id>/`` holds ``run.json`` (how it was run), ``trace.jsonl`` (what happened),
``timings.jsonl`` (how long it took and what it cost; never hashed) and ``scorecard.json``. Run
ids are made from scenario, seed, protocol, personas and a counter, never from a clock.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from world.errors import ConfigError, UnknownNameError

RUN_FILE = "run.json"
TRACE_FILE = "trace.jsonl"
TIMINGS_FILE = "timings.jsonl"
SCORECARD_FILE = "scorecard.json"
ORDER_FILE = ".order"
_MAX_TRIES = 100_000


def run_stem(scenario: str, seed: int, protocol: str, config_digest: str) -> str:
    """A run id without its counter.

    >>> run_stem("cloudedge/hard", 1, "nash", "0a1b2c3d")
    'cloudedge-hard.s1.nash.0a1b2c3d'
    """
    words = [scenario, f"s{seed}", protocol, config_digest]
    return ".".join(re.sub(r"[^A-Za-z0-9_]+", "-", word).strip("-")[:48] for word in words)


def claim(
    out: Path, stem: str, record: Mapping[str, Any], start: bytes, first: int = 1
) -> tuple[str, int]:
    """Claim the next free run folder, with its run.json and the start of its trace in it.

    The folder appears whole or not at all: it is made beside and renamed into place, which
    fails where the name is taken.

    Args:
        out: Parent folder of the runs; made if it is not there.
        stem: Run id without its counter.
        record: What run.json says, less the run id.
        start: First line of the trace, without a line end.
        first: Lowest counter to try.

    Returns:
        Run id and the counter in it.

    Raises:
        ConfigError: The parent folder cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = _counters(out, stem)
        for counter in range(max([first - 1, *taken]) + 1, _MAX_TRIES):
            run = f"{stem}.{counter}"
            if _claim_one(out, run, record, start):
                return run, counter
    except OSError as error:
        raise ConfigError(
            f"the run folder {out} cannot be written",
            error.strerror or str(error),
            "Name another with --out, or correct its permissions",
        ) from error
    raise ConfigError(f"{out} holds {_MAX_TRIES} runs of {stem}", "", "Name another with --out")


def _counters(out: Path, stem: str) -> list[int]:
    """Counters in use, so that a claim does not have to try every one of them."""
    prefix = f"{stem}."
    tails = (path.name[len(prefix) :] for path in out.iterdir() if path.name.startswith(prefix))
    return [int(tail) for tail in tails if tail.isdigit()]


def _claim_one(out: Path, run: str, record: Mapping[str, Any], start: bytes) -> bool:
    draft = Path(tempfile.mkdtemp(prefix=".claim-", dir=out))
    try:
        _write(draft / RUN_FILE, {"run": run, **record})
        (draft / TRACE_FILE).write_bytes(start + b"\n")
        draft.chmod(0o755)
        # Noted first: a run that exists is never missing from the order, and a name without a
        # folder does no harm there.
        with (out / ORDER_FILE).open("a", encoding="utf-8") as order:
            order.write(f"{run}\n")
        try:
            draft.rename(out / run)
        except OSError as error:
            if (out / run).exists():
                return False
            raise error from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _write(path: Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def write_record(folder: Path, name: str, data: Mapping[str, Any]) -> None:
    """Write one JSON file of a run, whole or not at all."""
    _write(folder / name, data)


def read_record(folder: Path) -> dict[str, Any]:
    """A run's run.json.

    Raises:
        UnknownNameError: The folder holds no run.
    """
    try:
        data = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnknownNameError(
            f"{folder} holds no run",
            f"its {RUN_FILE} cannot be read",
            "List runs: python run_warroom.py runs",
        ) from error
    if not isinstance(data, dict):
        raise UnknownNameError(f"{folder} holds no run", f"{RUN_FILE} is not an object", "")
    return data
