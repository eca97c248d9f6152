"""What a tournament says of its progress, on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest

from orchestrator.cli.sweep import _Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_elsewhere_every_tenth_is_told_and_what_was_played_before_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = _Progress(20)
    for done in range(5, 21):
        progress(done, 1 if done > 10 else 0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "5 of 20 episodes were played before"
    assert lines[1:] == [
        f"{done}/20 episodes" + (", 1 failed" if done > 10 else "") for done in range(6, 21, 2)
    ]


def test_on_a_terminal_one_line_is_drawn_again_and_ends_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    progress = _Progress(4)
    for done in range(5):
        progress(done, 0)
    text = terminal.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("4/4 episodes\x1b[K\n")
    assert text.count("\r") == 5
    assert " left" in text
    assert "█" * 12 + "░" * 12 in text
