"""The page on personas is followed to the letter: its files written, its commands typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agents.persona import persona_names
from agents.persona_schema import PersonaSpec
from tests.support.llm_stub import LLMStub
from tests.support.program import ROOT, environment

PAGE = ROOT / "docs" / "personas.md"
pytestmark = pytest.mark.timeout(300)


def blocks() -> list[tuple[str, str, str]]:
    """Language, file name and text of every fenced block, in order."""
    found = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M)
    return [(language, name, text) for language, name, text in found]


def _commands(text: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block, and the words that it must print."""
    commands: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif line:
            commands[-1][1].append(line)
    return commands


def test_every_file_is_written_and_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "run_warroom.py").symlink_to(ROOT / "run_warroom.py")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    # The link starts the same interpreter; its packages are those of this one.
    paths = os.pathsep.join([".", str(ROOT), *(p for p in sys.path if p.endswith("-packages"))])
    typed = 0
    with LLMStub() as stub:
        for language, name, text in blocks():
            if name:
                (tmp_path / name).write_text(text, encoding="utf-8")
            if language != "console":
                continue
            for command, words in _commands(text):
                line = command.replace("http://127.0.0.1:8000/v1", stub.url)
                line = line.replace("PYTHONPATH=. ", "")
                done = subprocess.run(
                    ["bash", "-c", line],
                    cwd=tmp_path,
                    env=environment(
                        tmp_path,
                        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}",
                        PYTHONPATH=paths,
                        OPENAI_API_KEY="none",
                        WARROOM_DRIVER="loop",  # the same trace, without importing the graph
                    ),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=120,
                )
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
                for word in words:
                    assert word in done.stdout + done.stderr, f"{command}\n{done.stdout}"
                assert "Traceback" not in done.stderr
                typed += 1
    assert typed >= 15


def test_every_shipped_persona_and_every_table_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    for name in persona_names():
        assert f"`{name}`" in text
    for table in PersonaSpec.model_fields:
        if table != "schema_":
            assert table in text


def test_nothing_is_left_to_fill_in() -> None:
    assert "@@" not in PAGE.read_text("utf-8")
