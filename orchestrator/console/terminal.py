"""Whether a stream is a terminal, and one that can be drawn on."""

from __future__ import annotations

import os
from typing import TextIO


def draws(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can be drawn on."""
    if not stream.isatty() or os.environ.get("TERM", "") in {"dumb", "unknown"}:
        return False
    return (stream.encoding or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
