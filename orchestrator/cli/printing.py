"""How commands print: one JSON document, or plain text; data on stdout, talk on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from orchestrator.console.text import plain, without_secrets

_WIDEST = 10_000

Commands = Mapping[str, Callable[..., int]]
"""Word → the function that does it."""


_kept: list[TextIO] = []


@contextmanager
def answers_only() -> Iterator[TextIO]:
    """Keep standard output for our own answers while the code of others runs.

    A persona in Python may print, or write to descriptor 1 past Python: that goes to standard
    error, and can neither forge a line of the log nor break a document apart. `say` and
    `document` still write to the real one.
    """
    with _aside(answers()) as kept:
        _kept.append(kept)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield kept
        finally:
            _kept.pop()


@contextmanager
def _aside(stream: TextIO) -> Iterator[TextIO]:
    """The same output on a descriptor of its own, while descriptor 1 is standard error."""
    if not _is_descriptor_1(stream):
        yield stream
        return
    stream.flush()
    real = os.dup(1)
    try:
        os.dup2(2, 1)
        with open(
            real, "w", encoding=stream.encoding, errors=stream.errors, buffering=1, closefd=False
        ) as kept:
            yield kept
    finally:
        os.dup2(real, 1)
        os.close(real)


def _is_descriptor_1(stream: TextIO) -> bool:
    try:
        os.fstat(2)
        return stream.fileno() == 1
    except (OSError, ValueError):
        return False


def answers() -> TextIO:
    """The stream that answers are printed to, whoever has been given standard output."""
    return _kept[-1] if _kept else sys.stdout


def document(value: Any) -> None:
    """Print one JSON document. A terminal gets ASCII only, so that no text of others acts."""
    stream = answers()
    ascii_only = stream.isatty() or not _utf8(stream)
    say(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=False))


def say(text: str = "") -> None:
    """Print one line of data."""
    print(text, file=answers())


def talk(text: str, end: str = "\n") -> None:
    """Say something to the person; never data. Where nobody can hear it, nothing happens."""
    with contextlib.suppress(OSError):
        print(without_secrets(text), end=end, file=sys.stderr, flush=True)  # noqa: T201


def warn(text: str) -> None:
    """Say what may be wrong, on one line."""
    talk(f"warning: {plain(text)}")


def columns(rows: Sequence[Sequence[object]]) -> None:
    """Print rows in aligned columns; on a terminal the last column is cut at its edge."""
    if not rows:
        return
    texts = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(texts[0]))]
    edge = shutil.get_terminal_size().columns if answers().isatty() else _WIDEST
    for row in texts:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        say(plain_cut(line.rstrip(), edge))


def plain_cut(line: str, edge: int) -> str:
    """A line cut at the terminal's edge, with an ellipsis."""
    return line if len(line) <= edge else line[: edge - 1] + "…"


def outline(value: Mapping[str, Any], depth: int = 0) -> None:
    """Print nested values, one name a line, tables indented; long text is wrapped."""
    indent = "  " * depth
    for name, part in value.items():
        head = f"{indent}{plain(name)}"
        if part is None or part in ("", [], {}):
            continue
        if isinstance(part, Mapping):
            say(f"{head}:")
            outline(part, depth + 1)
        elif isinstance(part, list) and part and isinstance(part[0], Mapping):
            for number, entry in enumerate(part, 1):
                say(f"{head} {number}:")
                outline(entry, depth + 1)
        else:
            _wrapped(f"{head}: ", indent, _shown(part))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(plain(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _wrapped(head: str, indent: str, text: str) -> None:
    """Print text after its name; paragraphs and long lines go below it."""
    width = min(100, shutil.get_terminal_size().columns)
    paragraphs = [plain(line) for line in text.splitlines() if line.strip()]
    if len(paragraphs) == 1 and len(head) + len(paragraphs[0]) <= width:
        say(head + paragraphs[0])
        return
    say(head.rstrip())
    inner = f"{indent}  "
    for paragraph in paragraphs:
        for line in textwrap.wrap(paragraph, max(20, width - len(inner))):
            say(inner + line)


def _utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"
