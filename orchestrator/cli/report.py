"""``report``: one run, or two side by side, as a page that needs no network, and as pictures."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, printing
from world.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.report.gather import Account

Run = Annotated[str, typer.Argument(metavar="RUN")]
Other = Annotated[str | None, typer.Argument(metavar="[RUN2]", help="A second run to compare.")]
HtmlFile = Annotated[
    str | None,
    typer.Option(
        "--html", metavar="FILE", help="The page. [default: report.html in the run's folder]"
    ),
]
PngFile = Annotated[
    str | None, typer.Option("--png", metavar="FILE", help="The figures as one picture.")
]
SvgFile = Annotated[
    str | None, typer.Option("--svg", metavar="FILE", help="The figures as one drawing.")
]


def report(
    run: Run,
    run2: Other = None,
    html: HtmlFile = None,
    png: PngFile = None,
    svg: SvgFile = None,
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Write a self-contained report of a run, or of two side by side."""
    from orchestrator.report.gather import gather
    from orchestrator.settings import load_settings
    from orchestrator.trace.runs import find_run

    settings = load_settings(options.given(out=out)).settings
    paths = [find_run(name, Path(settings.out)) for name in (run, run2) if name is not None]
    files = {
        kind: Path(name) for kind, name in (("html", html), ("png", png), ("svg", svg)) if name
    }
    if not files:
        files = {"html": paths[0].with_name(_default_name(paths))}
    for kind, target in files.items():
        _check_target(target, kind, paths)
    accounts = [gather(path) for path in paths]
    written = {
        kind: _write(target, content)
        for (kind, target), content in zip(
            files.items(), _contents(list(files), accounts), strict=True
        )
    }
    _tell(accounts, files, written, as_json)
    return 0


def _default_name(paths: list[Path]) -> str:
    """The page's name beside the trace; that of a comparison names the second run."""
    if len(paths) == 1:
        return "report.html"
    other = paths[1].parent.name if paths[1].name == "trace.jsonl" else paths[1].stem
    return f"report-against-{other}.html"


def _contents(kinds: list[str], accounts: list[Account]) -> list[bytes]:
    """The bytes of each file; everything is made before anything is written."""
    found: dict[str, bytes] = {}
    if "html" in kinds:
        found["html"] = _page(accounts).encode()
    if "svg" in kinds or "png" in kinds:
        from orchestrator.report.sheet import png, sheet

        drawing = sheet(accounts)
        found["svg"] = drawing.encode()
        if "png" in kinds:
            found["png"] = png(drawing)
    return [found[kind] for kind in kinds]


def _page(accounts: list[Account]) -> str:
    if len(accounts) == 1:
        from orchestrator.report.single import report as one_run

        return one_run(accounts[0])
    from orchestrator.report.comparison import comparison

    return comparison(accounts[0], accounts[1])


def _check_target(target: Path, kind: str, traces: list[Path]) -> None:
    """Refuse a place in which no file can be written, or where a trace lies."""
    from orchestrator.console.text import plain

    shown = plain(target)
    if target.is_dir():
        raise ConfigError(
            f"--{kind} {shown} is a folder",
            "the report is one file",
            f"Name the file: --{kind} {shlex.quote(plain(target / f'report.{kind}'))}",
        )
    if not target.parent.is_dir():
        raise ConfigError(
            f"--{kind} {shown} cannot be written",
            f"there is no folder {plain(target.parent)}",
            f"Make it first: mkdir -p {shlex.quote(plain(target.parent))}",
        )
    if target.exists() and any(target.samefile(trace) for trace in traces):
        raise ConfigError(
            f"--{kind} {shown} is the trace itself",
            "a report never replaces what it is made from",
            f"Name another file: --{kind} report.{kind}",
        )


def _write(target: Path, content: bytes) -> int:
    """Write a file whole, or not at all; answers its size in bytes."""
    draft = target.with_name(f".{target.name}.draft")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return len(content)


def _tell(
    accounts: list[Account], files: dict[str, Path], sizes: dict[str, int], as_json: bool
) -> None:
    from orchestrator.console.text import plain
    from orchestrator.report.wording import size_words

    if as_json:
        printing.document(
            {
                "runs": [_described(account) for account in accounts],
                "files": {kind: str(path) for kind, path in files.items()},
                "bytes": sizes,
            }
        )
        return
    for kind, path in files.items():
        printing.say(f"{kind + ':':6}{plain(path)} ({size_words(sizes[kind])})")
    for account in accounts:
        steps, full = len(account.beats), len(account.scenes)
        if full < steps:
            printing.talk(
                f"{plain(account.run)}: {full} of {steps:,} steps are shown in full;"
                f" the others stay in the trace"
            )


def _described(account: Account) -> dict[str, Any]:
    return {
        "run": account.run,
        "trace": str(account.path),
        "trace_sha": account.sha,
        "steps": len(account.beats),
        "steps_in_full": len(account.scenes),
        "complete": account.ending.complete,
    }
