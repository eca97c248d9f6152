"""The command line: its commands, and what becomes of their errors.

Every error leaves here as one line on stderr (with ``--json`` also as a document on stdout) and
an exit status: 0 done, 1 a check failed or a run was stopped, 2 wrong usage or bad input, 3 a
needed service is missing. A traceback is shown only where WARROOM_DEBUG is set.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from orchestrator import logs, stopping
from orchestrator.cli import printing
from orchestrator.cli.words import COMMANDS, add_json, spell_out, take_verbose
from orchestrator.console.commands import typeable
from orchestrator.console.text import close_matches, plain, without_secrets
from orchestrator.later import LATER_OPTIONS, refusal
from orchestrator.version import PROGRAM, version
from world.errors import ConfigError, MissingExtraError, WarRoomError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Root of the parser's own errors; typer carries its parser under a private name."""


_REPORT = "Please report it, with the output of the same command under WARROOM_DEBUG=1"
_SETUP = "Run: make setup; then start it as .venv/bin/python run_warroom.py"
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
_OURS = frozenset({"orchestrator", "agents", "policies", "world"})


def build() -> typer.Typer:
    """The program's commands. Each one imports what it needs when it runs."""
    from orchestrator.cli import (
        doctor,
        imports,
        influence,
        lists,
        measuring,
        metrics,
        probe,
        report,
        run,
        runs,
        stats,
        sweep,
        traces,
        whatif,
    )

    app = _group("A cloud war room: personas propose, a protocol decides, the world answers.")
    app.callback(invoke_without_command=True)(_root)
    app.command("run")(run.run)
    _add(app, "runs", "List runs, or clean the store of finished ones.", runs.COMMANDS)
    _add(app, "scenarios", "List scenarios, or show one in full.", lists.SCENARIOS)
    _add(app, "personas", "List personas, show one in full, or check a file.", lists.PERSONAS)
    _add(app, "protocols", "List protocols, or show one in full.", lists.PROTOCOLS)
    app.command("worlds")(lists.worlds)
    _add(app, "trace", "Study one trace. RUN is a run id, `last`, or a path.", traces.COMMANDS)
    _add(
        app,
        "import",
        "Turn real bills, metrics, grids and demand into scenarios.",
        imports.COMMANDS,
    )
    app.command("replay")(whatif.replay)
    app.command("counterfactual")(whatif.counterfactual)
    app.command("metrics")(metrics.metrics)
    app.command("influence")(influence.influence)
    app.command("probe")(probe.probe)
    app.command("report")(report.report)
    app.command("tournament")(sweep.tournament)
    app.command("stats")(stats.stats)
    app.command("bench")(measuring.bench)
    app.command("doctor")(doctor.doctor)
    return app


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status."""
    _fill_descriptors()
    if sys.stdout is None:
        printing.talk("error: standard output is closed (nothing could be answered)")
        return 1
    _forgive_encoding()
    verbose, words = take_verbose(list(arguments))
    as_json = _asks_json(words)
    before: dict[int, Any] = {}
    try:
        words = add_json(words)
        as_json = _asks_json(words)
        meant = spell_out(words)
        before = _take_signals(meant[0])
        status = _dispatch(meant, verbose)
        sys.stdout.flush()
    except WarRoomError as error:
        return _fail(error, as_json)
    except ModuleNotFoundError as error:
        return _fail(_missing(error), as_json)
    except BrokenPipeError:
        _silence()
        return 1
    except KeyboardInterrupt:
        printing.talk("interrupted")
        return 1
    except OSError as error:
        if error.filename is None and error.errno in _UNWRITABLE:
            return _cannot_answer(error)
        if error.filename is None:
            return _internal(error, as_json)
        return _fail(_file_error(error), as_json)
    except Exception as error:
        return _internal(error, as_json)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status


def _asks_json(words: list[str]) -> bool:
    return "--json" in words[: words.index("--") if "--" in words else None]


def _dispatch(words: list[str], verbose: bool) -> int:
    command = typer.main.get_command(build())
    # The parser lists groups last; people read them in the order of the manual.
    order = {name: place for place, name in enumerate(COMMANDS)}
    subcommands = command.commands  # type: ignore[attr-defined]
    for name in sorted(subcommands, key=lambda name: order[name]):
        subcommands[name] = subcommands.pop(name)
    try:
        with command.make_context(PROGRAM, words) as context:
            logs.configure(verbose)
            status = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except UsageError as error:
        raise _usage_error(error, words) from error
    return status if isinstance(status, int) else 0


def _group(help_text: str) -> typer.Typer:
    return typer.Typer(
        help=help_text,
        add_completion=False,
        no_args_is_help=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def _add(app: typer.Typer, name: str, help_text: str, commands: printing.Commands) -> None:
    group = _group(help_text)
    for word, function in commands.items():
        group.command(word)(function)
    app.add_typer(group, name=name)


def _root(
    show_version: bool = typer.Option(False, "--version", help="Print the version."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log more. May stand anywhere."),
) -> None:
    del verbose  # Taken off before the parser sees it.
    if show_version:
        printing.say(f"cloud-war-room {version()}")
        raise typer.Exit


def _usage_error(error: Exception, words: list[str]) -> WarRoomError:
    """The parser's complaint in our own form, with near options where there are any."""
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "") or f"{PROGRAM} {words[0]}"
    option = str(getattr(error, "option_name", None) or "")
    if type(error).__name__ == "NoSuchOption":
        if option.lstrip("-") in LATER_OPTIONS:
            return refusal(option, LATER_OPTIONS[option.lstrip("-")])
        parameters = context.command.params if context else []
        known = [spelling for parameter in parameters for spelling in parameter.opts]
        return ConfigError(
            f"there is no option {plain(option, 80)!r}",
            "",
            f"{close_matches(option, known)}Options: {command} --help",
        )
    message = plain(error.format_message())  # type: ignore[attr-defined]
    if type(error).__name__ == "MissingParameter" and context:
        usage = plain(context.get_usage().removeprefix("Usage: "))
        return ConfigError(message, "", f"Type: {usage}")
    return ConfigError(message or "wrong usage", "", f"Help: {command} --help")


_LONGEST_ERROR = 3000
"""Most characters of an error line: a value that somebody sent in may be a megabyte."""


def _fail(error: WarRoomError, as_json: bool) -> int:
    error.fix = typeable(error.fix)
    printing.talk(f"error: {plain(error.line(), _LONGEST_ERROR)}")
    if as_json:
        parts = {key: without_secrets(plain(text)) for key, text in error.as_dict().items()}
        _answer({"error": parts})
    if os.environ.get("WARROOM_DEBUG"):
        _traceback(error)
    return error.exit_code


def _internal(error: BaseException, as_json: bool) -> int:
    what = without_secrets(plain(f"internal error: {type(error).__name__}: {error}", 400))
    printing.talk(f"error: {what}. {_REPORT}")
    if as_json:
        _answer({"error": {"what": what, "why": "this is a fault of the program", "fix": _REPORT}})
    if os.environ.get("WARROOM_DEBUG"):
        _traceback(error)
    return 1


def _answer(document: dict[str, object]) -> None:
    try:
        printing.document(document)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
    except OSError as error:
        _cannot_answer(error)


def _traceback(error: BaseException) -> None:
    import traceback

    printing.talk("".join(traceback.format_exception(error)))


def _file_error(error: OSError) -> ConfigError:
    return ConfigError(
        f"{error.filename}: {error.strerror}",
        "the file or folder cannot be used",
        "Correct its path or permissions",
    )


def _missing(error: ModuleNotFoundError) -> WarRoomError:
    """A package that this interpreter lacks; a module of our own that is not there is a fault."""
    package = (error.name or "").partition(".")[0]
    if package in _OURS or not package:
        return WarRoomError(f"internal error: {error}", "this is a fault of the program", _REPORT)
    return MissingExtraError(f"{plain(package)} is not installed", sys.executable, _SETUP)


def _take_signals(command: str) -> dict[int, Any]:
    """Let SIGTERM end a command as Ctrl-C does; answers the handlers that were there.

    `run` has handlers of its own. Until they are in place, the entry's end the process at once:
    an exception that is raised while modules are being loaded may be lost there.
    """
    if command == "run" and signal.getsignal(signal.SIGTERM) is stopping.end_at_once:
        return {}
    return {
        signal.SIGTERM: signal.signal(signal.SIGTERM, _terminate),
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
    }


def _terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends a command as Ctrl-C does."""
    raise KeyboardInterrupt


def _cannot_answer(error: OSError) -> int:
    """Say in one line that nothing more can be written (a full disk), and end quietly."""
    printing.talk(f"error: the answer cannot be written ({error.strerror or error})")
    _silence()
    return 1


def _fill_descriptors() -> None:
    """Open what was closed, so that no file of ours becomes standard output or error."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _silence() -> None:
    from orchestrator.console.watcher import silence

    silence(sys.stdout)


def _forgive_encoding() -> None:
    """A terminal that cannot show a character shows its code instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")
