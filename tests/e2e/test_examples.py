"""The examples are run as a reader runs them, and hold what their docstrings say will come out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from agents.testkit import ConformanceError, check_protocol
from policies.protocols.common import TIE
from policies.records import Context, Decision, Deliberation
from tests.support.program import ROOT, environment, warroom

FOLDER = ROOT / "examples"
STUDIES = ("swap_a_persona", "compare_protocols", "bring_your_own")
SEATS = ("resource", "cost", "sustainability", "janitor")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@cache
def printed(name: str) -> str:
    """What a study prints, started from another folder than its own."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, str(FOLDER / f"{name}.py")],
            cwd=elsewhere,
            env=environment(Path(elsewhere)),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_short_and_says_its_question_its_method_and_what_to_expect(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    said = ast.get_docstring(ast.parse(text)) or ""
    for word in ("Question:", "Method:", "Expected:", f"python examples/{name}.py"):
        assert word in said


def test_the_swapped_persona_costs_reward_on_every_storm_but_one_and_pairing_shows_it() -> None:
    text = printed("swap_a_persona")
    rows = re.findall(r"^ +(\d) +(\S+) +([\d.]+) +([\d.]+) +([+-][\d.]+)$", text, re.M)
    assert [int(row[0]) for row in rows] == list(range(8))
    gaps = [float(row[4]) for row in rows]
    assert all(int(row[1]) <= 2 for row in rows)
    assert all(gap == pytest.approx(float(r[3]) - float(r[2])) for gap, r in zip(gaps, rows))  # noqa: B905
    assert max(gaps) == 0
    assert sum(gap == 0 for gap in gaps) == 1
    mean, low, high = map(
        float, re.search(r"mean difference (\S+), 95 % \[(\S+), (\S+)\]", text).groups()  # type: ignore[union-attr]
    )  # fmt: skip
    assert mean == pytest.approx(sum(gaps) / 8, abs=0.06)
    assert low < mean < high < 0
    assert "sign flip p = 0.016" in text
    paired, unpaired = map(float, re.search(r"error (\S+) paired, (\S+) un", text).groups())  # type: ignore[union-attr]
    assert unpaired > 2 * paired


def test_shapley_sums_to_the_worth_of_the_room_and_leave_one_out_misses_the_janitor() -> None:
    tables = printed("compare_protocols").split("\n\n")[:2]
    sums = []
    for table in tables:
        worth = float(re.search(r"is worth (\S+) reward", table).group(1))  # type: ignore[union-attr]
        rows = {
            row[0]: (float(row[1]), float(row[2]))
            for row in re.findall(
                r"^  (\w+) +([+-][\d.]+)(?: ± [\d.]+)? +([+-][\d.]+)", table, re.M
            )
        }
        assert tuple(rows) == (*SEATS, "sum")
        assert rows["sum"][0] == pytest.approx(worth, abs=0.11)
        assert sum(rows[seat][0] for seat in SEATS) == pytest.approx(worth, abs=0.3)
        assert rows["janitor"][0] > worth / 4
        assert rows["janitor"][1] < 5
        sums.append((worth, rows["sum"][1]))
    assert abs(sums[1][1]) < sums[1][0] / 4  # Borda: leave-one-out finds next to nothing


def test_ones_own_protocol_and_persona_conform_and_each_changes_the_room() -> None:
    text = printed("bring_your_own")
    assert text.startswith("protocol and persona conform\n")
    rows = [line.split() for line in text.splitlines()[3:]]
    assert [(row[0], row[1]) for row in rows] == [
        (protocol, seat)
        for protocol in ("weighted_score", "rotating_chair")
        for seat in ("cost", "night_owl")
    ]
    assert all(row[3] == "yes" for row in rows)
    assert [int(row[4]) > 0 for row in rows] == [False, True, True, True]
    assert [int(row[5]) > 0 for row in rows] == [False, True, False, True]
    assert [int(row[6]) > 0 for row in rows] == [False, False, True, True]


def test_the_command_in_the_docstring_plays_the_room_from_a_shell(tmp_path: Path) -> None:
    done = warroom(
        "run", "--scenario", "cloudedge/hard", "--steps", "4", "--store", "inprocess",
        "--protocol", "rotating_chair:RotatingChair",
        "--persona", f"cost={FOLDER / 'personas' / 'night_owl.toml'}", "--json",
        cwd=tmp_path, PYTHONPATH=str(FOLDER),
    )  # fmt: skip
    assert done.status == 0, done.err
    assert done.document["protocol"] == "rotating_chair"
    assert done.document["personas"]["cost"] == "night_owl"


class Partisan:
    """A chair who forgets what the kit is there for: it looks at no veto."""

    name, title, description = "partisan", "Best of the first seat", "Vetoes do not count."
    max_rounds, worlds = 0, ()

    def decide(self, context: Context) -> Deliberation:
        yield from ()
        feasible = [i for i, option in enumerate(context.candidates) if option.feasible]
        best = max(feasible, key=lambda place: context.utilities[0, place] + TIE)
        return Decision(context.candidates[best], self.name, True, "the first seat likes it")


def test_the_kit_that_passes_the_example_refuses_a_rule_that_overlooks_vetoes() -> None:
    check_protocol("borda")
    with pytest.raises(ConformanceError, match="partisan does not conform"):
        check_protocol(Partisan())  # type: ignore[arg-type]
