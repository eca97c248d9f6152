"""Operator logs, configured in one place: readable on a terminal, JSON lines otherwise.

Library code only calls ``logging.getLogger(__name__)``. Logs are for operators; the trace is the
data. Every record passes through a formatter that removes passwords and keys.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import TextIO

from orchestrator.console.text import plain, without_secrets


class _Plain(logging.Formatter):
    """Message with secrets and control characters removed."""

    def format(self, record: logging.LogRecord) -> str:
        """The message alone; the handler shows level and logger."""
        return without_secrets(plain(super().format(record)))


class _JsonLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """``{"level", "logger", "message"}``, and ``error`` where there was an exception."""
        entry = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        if record.exc_info:
            entry["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(entry)


def configure(verbose: bool = False, stream: TextIO | None = None) -> None:
    """Send log records to `stream`, standard error by default.

    Args:
        verbose: Show INFO and above instead of WARNING and above.
        stream: Where to; a terminal gets colours, anything else JSON lines.
    """
    stream = stream or sys.stderr
    handler: logging.Handler
    if stream.isatty():
        from rich.console import Console
        from rich.highlighter import NullHighlighter
        from rich.logging import RichHandler

        handler = RichHandler(
            console=Console(file=stream),
            show_time=False,
            show_path=False,
            markup=False,
            highlighter=NullHighlighter(),
        )
        handler.setFormatter(_Plain("%(name)s: %(message)s"))
    else:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(_JsonLines())
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, handlers=[handler], force=True
    )
    # A client library logs addresses and requests that are nobody's business here.
    for noisy in ("httpx", "httpcore", "openai", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
