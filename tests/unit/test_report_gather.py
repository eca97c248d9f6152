"""What a report reads of a trace, and what its figures make of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.report.bargaining import concession_figure, pareto_figure, utility_figure
from orchestrator.report.comparison import first_difference
from orchestrator.report.figures import metric_figure, timeline_figure
from orchestrator.report.gather import EVEN_SCENES, NOTABLE_SCENES, Account, gather
from orchestrator.report.single import report
from orchestrator.report.wording import figure, kinds, plan_words
from orchestrator.trace.events import Event
from tests.support.traces import (
    TARGETS,
    commits,
    run_ended,
    run_started,
    step_events,
    write_trace,
)
from world.errors import TraceError

pytestmark = pytest.mark.unit


def long_run(path: Path, steps: int, crises: set[int], overridden: set[int]) -> Account:
    def batches() -> Iterator[list[Event]]:
        yield [run_started(steps)]
        for step in range(1, steps + 1):
            over = "scale_down" if step in overridden else ""
            yield list(step_events(step, crisis=step in crises, overridden_from=over))
        yield [run_ended(steps)]

    return gather(write_trace(path, batches()))


def test_a_short_run_is_read_in_full_with_its_metrics_targets_and_ending(tmp_path: Path) -> None:
    account = gather(write_trace(tmp_path / "t.jsonl", commits(5)))
    assert [beat.step for beat in account.beats] == [1, 2, 3, 4, 5]
    assert sorted(account.scenes) == [1, 2, 3, 4, 5]
    assert account.targets == TARGETS
    assert account.opening["latency_ms"] == pytest.approx(190 - 10 / 3)
    assert account.metrics["carbon_index"] == [401.5 - step for step in range(2, 7)]
    assert account.reward_total == sum(-18.0 + step for step in range(1, 6))
    assert (account.score, account.ending.complete, account.stride) == (0.412, True, 1)
    assert account.summary.decisions == 5
    assert account.events == 2 + 5 * 9


def test_a_metric_that_appears_late_was_unknown_before(tmp_path: Path) -> None:
    def batches() -> Iterator[list[Event]]:
        yield [run_started(2)]
        yield list(step_events(1))
        later = list(step_events(2))
        place = next(at for at, e in enumerate(later) if e.type == "applied")
        data = dict(later[place].data)
        later[place] = replace(later[place], data={**data, "metrics": {"waste_usd": 2.0}})
        yield later

    account = gather(write_trace(tmp_path / "t.jsonl", batches()))
    assert math.isnan(account.metrics["waste_usd"][0])
    assert account.metrics["waste_usd"][1] == 2.0
    assert math.isnan(account.metrics["latency_ms"][1])
    assert "report" in report(account)


def test_a_long_run_is_read_at_even_distances_and_where_something_happened(
    tmp_path: Path,
) -> None:
    odd = {77, 401, 838}
    account = long_run(tmp_path / "t.jsonl", 1000, set(), odd)
    assert account.stride == math.ceil(1000 / EVEN_SCENES)
    even = set(range(1, 1001, account.stride))
    assert even | odd <= set(account.scenes)
    assert len(account.scenes) <= len(even) + NOTABLE_SCENES
    assert account.summary.decisions == len(even)


def test_a_run_full_of_events_still_has_room_for_those_near_its_end(tmp_path: Path) -> None:
    account = long_run(tmp_path / "t.jsonl", 2400, set(range(2, 2400, 2)), set())
    extra = sorted(step for step, scene in account.scenes.items() if not scene.even)
    assert len(extra) <= NOTABLE_SCENES + 1
    assert extra[-1] > 2200


def test_a_trace_that_ends_within_a_line_is_no_report(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(3))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TraceError, match="ends within line"):
        gather(path)


def test_what_calls_cost_is_read_from_beside_the_trace(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(2))
    used = {"calls": 1, "tokens_in": 1500, "tokens_out": 40, "usd": 0.002, "latency_ms": 9.0}
    total = {**used, "calls": 3, "tokens_in": 4500}
    lines = [{"step": 1, "ms": {"propose": 12.5}, "usage": {"cost": used}},
             {"step": 2, "ms": {"propose": 7.5}, "usage": {"cost": total}}]  # fmt: skip
    path.with_name("timings.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    account = gather(path)
    assert account.summary.seats["cost"].cost.calls == 3
    text = report(account)
    assert "4,500" in text
    assert "tokens in" in text
    path.with_name("timings.jsonl").unlink()
    assert "The trace stands alone" in report(gather(path))


def test_points_that_miss_a_target_are_drawn_as_such_and_others_not(tmp_path: Path) -> None:
    account = gather(write_trace(tmp_path / "t.jsonl", commits(6)))
    marks = metric_figure((account,), 1000).marks()
    missed = re.findall(r'class="pt out" d="([^"]*)"', marks)
    everything = [v for name in TARGETS for v in (account.opening[name], *account.metrics[name])]
    bounds = [TARGETS[name] for name in TARGETS for _ in range(7)]
    expected = sum(value >= bound for value, bound in zip(everything, bounds, strict=True))
    assert sum(path.count("h0") for path in missed) == expected


def test_each_run_of_a_comparison_is_held_against_its_own_target(tmp_path: Path) -> None:
    one = gather(write_trace(tmp_path / "a.jsonl", commits(2)))
    other = gather(write_trace(tmp_path / "b.jsonl", commits(2)))
    other.targets["latency_ms"] = 1000.0
    marks = metric_figure((one, other), 1000).marks()
    assert "target A &lt; 150, B &lt; 1,000" in marks
    del one.metrics["latency_ms"]
    alone = metric_figure((one, other), 1000).marks()
    panel = alone[alone.index("latency, ms") :].partition("reward of the step")[0]
    assert 'class="run r1"' in panel
    assert 'class="run r0"' not in panel
    assert 'class="pt out"' not in panel


def test_narrow_steps_are_shaded_by_how_many_of_them_are_in_crisis(tmp_path: Path) -> None:
    few = long_run(tmp_path / "few.jsonl", 2400, set(range(1, 2400, 12)), set())
    styles = set(re.findall(r'class="(cr[^"]*)"', metric_figure((few,), 1040).marks()))
    assert styles == {"cr o1"}
    all_of_them = long_run(tmp_path / "all.jsonl", 2400, set(range(1, 2401)), set())
    dense = re.findall(r'class="(cr[^"]*)"', metric_figure((all_of_them,), 1040).marks())
    assert "cr" in dense


def test_a_lane_says_how_often_its_kind_was_done(tmp_path: Path) -> None:
    account = gather(write_trace(tmp_path / "t.jsonl", commits(7)))
    assert ">scale_up ×7<" in timeline_figure(account, 900).marks()
    assert "act over" not in timeline_figure(account, 900).marks()
    over = gather(write_trace(tmp_path / "o.jsonl", commits(7, overridden_from="scale_down")))
    assert 'class="act over"' in timeline_figure(over, 900).marks()


def test_every_option_of_a_decision_is_a_mark_of_its_figure(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.jsonl", commits(1, vetoed=[("cost", "scale_down")]))
    scene = gather(path).scenes[1]
    assert scene.laid is not None
    marks = pareto_figure(scene, scene.laid.seats, 400, most=1).marks()
    drawn = sum(path.count("h0") for path in re.findall(r'class="pt [^"]*" d="([^"]*)"', marks))
    crosses = re.findall(r'class="cross" d="([^"]*)"', marks)
    assert drawn == int(scene.laid.admissible.sum()) == 3
    assert len(crosses) == 1
    assert crosses[0].count("M") == 2
    assert 'class="pick"' in marks


def test_a_run_without_rounds_has_no_curves_of_concession(tmp_path: Path) -> None:
    account = gather(write_trace(tmp_path / "t.jsonl", commits(2)))
    assert concession_figure(account, 900) is None
    assert utility_figure(account, 900).marks().count('class="tt"') == 4


def test_two_runs_part_where_something_else_is_done_or_one_has_ended(tmp_path: Path) -> None:
    one = gather(write_trace(tmp_path / "a.jsonl", commits(3)))
    same = gather(write_trace(tmp_path / "b.jsonl", commits(3)))
    shorter = gather(write_trace(tmp_path / "c.jsonl", commits(2)))
    other = gather(write_trace(tmp_path / "d.jsonl", commits(3, chosen="scale_down")))
    assert first_difference(one, same) is None
    assert first_difference(one, shorter) == first_difference(shorter, one) == 3
    assert first_difference(one, other) == 1


def test_actions_are_told_in_words_and_never_as_percent_signs() -> None:
    assert plan_words("terminate:db%2Fone>nop") == "terminate db/one, then nop"
    assert plan_words("") == "nothing"
    assert kinds("") == ("nothing",)
    assert figure(math.nan) == "–"
    assert figure(-0.25) == "−0.25"
