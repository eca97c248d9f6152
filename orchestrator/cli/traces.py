"""``trace show``, ``verify``, ``diff``, ``export``: study one trace, or two."""

from __future__ import annotations

import shlex
import shutil
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from orchestrator.cli import options, printing
from orchestrator.cli.whatif import trace_diff
from world.errors import ConfigError

Run = Annotated[str, typer.Argument(metavar="RUN")]
_FORMATS = ("jsonl", "csv", "parquet", "inspect")
_SUFFIXES = {"inspect": "eval"}
_BINARY = frozenset({"parquet", "inspect"})


def show(
    run: Run,
    step: Annotated[
        str | None, typer.Option(metavar="A:B", help="Only these steps, both ends included.")
    ] = None,
    persona: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this seat or persona said.")
    ] = None,
    overridden: Annotated[
        bool, typer.Option("--overridden", help="Only overridden steps.")
    ] = False,
    vetoed: Annotated[bool, typer.Option("--vetoed", help="Only steps with a veto.")] = False,
    crisis: Annotated[bool, typer.Option("--crisis", help="Only steps in a crisis.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Nothing is shortened.")] = False,
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Tell a run as a story: seen, proposed, vetoed, decided, what came of it."""
    from orchestrator.trace.filters import Filters, step_range
    from orchestrator.trace.show import plain, step_documents, story

    first, last = step_range(step) if step is not None else (None, None)
    filters = Filters(overridden, vetoed, crisis, persona or "", first, last)
    path = _find(run, out)
    if as_json:
        steps = list(step_documents(path, filters))
        printing.document(steps)
        if not steps:
            printing.talk(filters.no_match())
        return 0
    width = shutil.get_terminal_size((100, 24)).columns
    found: list[int] = []
    lines = story(path, filters, width=min(width, 140), full=full, found=found)
    if sys.stdout.isatty():
        from rich.console import Console

        from orchestrator.trace.show import rich_text

        console = Console()
        for line in lines:
            console.print(rich_text(line))
    else:
        for line in lines:
            printing.say(plain(line))
    if not found and filters != Filters():
        printing.talk(filters.no_match())
    return 0


def verify(run: Run, out: options.Out = None, as_json: options.Json = False) -> int:
    """Check that a trace is whole, unchanged and complete; names the first bad line."""
    from orchestrator.trace.verify import verify as check

    verdict = check(_find(run, out))
    if as_json:
        printing.document(verdict.as_json())
    else:
        printing.say(verdict.line())
    return verdict.exit_code


def export(
    run: Run,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="jsonl|csv|parquet|inspect",
            help="Lines as recorded, a table, or a log of Inspect.",
        ),
    ] = "jsonl",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write here. [default: -]")
    ] = None,
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Write a trace as verified JSON lines, as a table, or as a log for Inspect's viewer.

    The table (CSV or Parquet) has a row per step and seat.
    """
    from orchestrator.console.text import close_matches, plain

    if format_ not in _FORMATS:
        raise ConfigError(
            f"--format is {plain(format_, 40)!r}",
            f"it must be {' or '.join(_FORMATS)}",
            close_matches(format_, _FORMATS).rstrip(),
        )
    path = _find(run, out)
    if output in {None, "-"}:
        if as_json:
            raise ConfigError(
                "--json cannot be given with an export to stdout",
                "stdout carries the export itself",
                "Write it to a file with -o FILE, or leave --json out",
            )
        if format_ in _BINARY and printing.answers().isatty():
            raise ConfigError(
                f"--format {format_} is not for a terminal",
                "it is binary",
                f"Write it to a file: -o trace.{_SUFFIXES.get(format_, format_)}",
            )
        _check(path)
        _write(path, format_, printing.answers().buffer)
        return 0
    target = Path(str(output))
    _check_target(target, format_)
    draft = target.with_name(f".{target.name}.draft")
    try:
        with draft.open("wb") as file:
            count = _write(path, format_, file)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    if as_json:
        unit = "rows" if format_ in {"csv", "parquet"} else "events"
        printing.document({"format": format_, "trace": str(path), "output": output, unit: count})
    else:
        printing.talk(f"wrote {plain(output)}")
    return 0


def _check(path: Path) -> None:
    """Read a trace to its end before anything of it goes to standard output.

    What was piped on cannot be taken back. A trace that its run left unfinished is no fault.

    Raises:
        TraceError: A line was changed, or the file ends within one.
    """
    from orchestrator.trace.reader import read

    for _ in read(path):
        pass


def _check_target(target: Path, format_: str) -> None:
    """Refuse a place in which no file can be written, in words about that place."""
    from orchestrator.console.text import plain

    if target.is_dir():
        raise ConfigError(
            f"-o {plain(target)} is a folder",
            "the export is one file",
            f"Name the file: -o {plain(target / f'trace.{_SUFFIXES.get(format_, format_)}')}",
        )
    if not target.parent.is_dir():
        raise ConfigError(
            f"-o {plain(target)} cannot be written",
            f"there is no folder {plain(target.parent)}",
            f"Make it first: mkdir -p {shlex.quote(plain(target.parent))}",
        )


def _write(path: Path, format_: str, file: BinaryIO) -> int:
    """Write the export; a trace that turns out to be edited ends it with an error."""
    from orchestrator.trace.export import export_csv, export_jsonl

    if format_ == "jsonl":
        count = export_jsonl(path, file)
    elif format_ == "parquet":
        from orchestrator.trace.parquet import export_parquet

        count = export_parquet(path, file)
    elif format_ == "inspect":
        from orchestrator.trace.inspect_log import export_inspect

        count = export_inspect(path, file)
    else:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        count = export_csv(path, text)
        text.detach()
    file.flush()
    return count


def _find(run: str, out: str | None) -> Path:
    from orchestrator.settings import load_settings
    from orchestrator.trace.runs import find_run

    settings = load_settings(options.given(out=out)).settings
    return find_run(run, Path(settings.out))


COMMANDS: printing.Commands = {
    "show": show,
    "verify": verify,
    "diff": trace_diff,
    "export": export,
}
