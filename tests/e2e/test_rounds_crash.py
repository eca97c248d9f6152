"""A negotiation of several rounds is killed in the middle; nobody is asked twice for an answer."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import ENTRY, ROOT, environment, warroom

pytestmark = [pytest.mark.crash, pytest.mark.redis, pytest.mark.timeout(240)]

PERSONA = """schema = "persona/1"
extends = "{role}"
[identity]
id = "paid_{role}"
role = "{role}"
[ballot]
source = "blend(0.5)"
[backend]
kind = "python:tests.support.paid:Paid"
"""
ROLES = ("resource", "cost", "sustainability")
STEPS = 6


def arguments(folder: Path, protocol: str) -> list[str]:
    command = [
        "run",
        "--protocol",
        protocol,
        "--seed",
        "5",
        "--steps",
        str(STEPS),
        "--log",
        "quiet",
    ]
    for role in ROLES:
        path = folder / f"{role}.toml"
        path.write_text(PERSONA.format(role=role), encoding="utf-8")
        command += ["--persona", f"{role}={path}"]
    return command


def variables(folder: Path) -> dict[str, str]:
    return {"PAID_LOG": str(folder / "calls"), "PYTHONPATH": str(ROOT)}


def calls(folder: Path) -> list[tuple[str, str]]:
    """(``asked`` or ``answered``, question), in order."""
    path = folder / "calls"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [(word, key) for word, _, key in (line.partition(" ") for line in lines)]


def killed(folder: Path, protocol: str, driver: str, after: int) -> list[tuple[str, str]]:
    """Start a run and kill it -9 once that many questions have been asked."""
    process = subprocess.Popen(
        [sys.executable, str(ENTRY), *arguments(folder, protocol), "--driver", driver],
        cwd=folder,
        env=environment(folder, **variables(folder)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while len(calls(folder)) < after and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    process.kill()
    process.wait()
    return calls(folder)


def finished(folder: Path) -> dict[str, Any]:
    paid: Any = variables(folder)
    done = warroom("run", "--resume", "last", "--json", cwd=folder, **paid)
    assert done.status == 0, done.err
    document: dict[str, Any] = done.document
    return document


def undisturbed(folder: Path, protocol: str) -> dict[str, Any]:
    folder.mkdir()
    command = arguments(folder, protocol)
    paid: Any = variables(folder)
    done = warroom(*command, "--json", "--driver", "loop", cwd=folder, **paid)
    assert done.status == 0, done.err
    document: dict[str, Any] = done.document
    return document


@pytest.mark.parametrize(
    ("protocol", "driver"), [("alternating_offers", "graph"), ("debate", "loop")]
)
def test_a_killed_negotiation_goes_on_where_it_was_and_pays_no_answer_twice(
    tmp_path: Path, protocol: str, driver: str
) -> None:
    whole = undisturbed(tmp_path / "whole", protocol)
    most = len(calls(tmp_path / "whole"))
    assert most > 2 * len(ROLES) * STEPS  # ballots and rounds are asked for, not proposals only
    moments = random.Random(protocol)
    for number in range(3):
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        before = killed(folder, protocol, driver, moments.randrange(most // 6, most - most // 6))
        result = finished(folder)
        assert result["trace_sha"] == whole["trace_sha"]
        assert result["reward_total"] == whole["reward_total"]
        asked = Counter(key for word, key in calls(folder) if word == "asked")
        twice = {key for key, count in asked.items() if count > 1}
        # Only questions of the batch that was in the air when the run was killed.
        air = {key for word, key in before[-2 * len(ROLES) :] if word in {"asked", "answered"}}
        assert twice <= air
        assert len(twice) <= len(ROLES)
        assert set(asked) == {key for word, key in calls(tmp_path / "whole") if word == "asked"}
        assert max(asked.values()) <= 2
