"""``influence``: who moved the outcome of a run, and who had power over its decisions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import options, printing
from orchestrator.console.terminal import draws
from orchestrator.console.text import close_matches, plain
from world.errors import ConfigError, WarRoomError

if TYPE_CHECKING:
    from orchestrator.study.influence.account import Failure, Influence, Question
    from orchestrator.study.recorded import Recorded

Runs = Annotated[list[str], typer.Argument(metavar="RUN...")]
Absent = Annotated[
    str,
    typer.Option(
        metavar="full|ballot",
        help="What an absent seat loses: proposals and ballot, or its ballot alone.",
    ),
]
Value = Annotated[
    str,
    typer.Option(
        metavar="reward|score", help="What a coalition is worth: sum of rewards, or score."
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(metavar="A:B", help="Play the room of RUN anew on seeds A to B-1; lists too."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=1024, help="Processes.")]
Orders = Annotated[
    int,
    typer.Option(
        min=2,
        max=10_000,
        metavar="M",
        help="Orders of arrival per seed, in rooms of more than 7 seats.",
    ),
]
Live = Annotated[
    bool,
    typer.Option("--live", help="Ask models and other processes anew in every coalition."),
]
_DICTATOR = {"hidden": "HIDDEN DICTATOR", "open": "commands, by its powers", "": ""}
_RULES_SHOWN = 5


def influence(
    runs: Runs,
    absent: Absent = "full",
    value: Value = "reward",
    seeds: Seeds = None,
    jobs: Jobs = 2,
    orders: Orders = 32,
    live: Live = False,
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Who moved the outcome: Shapley, leave-one-out, pivotality, Banzhaf, conformance, lies.

    Several runs must be of one room on different seeds. Exit 1 where one could not be looked at.
    """
    from orchestrator.settings import load_settings
    from orchestrator.study.influence.account import (
        document,
        influence_of_runs,
        influence_over_seeds,
    )

    question = _question(absent, value, orders, live, jobs)
    folder = load_settings(options.given(out=out)).settings.out
    with printing.answers_only():
        if seeds is None:
            found = influence_of_runs([_read(run, folder) for run in runs], question, _Progress())
        else:
            wanted = _seeds(seeds, runs)
            spec = _readable(_read(runs[0], folder)).rerun_spec()
            found = influence_over_seeds(spec, wanted, question, _Progress())
        for failure in found.failures:
            printing.talk(f"error: {plain(failure.what)}: {plain(failure.error.line())}")
        if as_json:
            printing.document(document(found))
        else:
            _tell(found)
    return 1 if found.failures else 0


def _question(absent: str, value: str, orders: int, live: bool, jobs: int) -> Question:
    from orchestrator.study.influence.account import VALUES, Question
    from orchestrator.study.influence.coalitions import ABSENT

    how = next((known for known in ABSENT if known == absent), None)
    what = next((known for known in VALUES if known == value), None)
    if how is None:
        raise _not_one_of("--absent", absent, ABSENT)
    if what is None:
        raise _not_one_of("--value", value, VALUES)
    return Question(how, what, orders, True, live, jobs)


def _not_one_of(option: str, given: str, known: tuple[str, ...]) -> ConfigError:
    near = close_matches(given, known)
    return ConfigError(
        f"{option} is {plain(given, 40)!r}", "", f"{near}It is one of {', '.join(known)}"
    )


def _seeds(text: str, runs: list[str]) -> tuple[int, ...]:
    from orchestrator.study.tournament import seeds_of

    if len(runs) > 1:
        raise ConfigError(
            f"--seeds goes with one RUN, {len(runs)} are named",
            "the room of that run is played on these seeds",
            "Name one run, or leave --seeds out",
        )
    return seeds_of(text)


def _read(run: str, folder: str) -> Recorded | Failure:
    from orchestrator.study.influence.account import Failure
    from orchestrator.study.recorded import recorded

    try:
        return recorded(run, Path(folder))
    except WarRoomError as error:
        return Failure(run, error)


def _readable(run: Recorded | Failure) -> Recorded:
    from orchestrator.study.influence.account import Failure

    if isinstance(run, Failure):
        raise run.error
    return run


class _Progress:
    """Episodes done, on stderr: in place on a terminal, every tenth of the way elsewhere."""

    def __init__(self) -> None:
        self.in_place = draws(sys.stderr)
        self.told = 0

    def __call__(self, done: int, total: int) -> None:
        text = f"{done}/{total} coalition episodes"
        if self.in_place:
            printing.talk(f"\r{text}", end="\n" if done == total else "")
        elif total >= 100 and done * 10 // total > self.told:
            self.told = done * 10 // total
            printing.talk(text)


def _tell(found: Influence) -> None:
    from orchestrator.study.influence.account import document

    data = document(found)
    _tell_head(found, data)
    printing.say()
    _tell_seats(found, data)
    printing.say()
    _tell_conformance(data)
    printing.say()
    for line in _notes(found, data):
        printing.say(line)


def _tell_head(found: Influence, data: dict[str, Any]) -> None:
    seeds = data["seeds"]
    shown = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    printing.say(
        f"{plain(data['scenario'])}, {plain(data['protocol'])}, {shown},"
        f" {data['decisions']} decisions"
    )
    if found.played:
        printing.say(
            f"{data['value']}: full room {_number(data['v_all'])},"
            f" empty room {_number(data['v_none'])}"
        )
    overrides, cascade = data["overrides"], data["cascade"]
    printing.say(
        f"overridden: {_percent(overrides['rate'])}{_rules(overrides['by_rule'])};"
        f" decided by another rule: {_percent(cascade['share'])}{_rules(cascade['by_rule'])}"
    )
    if data["manipulable"] is not None:
        printing.say(f"one liar could gain: {_percent(data['manipulable'])} of decisions")


def _rules(shares: dict[str, float]) -> str:
    largest = sorted(shares.items(), key=lambda pair: -pair[1])[:_RULES_SHOWN]
    if not largest:
        return ""
    return f" ({', '.join(f'{plain(rule)} {100 * share:.1f} %' for rule, share in largest)})"


def _tell_seats(found: Influence, data: dict[str, Any]) -> None:
    unit = data["value"]
    measures = ("shapley", "leave_one_out", "pivotality", "banzhaf", "manipulability")
    head = (
        "seat",
        f"Shapley ({unit})",
        f"leave-one-out ({unit})",
        "pivotal (%)",
        "Banzhaf (%)",
        "gains by a lie (%)",
    )
    shares = frozenset(measures[2:])
    printing.columns(
        [head]
        + [
            (seat, *(_amount(data[name], seat, 100 if name in shares else 1) for name in measures))
            for seat in found.seats
        ]
    )


def _tell_conformance(data: dict[str, Any]) -> None:
    exact, contained = data["conformance"]["exact"], data["conformance"]["contained"]
    rows: list[tuple[str, ...]] = [
        (
            "seat",
            "its proposal was done (%)",
            "random ballot (%)",
            "above (%)",
            "in a composite (%)",
            "above (%)",
            "",
        )
    ]
    for seat, row in exact.items():
        other = contained[seat]
        rows.append(
            (
                seat,
                f"{100 * row['share']:.1f}",
                f"{100 * row['random_ballot']:.1f}",
                _signed(100 * row["excess"]),
                f"{100 * other['share']:.1f}",
                _signed(100 * other["excess"]),
                _DICTATOR[row["dictator"] or other["dictator"]],
            )
        )
    printing.columns(rows)


def _notes(found: Influence, data: dict[str, Any]) -> list[str]:
    n = len(data["seeds"])
    absent = {
        "full": "an absent seat neither proposes nor votes",
        "ballot": "an absent seat proposes and has no vote",
    }[data["absent"]]
    lines = []
    if found.played:
        how = (
            f"all {2 ** len(found.seats)} coalitions"
            if found.exact
            else (f"{found.question.orders} orders of arrival per seed")
        )
        lines.append(f"Shapley: {how}, {absent}, each on the noise of its seed")
    else:
        when = "never" if found.has_people else "only with --live"
        lines.append(
            f"coalitions were not played: {', '.join(map(plain, found.unasked))} cannot simply be"
            f" asked again ({when})"
        )
    spread = f"± standard error over {n} seeds" if n > 1 else "n = 1 seed: no standard error"
    if n == 1 and found.played and not found.exact:
        spread = "± standard error of the sampled orders; n = 1 seed"
    lines.append(
        "pivotal, Banzhaf, lies: each decision again with options and ballots as they were;"
        f" {spread}"
    )
    if data["noise"] == "sequential":
        lines.append(
            "noise: sequential; coalitions meet the same noise only while they draw equally often"
        )
    if data["stand_ins"]:
        lines.append(f"stand-ins: {data['stand_ins']} answers that a rule gave for who cannot be")
        lines[-1] += " asked again"
    return lines


def _amount(table: dict[str, Any] | None, seat: str, times: float = 1.0) -> str:
    if table is None:
        return "-"
    value, error = table[seat]["value"], table[seat]["se"]
    if value is None:
        return "-"
    text = _number(times * value)
    return text if error is None else f"{text} ± {_number(times * error)}"


def _percent(cell: dict[str, Any]) -> str:
    if cell["value"] is None:
        return "-"
    text = f"{100 * cell['value']:.1f} %"
    return text if cell["se"] is None else f"{text} ± {100 * cell['se']:.1f}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _signed(value: float) -> str:
    return f"{value:+.1f}"
