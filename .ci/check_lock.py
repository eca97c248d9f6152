"""Check that requirements.lock matches pyproject.toml and names no address; --write renews it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
EXTRAS = ("test", "sqlite", "study")


def compile_lock(output: Path, upgrade: bool) -> None:
    """Resolve pyproject.toml; pins that stand in `output` already are kept unless `upgrade`."""
    command = [str(Path(sys.executable).parent / "uv"), "pip", "compile", "--quiet", "--universal"]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
    command += ["--python-version", "3.11", "--output-file", str(output)]
    command += [f"--extra={name}" for name in EXTRAS]
    command += ["--upgrade"] if upgrade else []
    subprocess.run([*command, "pyproject.toml"], cwd=ROOT, check=True)


def main() -> int:
    """Exit status 0 when the lock is right."""
    if "--write" in sys.argv:
        compile_lock(LOCK, upgrade=True)
        return 0
    content = LOCK.read_text(encoding="utf-8")
    if re.search(r"https?://|--(extra-)?index|--find-links|@ file", content):
        print("requirements.lock names an address: make lock")  # noqa: T201
        return 1
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / LOCK.name
        shutil.copy(LOCK, fresh)
        compile_lock(fresh, upgrade=False)
        if fresh.read_text(encoding="utf-8") != content:
            print("requirements.lock does not match pyproject.toml: make lock")  # noqa: T201
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
