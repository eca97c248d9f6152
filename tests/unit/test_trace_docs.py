"""What docs/trace.md says about the format is what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from orchestrator.trace.events import EVENT_TYPES, SCHEMA
from orchestrator.trace.export import COLUMNS
from orchestrator.trace.verify import verify
from tests.support.traces import HOSTILE, commits, write_trace

DOC = (Path(__file__).parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")


def test_every_event_type_and_every_column_is_described() -> None:
    described = re.findall(r"^\| ((?:`[a-z_]+` ?)+)\|", DOC, flags=re.MULTILINE)
    names = {name for row in described for name in re.findall(r"`([a-z_]+)`", row)}
    assert names >= {*EVENT_TYPES, *COLUMNS}
    assert f"`{SCHEMA}`" in DOC


def test_the_checker_in_the_page_agrees_with_verify(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text(
        next(
            block for block in re.findall(r"```python\n(.*?)```", DOC, re.DOTALL) if "argv" in block
        )
    )
    path = write_trace(
        tmp_path / "t.jsonl", commits(2, talk=True, rationale=HOSTILE + "\u2028\x85")
    )
    good = path.read_bytes()

    def check() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, script, path], capture_output=True, text=True)

    assert check().stdout == f"ok {verify(path).sha}\n"
    path.write_bytes(b"".join(good.splitlines(keepends=True)[:-1]))
    assert check().stdout.startswith("incomplete ")
    path.write_bytes(good.replace(b'"reward":-16', b'"reward":99'))
    assert f"line {verify(path).first_bad}" in check().stderr
