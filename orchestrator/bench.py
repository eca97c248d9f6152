"""Run every benchmark script and put their figures into one document.

A benchmark is a script in ``benchmarks/`` that prints one JSON object, name → figure, a figure
being ``{value, unit, reference, ratio, target, n}``; what a figure lacks is null. Each script
runs in a process of its own, one after the other, so that none is measured beside another.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from orchestrator.console.text import close_matches, plain
from orchestrator.version import ROOT, version
from world.errors import UnknownNameError

FOLDER = ROOT / "benchmarks"
_NEEDED = frozenset({"value", "unit"})
_FIGURE = ("value", "unit", "reference", "ratio", "target", "n")
_GUARD = 'if __name__ == "__main__"'
_TIME_LIMIT_S = 900
_PACKAGES = ("numpy", "langgraph", "redis", "pydantic")
_RESERVED = frozenset({"machine", "versions", "errors"})


def benchmark_names(folder: Path = FOLDER) -> list[str]:
    """Names of the benchmark scripts, sorted; a module that is only imported is none."""
    return sorted(
        path.stem for path in folder.glob("*.py") if _GUARD in path.read_text(encoding="utf-8")
    )


def run_benchmarks(
    names: Sequence[str], tell: Callable[[str], None], folder: Path = FOLDER
) -> dict[str, Any]:
    """Run the named benchmarks, or all of them.

    Args:
        names: Names as `benchmark_names` gives them; none means all.
        tell: Is told which one runs.
        folder: Where the scripts are.

    Returns:
        Figures by name, ``machine``, ``versions``, and ``errors`` {script: reason}, which is
        empty where every script did its job.

    Raises:
        UnknownNameError: There is no such benchmark.
    """
    known = benchmark_names(folder)
    for name in names:
        if name not in known:
            raise UnknownNameError(
                f"there is no benchmark {plain(name, 80)!r}",
                "",
                f"{close_matches(name, known)}Benchmarks: {', '.join(known)}",
            )
    figures: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in names or known:
        tell(f"benchmark {name}")
        found, fault = _run(folder / f"{name}.py")
        taken = sorted((set(figures) | _RESERVED) & set(found))
        if not fault and taken:
            fault = f"the figure {taken[0]!r} was measured by another script already"
        if fault:
            errors[name] = fault
        else:
            figures |= found
    return figures | {"machine": machine(), "versions": versions(), "errors": errors}


def _run(script: Path) -> tuple[dict[str, Any], str]:
    """The figures that a script prints, or why there are none."""
    environment = {**os.environ, "PYTHONPATH": str(script.resolve().parent.parent)}
    try:
        done = subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, f"it took more than {_TIME_LIMIT_S} s"
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return {}, plain(f"exit status {done.returncode}: {last[0]}", 400)
    return _read(done.stdout)


def _read(text: str) -> tuple[dict[str, Any], str]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}, "it did not print one JSON document"
    if not isinstance(document, dict):
        return {}, "it did not print a JSON object"
    # A script may say on which machine it ran; the whole document says so once.
    figures = {name: part for name, part in document.items() if name not in _RESERVED}
    for name, figure in figures.items():
        if not isinstance(figure, dict) or not _NEEDED.issubset(figure):
            return {}, f"{plain(name, 80)!r} is no figure: it lacks value or unit"
        figures[name] = dict.fromkeys(_FIGURE) | figure
    return figures, ""


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Versions that move the figures."""
    found = {"war room": version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
