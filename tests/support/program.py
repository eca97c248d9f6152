"""The real program in a process of its own, as a person or a script starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
ENTRY = ROOT / "run_warroom.py"
PROGRAM = f"{sys.executable} {ENTRY}"
"""What the program calls itself when it is started as here."""
_TIMEOUT_S = 90


@dataclass(frozen=True, slots=True)
class Done:
    """What a finished program left behind.

    Attributes:
        status: Exit status.
        out: Standard output.
        err: Standard error.
    """

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on standard output."""
        return json.loads(self.out)


SCENARIO = "cloudedge/hard"
"""What is played where a test names no scenario: the default takes longer."""


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """A clean environment whose state lies under `folder`, with a quick scenario."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WARROOM_", "OPENAI_", "PYTEST"))
    }
    kept |= {"XDG_STATE_HOME": str(folder / "state"), "PYTHONWARNINGS": "default"}
    kept["WARROOM_SCENARIO"] = SCENARIO
    return kept | variables


def warroom(*arguments: str, cwd: Path, limit_s: float = _TIMEOUT_S, **variables: str) -> Done:
    """Run the program to its end.

    Args:
        arguments: Its command line.
        cwd: Where it is started; also holds its state.
        limit_s: Seconds after which it counts as hung.
        variables: Environment variables.
    """
    done = subprocess.run(
        [sys.executable, str(ENTRY), *arguments],
        cwd=cwd,
        env=environment(cwd, **variables),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def start(*arguments: str, cwd: Path, **variables: str) -> subprocess.Popen[str]:
    """Start the program and return at once; standard output and error are pipes."""
    return subprocess.Popen(
        [sys.executable, "-u", str(ENTRY), *arguments],
        cwd=cwd,
        env=environment(cwd, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
