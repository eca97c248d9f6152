"""The guide to studies, `docs/study.md`: its commands typed, and what they print kept in it.

``make study`` types every command of the page again, in an empty folder, and writes what it
printed below it; the page's figures come from the same commands. A fenced block with a file name
is a file of the reader; a ``console`` block holds commands after ``$``. A comment in front of a
block says more of it:

- ``<!-- heavy CODE -->``: it takes too long for the test suite. CODE is a digest of commands and
  output, written by ``make study``, so that neither is changed by hand.
- ``<!-- needs MODULE -->``: its last line needs a package that is not always there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.program import ROOT, environment

PAGE = ROOT / "docs" / "study.md"
FIGURES = ROOT / "docs" / "figures"
REGENERATE = "make study"
_LIMIT_S = 900
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[a-z][^\n]*) -->\n)?^```(?P<language>\w+) ?(?P<name>\S*)\n"
    r"(?P<text>.*?)^```$",
    re.S | re.M,
)
_PROGRESS = re.compile(r"\d+/\d+ episodes.*")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_RUN_ID = re.compile(r"\.[0-9a-f]{8}\.(\d+)\b")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command and what it printed, standard error included.

    Attributes:
        command: What is typed.
        lines: What it prints.
    """

    command: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of the page.

    Attributes:
        language: ``console``, ``toml`` …
        name: Name of the file that it is; "" of others.
        text: What is between the fences.
        heavy: Whether it is left out of the test suite.
        code: The digest that stands in front of a heavy block.
        needs: Module without which it is left out; "" where there is none.
        start: Where it begins in the page.
        end: Where it ends.
    """

    language: str
    name: str
    text: str
    heavy: bool
    code: str
    needs: str
    start: int
    end: int

    @property
    def typed(self) -> tuple[Typed, ...]:
        """Its commands, if it is a console block."""
        found: list[Typed] = []
        for line in self.text.splitlines() if self.language == "console" else ():
            if line.startswith("$ "):
                found.append(Typed(line[2:]))
            elif found:
                found[-1] = replace(found[-1], lines=(*found[-1].lines, line))
        return tuple(found)

    @property
    def possible(self) -> bool:
        """Whether what it needs is installed."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None


def blocks(page: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found = []
    for match in _BLOCK.finditer(page):
        words = (match["note"] or "").split()
        heavy = "heavy" in words
        after = words[words.index("heavy") + 1 :] if heavy else []
        needs = words[words.index("needs") + 1] if "needs" in words else ""
        code = after[0] if after and after[0] != "needs" else ""
        found.append(
            Block(
                match["language"], match["name"], match["text"], heavy, code, needs, *match.span()
            )
        )
    return found


def code_of(text: str) -> str:
    """The digest of a heavy block: its commands and what they printed."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def comparable(lines: tuple[str, ...]) -> list[str]:
    """What must come out alike everywhere: hashes hang on the processor, digests on texts."""
    return [_RUN_ID.sub(r".#.\1", _DIGEST.sub("#", line)) for line in lines]


class Desk:
    """An empty folder in which a reader stands, with ``python run_warroom.py`` at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        python = folder / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', "utf-8")
        python.chmod(0o755)
        (folder / "run_warroom.py").symlink_to(ROOT / "run_warroom.py")

    def write(self, block: Block) -> None:
        """Write a file of the reader."""
        (self.folder / block.name).write_text(block.text, encoding="utf-8")

    def type(self, command: str) -> Typed:
        """Type a command; fails where it fails."""
        variables = environment(
            self.folder,
            PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}",
            PYTHONUNBUFFERED="1",
            PYTHONPATH=str(self.folder),
            COLUMNS="100",
        )
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0 or "Traceback" in done.stdout:
            raise AssertionError(f"$ {command}\nstatus {done.returncode}\n{done.stdout}")
        said = done.stdout.replace(f"{sys.executable} {self.folder}/", "python ")
        said = said.replace(f"{sys.executable} run_warroom.py", "python run_warroom.py")
        lines = [line.rstrip() for line in said.rstrip("\n").splitlines()]
        return Typed(command, tuple(line for line in lines if not _PROGRESS.fullmatch(line)))


def rewritten(page: str, desk: Desk) -> str:
    """The page with everything that its commands print now.

    A block that needs what is not installed is kept as it is.
    """
    parts: list[str] = []
    end = 0
    for block in blocks(page):
        if block.name:
            desk.write(block)
        if block.language != "console" or not block.possible:
            continue
        lines = []
        for typed in block.typed:
            print("$", typed.command, file=sys.stderr, flush=True)
            lines += [f"$ {typed.command}", *desk.type(typed.command).lines]
        text = "".join(f"{line}\n" for line in lines)
        notes = [f"heavy {code_of(text)}"] if block.heavy else []
        notes += [f"needs {block.needs}"] if block.needs else []
        note = f"<!-- {' '.join(notes)} -->\n" if notes else ""
        parts += [page[end : block.start], f"{note}```console\n{text}```"]
        end = block.end
    return "".join([*parts, page[end:]])


def main() -> None:
    """Type the whole page again and write it, figures too."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        page = rewritten(PAGE.read_text(encoding="utf-8"), desk)
        FIGURES.mkdir(exist_ok=True)
        for figure in sorted(Path(folder).glob("*.svg")):
            shutil.copy(figure, FIGURES / figure.name)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
