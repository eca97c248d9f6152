"""The story of an episode, and which steps of it are told."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.trace.events import event
from orchestrator.trace.filters import Filters, step_range
from orchestrator.trace.show import metric_spans, plain, rich_text, step_documents, story
from orchestrator.trace.untrusted import cell, printable
from tests.support.traces import HOSTILE, run_ended, run_started, step_events, write_trace
from world.errors import ConfigError, DigestMismatchError, UnknownNameError


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Step 1 plain, 2 with talk, 3 in a crisis with Cost's veto, 4 overridden."""
    batches = [
        [run_started(4)],
        [*step_events(1)],
        [*step_events(2, talk=True)],
        [*step_events(3, crisis=True, vetoed=[("cost", "scale_up")], chosen="scale_down")],
        [*step_events(4, overridden_from="scale_down")],
        [run_ended(4)],
    ]
    return write_trace(tmp_path / "t.jsonl", batches)


def told(path: Path, filters: Filters | None = None, *, width: int = 100) -> list[str]:
    return [plain(line) for line in story(path, filters, width=width)]


def titles(path: Path, filters: Filters) -> list[str]:
    return [line.split()[1] for line in told(path, filters) if line.startswith("step ")]


def test_the_story_says_who_met_where_and_how_it_ended(trace: Path) -> None:
    lines = told(trace)
    assert lines[0] == "cloudedge/hard · seed 1 · 4 steps · protocol weighted_score"
    assert "latency_ms < 150" in lines[1]
    assert "cost = cost_hawk" in lines[2]
    assert "janitor ×0.5" in lines[2]
    text = "\n".join(lines)
    assert "ended: horizon after 4 steps" in text
    assert "score 0.412" in text
    assert "baselines, reward: best_known 728 · random -80" in text
    assert "violation: terminated an essential resource" in text


def test_a_step_tells_metrics_proposals_decision_losers_and_reward(trace: Path) -> None:
    lines = told(trace, Filters(first_step=3, last_step=3))
    text = "\n".join(lines)
    assert "step 3  CRISIS" in lines
    assert "  ! carbon crisis" in lines
    assert "latency_ms 180 ✗" in text
    assert "cost_usd_per_hour 253.1 ✓" in text
    assert any(line.startswith("  cost ") and "latency is above" in line for line in lines)
    assert any(line.startswith("  janitor") and "proposes nothing" in line for line in lines)
    assert "cost vetoes: scale_up (cost/red_line/1) over its line" in text
    assert "  → scale_down  by weighted_score" in lines
    assert "    out: scale_up: vetoed by cost" in lines
    assert "cost migrate_region (0.857, got 0.286)" in text
    assert "reward -15.00" in text


def test_the_outcome_names_the_metrics_that_the_room_saw_and_no_other(tmp_path: Path) -> None:
    step = [
        event("observation", 1, 0, {"metrics": {"cost": 5}, "targets": {}}),
        event("applied", 1, 0, {"metrics": {"cost": 4, "inner_counter": 7}}),
        event("grade", 1, 0, {"reward": 1}),
    ]
    path = write_trace(tmp_path / "t.jsonl", [[run_started(1)], step])
    assert "  = cost 4  reward +1.00" in told(path)


def test_a_warning_about_the_whole_table_is_told_once_and_one_about_an_option_each_time(
    tmp_path: Path,
) -> None:
    general = {"seat": "cost", "rule": "cost/1", "reason": "not projected", "candidate": ""}
    special = {"seat": "cost", "rule": "cost/2", "reason": "near its line", "candidate": "nop"}
    steps = [
        [
            event("candidates", step, 0, {"warnings": [general, special]}),
            event("grade", step, 0, {"reward": 1}),
        ]
        for step in (1, 2)
    ]
    lines = told(write_trace(tmp_path / "t.jsonl", [[run_started(2)], *steps]))
    assert sum("not projected" in line for line in lines) == 1
    assert lines.count("  cost warns: nop (cost/2) near its line") == 2


def one_step(path: Path, decision: dict[str, object], **ballots: dict[str, object]) -> list[str]:
    """The story of one step with this decision."""
    step = [
        *(event("ballot", 1, 0, ballot, seat) for seat, ballot in ballots.items()),
        event("decision", 1, 0, decision),
        event("grade", 1, 0, {"reward": 1}),
    ]
    return told(write_trace(path, [[run_started(1)], step]), width=140)


def test_a_seat_that_got_something_just_as_good_lost_nothing(tmp_path: Path) -> None:
    ballots: dict[str, dict[str, object]] = {
        "cost": {"ranking": ["a", "b"], "utilities": {"a": 0.5, "b": 0.5 - 1e-12}},
        "janitor": {"ranking": ["a", "b"], "utilities": {"a": 0.5, "b": 0.4}},
    }
    (line,) = [
        line
        for line in one_step(tmp_path / "t.jsonl", {"chosen": "b"}, **ballots)
        if "preferred:" in line
    ]
    assert line == "    preferred: janitor a (0.5, got 0.4)"


def test_targets_that_a_world_sets_when_it_starts_stand_in_the_header(tmp_path: Path) -> None:
    step = [
        event("observation", 1, 0, {"metrics": {"cost": 5}, "targets": {"cost": 4.5}}),
        event("grade", 1, 0, {"reward": 1}),
    ]
    start = run_started(1, scenario={"name": "mine", "targets": {"latency_ms": 150}})
    lines = told(write_trace(tmp_path / "t.jsonl", [[start], step]))
    assert lines[1] == "targets: latency_ms < 150  cost < 4.5"


def test_what_the_guards_held_back_is_told_before_all_other_reasons(tmp_path: Path) -> None:
    why = {f"dull-{n}": "dominated by a" for n in range(9)}
    why |= {"vetoed": "vetoed by cost (cost/1): no", "risky": "guard/hazard: it breaks db-1"}
    lines = one_step(tmp_path / "t.jsonl", {"chosen": "a", "eliminated": why})
    out = [line for line in lines if line.startswith("    out: ")]
    assert out[0] == "    out: risky: guard/hazard: it breaks db-1"
    assert out[1].startswith("    out: vetoed: ")
    assert "    … and 5 more eliminated" in lines


def test_ids_are_shown_decoded_short_and_not_all_that_tied(tmp_path: Path) -> None:
    hidden = "terminate:db%2Fone%1B%5B2J"
    many = [f"tied-{n}" for n in range(8)]
    decision: dict[str, object] = {
        "chosen": hidden,
        "reason": f"highest score, ahead of {hidden}",
        "scores": {hidden: 1.0, "x" * 200: 0.5},
        "tie": many,
    }
    lines = one_step(tmp_path / "t.jsonl", decision)
    text = "\n".join(lines)
    assert "  → terminate:db/one\\x1b[2J" in text
    assert "ahead of terminate:db/one\\x1b[2J" in text
    assert "%2F" not in text
    assert "\x1b" not in text
    assert "x" * 100 not in text
    assert "    tied: tied-0, tied-1 and 6 more" in lines


@pytest.mark.parametrize(
    ("no_deal", "words"),
    [
        ("nobody_votes", "no seat has a vote on this"),
        ("all_vetoed", "every option is vetoed"),
        ("plurality", "plurality decided"),
    ],
)
def test_no_deal_is_told_in_words(no_deal: str, words: str, tmp_path: Path) -> None:
    lines = one_step(tmp_path / "t.jsonl", {"chosen": "a", "no_deal": no_deal})
    assert any(line.startswith(f"    no deal: {words}") for line in lines)
    assert not any("nobody_votes" in line for line in lines)


def test_a_component_says_its_value_once(tmp_path: Path) -> None:
    parts = {
        "reward": {"value": 684.0, "unit": "points", "explanation": "684 points; best known 728"},
        "churn": {"value": 2, "unit": "steps", "explanation": "steps with a refused action"},
    }
    end = event("run_ended", 0, 0, {"scorecard": {"components": parts}})
    lines = told(write_trace(tmp_path / "t.jsonl", [[run_started(1)], [end]]))
    assert "  reward: 684 points; best known 728" in lines
    assert "  churn: 2 steps — steps with a refused action" in lines


def test_a_filter_that_nothing_meets_says_what_was_asked(trace: Path) -> None:
    filters = Filters(crisis=True, persona="cost", first_step=9)
    found: list[int] = []
    list(story(trace, filters, found=found))
    assert found == []
    assert filters.no_match() == "no step of this run matches --crisis --persona cost --step"


def test_an_override_names_both_the_rule_and_what_it_replaced(trace: Path) -> None:
    text = "\n".join(told(trace, Filters(overridden=True)))
    assert "step 4  OVERRIDDEN" in text
    assert "the plain rule would have chosen scale_down; safety/1 decided" in text


def test_what_the_seats_say_to_each_other_is_told_round_by_round(trace: Path) -> None:
    lines = told(trace, Filters(first_step=2, last_step=2))
    assert "  round 1 resource declines scale_down of cost; would offer scale_up" in lines
    assert "  round 1 resource “latency is above its target”" in lines


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), "1234"),
        (Filters(crisis=True), "3"),
        (Filters(vetoed=True), "3"),
        (Filters(overridden=True), "4"),
        (Filters(crisis=True, overridden=True), ""),
        (Filters(first_step=2), "234"),
        (Filters(last_step=2), "12"),
        (Filters(persona="cost", vetoed=True), "3"),
        (Filters(persona="cost_hawk", vetoed=True), "3"),
        (Filters(persona="resource", vetoed=True), ""),
        (Filters(persona="resource"), "1234"),
    ],
)
def test_a_filter_leaves_exactly_the_steps_that_meet_all_of_it(
    trace: Path, filters: Filters, expected: str
) -> None:
    assert "".join(titles(trace, filters)) == expected
    assert "".join(str(d["step"]) for d in step_documents(trace, filters)) == expected


def test_a_persona_filter_leaves_only_its_own_lines(trace: Path) -> None:
    lines = told(trace, Filters(persona="cost", first_step=3, last_step=3))
    step = "\n".join(lines[4 : next(at for at in range(5, 99) if not lines[at])])
    assert "cost vetoes" in step
    assert "resource" not in step


def test_an_unknown_persona_names_the_nearest(trace: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean cost\?"):
        told(trace, Filters(persona="cots"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", (7, 7)), ("3:9", (3, 9)), ("3:", (3, None)), (":9", (None, 9)), (" 1:1 ", (1, 1))],
)
def test_a_step_range_is_read_with_both_ends_included(
    text: str, expected: tuple[int | None, int | None]
) -> None:
    assert step_range(text) == expected


@pytest.mark.parametrize("text", ["", ":", "9:3", "a", "1:2:3", "-1", "1.5", "1" * 30])
def test_what_is_no_step_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="FIRST:LAST"):
        step_range(text)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_keep_to_the_width_asked_for(trace: Path, width: int) -> None:
    lines = told(trace, Filters(first_step=1), width=width)
    assert max(map(len, lines[lines.index("step 1") :])) <= width


def hostile_trace(path: Path) -> Path:
    """Text of others in every place that the story shows."""
    nasty = {"candidate": HOSTILE, "rule": HOSTILE, "reason": HOSTILE}
    decision = {
        "chosen": HOSTILE, "protocol": HOSTILE, "agreement": False, "reason": HOSTILE,
        "scores": {HOSTILE: 1.0}, "eliminated": {HOSTILE: HOSTILE}, "rounds": 2,
        "overridden_from": HOSTILE, "override_rule": HOSTILE, "tie": [HOSTILE], "no_deal": HOSTILE,
    }  # fmt: skip
    outcome = {"id": HOSTILE, "status": "refused", "effect": HOSTILE, "reason": HOSTILE}
    card = {
        "total": 0.5, "violations": [HOSTILE], "baselines": {HOSTILE: 1}, "note": HOSTILE,
        "components": {HOSTILE: {"value": 1, "unit": HOSTILE, "explanation": HOSTILE}},
    }  # fmt: skip
    ballot = {"proposals": [{"id": HOSTILE, "rationale": HOSTILE}], "ranking": [HOSTILE]}
    observation = {
        "metrics": {HOSTILE: 1}, "targets": {HOSTILE: 2}, "incidents": [HOSTILE],
        "unknown": [HOSTILE], "facts": {HOSTILE: True},
    }  # fmt: skip
    start = run_started(
        1, seats=[{"seat": HOSTILE, "persona": HOSTILE + "2", "weight": 2}],
        scenario={"name": HOSTILE, "targets": {HOSTILE: 2}}, protocol={"name": HOSTILE},
    )  # fmt: skip
    step = [
        event("observation", 1, 0, observation),
        event("candidates", 1, 0, {"warnings": [{**nasty, "seat": HOSTILE}], "dropped_count": 3}),
        event("ballot", 1, 0, ballot, HOSTILE),
        event("veto", 1, 0, nasty, HOSTILE),
        event(
            "message",
            1,
            1,
            {"text": HOSTILE, HOSTILE: [HOSTILE, {HOSTILE: 1.5}], "deep": [[[[[[1]]]]]]},
            HOSTILE,
        ),
        event("fallback", 1, 0, {"kind": HOSTILE, "what": HOSTILE}, HOSTILE),
        event("decision", 1, 0, decision),
        event("applied", 1, 0, {"actions": [outcome], "events": [HOSTILE], "metrics": {}}),
        event("grade", 1, 0, {"reward": 1}),
    ]
    end = event("run_ended", 1, 0, {"stop_reason": HOSTILE, "scorecard": card})
    return write_trace(path, [[start], step, [end]])


def test_text_of_others_never_acts_on_a_terminal_nor_fakes_a_line(tmp_path: Path) -> None:
    path = hostile_trace(tmp_path / "t.jsonl")
    for full in (False, True):
        for line in story(path, width=100, full=full):
            text = plain(line)
            assert text.isprintable()
            assert not text.startswith("[STEP]")


def test_text_of_others_is_never_read_as_markup(tmp_path: Path) -> None:
    path = hostile_trace(tmp_path / "t.jsonl")
    console = Console(file=io.StringIO(), force_terminal=True, width=500, color_system="truecolor")
    for line in story(path, width=400):
        rendered = rich_text(line)
        assert rendered.plain == "".join(span.text for span in line)
        console.print(rendered)
    printed = console.file.getvalue()
    assert "[red]bold[/red]" in printed
    assert "\x1b[2J" not in printed


def test_an_incomplete_trace_says_where_it_stops(tmp_path: Path) -> None:
    half = [*step_events(2)][:5]
    path = write_trace(tmp_path / "t.jsonl", [[run_started(3)], [*step_events(1)], half])
    lines = told(path)
    assert "  no decision was reached before the trace stops" in lines
    assert lines[-1] == "incomplete: the trace stops after step 2, without run_ended"


def test_an_edited_trace_is_told_up_to_the_edit_and_then_refused(trace: Path) -> None:
    trace.write_bytes(trace.read_bytes().replace(b'"reward":-15', b'"reward":99'))
    lines, seen = story(trace), list[str]()
    with pytest.raises(DigestMismatchError, match="line 32 of"):
        seen.extend(map(plain, lines))
    assert "step 2" in seen
    assert "step 3  CRISIS" not in seen


def test_a_trace_that_lacks_nearly_everything_is_still_told(tmp_path: Path) -> None:
    start = event("run_started", 0, 0, {"schema": "trace/1"})
    step = [
        event("ballot", 1, 0, {"proposals": "none", "utilities": 3, "ranking": None}, "cost"),
        event("observation", 1, 0, {"metrics": {"a": None}, "facts": [], "incidents": 0}),
        event("decision", 1, 0, {"scores": {"x": "y"}, "chosen": None}),
        event("grade", 1, 0, {"reward": "no"}),
    ]
    end = event("run_ended", 1, 0, {"scorecard": None})
    path = write_trace(tmp_path / "t.jsonl", [[start], step, [end]])
    assert any("a unknown" in line for line in told(path))
    assert [d["step"] for d in step_documents(path)] == [1]


def test_printable_spells_out_what_acts_and_marks_what_it_cuts() -> None:
    assert printable("a\x1b[31m\u202eb\u200b\x9b\x7f") == "a\\x1b[31m\\u202eb\\u200b\\x9b\\x7f"
    assert printable("  one\r\n two\t three ") == "one two three"
    assert printable("abcdef", 4) == "abc…"
    assert printable("abcd", 4) == "abcd"
    assert printable("日本語 é") == "日本語 é"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", "\n=", " ="])
def test_a_cell_never_starts_a_formula(start: str) -> None:
    assert cell(start + "1+1").startswith("'")
    assert cell("plain") == "plain"


def test_a_metric_far_below_its_target_is_no_row_of_digits() -> None:
    metrics = {"error_fraction": 1.4e-06, "latency_ms": 216.2, "waste_usd_per_hour": 1.4e-06}
    groups = metric_spans(metrics, {"error_fraction": 0.01, "latency_ms": 150.0})
    assert [group[1].text for group in groups] == ["~0 ✓", "216.2 ✗", "1.4e-06"]
