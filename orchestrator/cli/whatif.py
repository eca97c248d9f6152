"""``replay`` and ``counterfactual``: a recorded run again, the same or with one thing changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import options, printing
from orchestrator.console.commands import command
from orchestrator.console.text import plain
from world.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.study.change import Change
    from orchestrator.study.counterfactual import Counterfactual
    from orchestrator.study.divergence import Fork
    from orchestrator.study.recorded import Recorded
    from orchestrator.study.replay import Replayed

Run = Annotated[str, typer.Argument(metavar="RUN")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="STEP", help="First step that is decided again. [default: 1]"),
]
Full = Annotated[bool, typer.Option("--full", help="Print every step that differs.")]
_ROWS = 40


def replay(
    run: Run,
    from_: From = None,
    live: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="This seat answers anew; a new run is written."),
    ] = None,
    store: options.Store = None,
    out: options.Out = None,
    full: Full = False,
    as_json: options.Json = False,
) -> int:
    """Play a run again from its record alone, and hold every event against it.

    Models, people and other processes are not asked: their replies are in the record. What can be
    computed is computed again. Exit 1 names the first thing that is not as it was.
    """
    from orchestrator.study.change import Change
    from orchestrator.study.replay import replay as play_again

    step = _step(from_)
    recorded = _recorded(run, out)
    if live is not None:
        return _fork(recorded, Change("live", step, live), store, out, (full, as_json))
    with printing.answers_only():
        found = play_again(recorded, step)
        if as_json:
            printing.document(found.as_json())
        else:
            _tell_replay(found)
    return 0 if found.ok else 1


def counterfactual(
    run: Run,
    swap: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE=PERSONA", help="Another persona (name or path) at a seat."),
    ] = None,
    protocol: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another protocol decides.")
    ] = None,
    ballot: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP:ROLE=ACTION", help="At one step a seat wants one option most."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="A seat stays empty: no proposal, no ballot."),
    ] = None,
    from_: From = None,
    store: options.Store = None,
    out: options.Out = None,
    full: Full = False,
    as_json: options.Json = False,
) -> int:
    """Play a run again on the same noise with one thing changed, and compare the two paths.

    The new run is a branch of the old one's episode in the store, with a trace of its own.
    """
    from orchestrator.study.change import Change, parse_ballot, parse_swap

    # Lists, so that a second change is refused instead of taking the place of the first.
    named = {"--swap": swap, "--protocol": protocol, "--ballot": ballot, "--drop": drop}
    given = [(name, value) for name, values in named.items() for value in values or ()]
    if len(given) != 1:
        names = " and ".join(name for name, _ in given)
        raise ConfigError(
            f"{names} are given" if given else "nothing is changed",
            "a counterfactual changes one thing, so that the difference has one cause",
            f"Give one of {', '.join(named)}, once",
        )
    step = _step(from_)
    [(name, value)] = given
    if name == "--ballot":
        if from_ is not None:
            raise ConfigError(
                "--from does not go with --ballot", "the ballot names its step", "Leave --from out"
            )
        change = parse_ballot(value)
    elif name == "--swap":
        change = parse_swap(value, step)
    elif name == "--protocol":
        change = Change("protocol", step, "", value)
    else:
        change = Change("drop", step, value)
    return _fork(_recorded(run, out), change, store, out, (full, as_json))


def _step(text: str | None) -> int:
    if text is None:
        return 1
    if not (text.isdecimal() and 0 < int(text) < 10**9):
        raise ConfigError(
            f"--from is {plain(text, 40)!r}", "it is a step, 1 or more", "For example --from 7"
        )
    return int(text)


def _recorded(run: str, out: str | None) -> Recorded:
    from orchestrator.settings import load_settings
    from orchestrator.study.recorded import recorded

    return recorded(run, load_settings(options.given(out=out)).settings.out)


def _fork(
    run: Recorded,
    change: Change,
    store: str | None,
    out: str | None,
    shown: tuple[bool, bool],
) -> int:
    """Play the fork and print what came of it."""
    from orchestrator.session import StopFlag
    from orchestrator.settings import load_settings
    from orchestrator.stopping import EXIT_INTERRUPTED
    from orchestrator.study.counterfactual import counterfactual as play_fork

    resolved = load_settings(options.given(store=store, out=out))
    full, as_json = shown
    with printing.answers_only():
        found = play_fork(
            run,
            change,
            resolved.settings.out,
            resolved.named_store,
            resolved.store_settings(),
            stop=StopFlag(),
        )
        if as_json:
            printing.document(found.as_json())
        else:
            _tell_fork(found, full)
    return 0 if found.child.ending.complete else EXIT_INTERRUPTED


def _tell_replay(found: Replayed) -> None:
    asked = f"asked again: {', '.join(found.asked)}" if found.asked else "nobody was asked again"
    held = f"; from the record: {', '.join(found.held)}" if found.held else ""
    start = f"decided again from step {found.first}; " if found.first > 1 else ""
    if found.divergence is not None:
        printing.say(f"drift: {found.divergence.line()}")
        printing.say(f"       {found.steps} steps before it are as recorded ({asked}{held})")
        return
    if not found.complete:
        printing.say(
            f"incomplete: {found.steps} steps are as recorded, and there is no run_ended ({asked})"
        )
        return
    printing.say(f"ok: {found.steps} steps, sha {found.sha}")
    printing.say(f"    {start}{asked}{held}")


def _tell_fork(found: Counterfactual, full: bool) -> None:
    printing.columns(
        [
            ("parent", found.parent.run),
            ("child", found.child.run),
            ("change", found.change.words()),
            ("branch", f"{found.branch} of {found.parent.run}, left at step {found.change.step}"),
            ("noise", _noise(found)),
            ("first", found.divergence.line() if found.divergence else "nothing is different"),
        ]
    )
    printing.say()
    _tell_forks(found, full)
    _tell_metrics(found)
    printing.say()
    printing.talk(f"trace:  {plain(found.child.path)}")
    paths = (str(found.parent.path), str(found.child.path))
    printing.talk(f"next:   {command('trace', 'diff', *paths)}")


def _noise(found: Counterfactual) -> str:
    if found.streams_diverge_at:
        return (
            f"streams diverge at step {found.streams_diverge_at}: this world has one sequential "
            "generator; play cloudedge/* or aiops/* for the same storm"
        )
    if found.sequential:
        return "the same: both have drawn equally often from the world's one sequential generator"
    return "the same: a function of seed, step and entity, whatever anybody did"


def _tell_forks(found: Counterfactual, full: bool) -> None:
    total = max(found.parent.ending.last_step, found.child.ending.last_step)
    if not found.forks:
        printing.say(f"all {total} steps came out the same")
        printing.say()
        return
    shown = found.forks if full else found.forks[:_ROWS]
    rows: list[tuple[object, ...]] = [
        (
            "step",
            "parent did",
            "child did",
            "parent reward",
            "child reward",
        )
    ]
    before = 0
    for fork in shown:
        rows += _alike(before, fork.step)
        rows.append(_fork_row(fork))
        before = fork.step
    if len(shown) == len(found.forks):
        rows += _alike(before, total + 1)
    printing.columns(rows)
    if len(shown) < len(found.forks):
        printing.say(f"… {len(found.forks) - len(shown)} more steps differ: --full shows them")
    printing.say()


def _fork_row(fork: Fork) -> tuple[object, ...]:
    from orchestrator.trace.ids import shown_id

    same = fork.action_a == fork.action_b
    return (
        fork.step,
        shown_id(fork.action_a, 40),
        "(the same, elsewhere)" if same else shown_id(fork.action_b, 40),
        f"{fork.reward_a:.6g}",
        f"{fork.reward_b:.6g}",
    )


def _alike(before: int, step: int) -> list[tuple[object, ...]]:
    """A row for the steps in between that are alike, if there are any."""
    first, last = before + 1, step - 1
    if last < first:
        return []
    return [(f"{first}–{last}" if last > first else first, "alike", "", "", "")]


def _tell_metrics(found: Counterfactual) -> None:
    rows: list[tuple[object, ...]] = [
        ("", "end: parent", "child", "difference", "mean: parent", "child", "difference")
    ]
    for shift in found.shifts:
        ends, means = (shift.end_a, shift.end_b), (shift.mean_a, shift.mean_b)
        rows.append((shift.metric, *_cells(*ends), *_cells(*means)))
    rows.append(("reward", *_cells(*found.rewards), "", "", ""))
    rows.append(("score", *_cells(*found.scores), "", "", ""))
    words = ["yes" if value else "no" for value in found.successes]
    rows.append(("success", *words, "", "", "", ""))
    printing.columns(rows)
    printing.say("end: after the last step; mean: over all steps; difference: child − parent")


def _cells(a: float | None, b: float | None) -> tuple[str, str, str]:
    gap = "" if a is None or b is None else f"{b - a:+.6g}"
    return ("—" if a is None else f"{a:.6g}", "—" if b is None else f"{b:.6g}", gap)


def trace_diff(
    a: Annotated[str, typer.Argument(metavar="A")],
    b: Annotated[str, typer.Argument(metavar="B")],
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Say where two traces part, and why: the first event that differs, and which input did.

    Exit 0 when they are the same, else 1.
    """
    from orchestrator.settings import load_settings
    from orchestrator.trace.diff import diff, told
    from orchestrator.trace.runs import find_run

    folder = Path(load_settings(options.given(out=out)).settings.out)
    found = diff(find_run(a, folder), find_run(b, folder))
    if as_json:
        printing.document(found.as_json())
    else:
        for line in told(found, (a, b)):
            printing.say(line)
    return 0 if found.same else 1
