"""Which log mode is used, and the watcher that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from orchestrator.console.terminal import draws
from orchestrator.console.watcher import Pipe, Watcher


def choose_mode(asked: str, stream: TextIO, as_json: bool) -> tuple[str, str]:
    """The mode to use, and a word about it where it is not the one that was asked for.

    Args:
        asked: ``auto``, ``live``, ``lines``, ``json`` or ``quiet``.
        stream: Where the log will go.
        as_json: Whether standard output carries one JSON document; the default is then quiet.
    """
    if asked == "auto":
        if as_json:
            return "quiet", ""
        return ("live" if draws(stream) else "lines"), ""
    if asked == "live" and not draws(stream):
        return "lines", "the live view needs a terminal; writing lines instead"
    return asked, ""


def make_watcher(mode: str, stream: TextIO, on_broken: Callable[[str], None]) -> Watcher:
    """The watcher of a mode.

    Args:
        mode: As `choose_mode` answered.
        stream: Where it writes.
        on_broken: Called with the reason when the stream cannot be written any more.
    """
    if mode == "live":
        from rich.console import Console

        from orchestrator.console.live import LiveView

        return LiveView(Console(file=stream))
    pipe = Pipe(stream, on_broken)
    if mode == "lines":
        from orchestrator.console.lines import LineLog

        return LineLog(pipe)
    if mode == "json":
        from orchestrator.console.events import EventLog

        return EventLog(pipe, ascii_only=stream.isatty())
    return Watcher()
