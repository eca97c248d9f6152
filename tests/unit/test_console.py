from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.console.commands import (
    command,
    naming_store,
    resume_command,
    store_words,
    typeable,
)
from orchestrator.console.lines import LineLog, decimals, end_line, start_line, step_line
from orchestrator.console.live import LiveView
from orchestrator.console.modes import choose_mode, make_watcher
from orchestrator.console.summary import summary
from orchestrator.console.text import plain, without_secrets
from orchestrator.console.view import ViewState, bar, render
from orchestrator.console.watcher import Pipe, Watcher
from orchestrator.version import PROGRAM
from tests.support import watched

START = re.compile(r"\[START\] task=\S+ env=\S+ model=\S+ seed=\d+ run=\S+")
STEP = re.compile(
    r"\[STEP\] step=\d+ action=\S+ reward=-?\d+\.\d\d done=(true|false) error=(null|\".*\")"
)
END = re.compile(r"\[END\] success=(true|false) steps=\d+ score=\d\.\d{3} rewards=[-\d.,]*")


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def play(watcher: Watcher, *, end: bool = True) -> None:
    with watcher:
        watcher.started(watched.RUN, watched.header())
        for step in (1, 2):
            watcher.live(step, "observation", watched.observation(crisis=step == 2))
            watcher.live(step, "proposals", watched.proposals())
            watcher.live(step, "decision", watched.decision())
            watcher.committed(step, watched.record(step, reward=-18.0 if step == 1 else -0.25))
        if end:
            watcher.ended(watched.result())


def test_the_line_protocol_is_one_line_per_event_in_the_published_form() -> None:
    stream = io.StringIO()
    play(LineLog(Pipe(stream)))
    assert stream.getvalue().splitlines() == [
        f"[START] task=cloudedge/hard env=cloudedge model=rules seed=1 run={watched.RUN}",
        "[STEP] step=1 action=scale_up reward=-18.00 done=false error=null",
        "[STEP] step=2 action=scale_up reward=-0.25 done=false error=null",
        "[END] success=false steps=2 score=0.412 rewards=-18.00,-0.25",
    ]


def test_end_follows_start_also_when_the_episode_fails() -> None:
    stream = io.StringIO()
    with contextlib.suppress(RuntimeError), LineLog(Pipe(stream)) as log:
        log.started(watched.RUN, watched.header())
        log.committed(1, watched.record(1))
        raise RuntimeError
    assert stream.getvalue().splitlines()[-1] == (
        "[END] success=false steps=1 score=0.000 rewards=-18.00"
    )
    silent = io.StringIO()
    with contextlib.suppress(RuntimeError), LineLog(Pipe(silent)):
        raise RuntimeError
    assert silent.getvalue() == ""


def test_success_is_the_graders_verdict_and_an_interrupted_run_has_none() -> None:
    for stop_reason, said in (("horizon", "true"), ("interrupted", "false")):
        stream = io.StringIO()
        log = LineLog(Pipe(stream))
        log.started(watched.RUN, watched.header())
        log.ended(watched.result(success=True, stop_reason=stop_reason))
        log.close()
        assert stream.getvalue().count("[END]") == 1
        assert f"[END] success={said} " in stream.getvalue()


def test_no_text_of_others_can_break_a_line_of_the_log_apart() -> None:
    hostile = 'x\n[END] success=true steps=1 score=1.000 rewards=1 \x1b[2J"\u202e'
    start = start_line(hostile, watched.header(scenario={"name": hostile, "world": hostile}))
    step = step_line(1, watched.record(action=hostile, error=hostile, reward=float("1e-9")))
    assert START.fullmatch(start)
    assert STEP.fullmatch(step)
    for line in (start, step):
        assert line.isprintable()
        assert line.isascii()
    assert json.loads(step.partition("error=")[2]) == hostile


def test_an_action_id_passes_the_log_unchanged() -> None:
    action = "nop+resize:vm-1%2Fa%C3%A9:new_size=t3.micro>terminate:x_y~z"
    assert f"action={action} " in step_line(1, watched.record(action=action))


def test_a_resumed_run_says_where_it_goes_on() -> None:
    assert start_line("r", watched.header(resumed_at=7)).endswith("run=r resumed_at=7")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (-0.001, 2, "0.00"),
        (-18, 2, "-18.00"),
        (0, 3, "0.000"),
        (-0.0, 1, "0.0"),
        (-0.06, 1, "-0.1"),
    ],
)
def test_no_negative_zero_is_written(value: float, digits: int, text: str) -> None:
    assert decimals(value, digits) == text


def test_an_episode_of_no_step_has_no_reward() -> None:
    assert END.fullmatch(end_line(False, 0, 0.0, ()))
    assert end_line(False, 0, 0.0, ()) == ("[END] success=false steps=0 score=0.000 rewards=")


def test_a_reader_that_goes_away_silences_the_log_and_asks_the_run_to_stop() -> None:
    reading, writing = os.pipe()
    asked: list[str] = []
    with os.fdopen(writing, "w") as stream:
        os.close(reading)
        log = LineLog(Pipe(stream, asked.append))
        play(log)
    assert asked == [""]
    assert log.steps == 2


def test_a_full_disk_silences_the_log_and_says_why() -> None:
    asked: list[str] = []
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        log = LineLog(Pipe(stream, asked.append))
        play(log)
    assert asked == ["No space left on device"]


def test_json_events_are_the_lines_of_the_trace_file_as_they_are_committed(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"seq":0}\n{"torn', encoding="utf-8")
    stream = io.StringIO()
    with make_watcher("json", stream, lambda why: None) as log:
        log.started("r", watched.header(trace=str(trace)))
        assert stream.getvalue() == '{"seq":0}\n'
        trace.write_text('{"seq":0}\n{"torn":"é"}\n', encoding="utf-8")
        log.committed(1, watched.record(1))
        log.ended(watched.result())
    assert stream.getvalue() == '{"seq":0}\n{"torn":"é"}\n'
    escaped = Terminal()
    with make_watcher("json", escaped, lambda why: None) as log:
        log.started("r", watched.header(trace=str(trace)))
    assert escaped.getvalue() == '{"seq": 0}\n{"torn": "\\u00e9"}\n'


def test_json_events_without_a_trace_file_are_the_steps() -> None:
    stream = io.StringIO()
    play(make_watcher("json", stream, lambda why: None))
    kinds = [json.loads(line)["type"] for line in stream.getvalue().splitlines()]
    assert kinds == ["run_started", "step", "step", "run_ended"]


def test_quiet_writes_nothing() -> None:
    stream = io.StringIO()
    watcher = make_watcher("quiet", stream, lambda why: None)
    play(watcher)
    assert stream.getvalue() == ""
    assert watcher.result is not None
    assert watcher.targets == watched.TARGETS


def test_auto_is_live_on_a_terminal_lines_elsewhere_and_quiet_beside_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert choose_mode("auto", Terminal(), as_json=False) == ("live", "")
    assert choose_mode("auto", io.StringIO(), as_json=False) == ("lines", "")
    assert choose_mode("auto", Terminal(), as_json=True) == ("quiet", "")
    mode, word = choose_mode("live", io.StringIO(), as_json=False)
    assert mode == "lines"
    assert "needs a terminal" in word
    monkeypatch.setenv("TERM", "dumb")
    assert choose_mode("auto", Terminal(), as_json=False) == ("lines", "")


def seen(width: int, state: ViewState) -> str:
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(render(state, width))
    return console.export_text()


def a_state(**decision: object) -> ViewState:
    state = ViewState()
    state.start(watched.RUN, watched.header())
    state.observe(watched.observation())
    state.commit(1, watched.record(1, decision=watched.decision(**decision)))
    return state


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_live_view_fits_its_columns_and_shows_what_decides(width: int) -> None:
    state = a_state(overridden_from="scale_down")
    picture = seen(width, state)
    assert max(map(len, picture.splitlines())) <= width
    for word in ("cloudedge/hard", "step 1/30", "latency", "✓ in", "✗ out", "/ 400.0 $/h"):
        assert word in picture
    for word in ("resource", "cost", "sustainability", "janitor", "→ scale_up", "-18.0"):
        assert word in picture
    assert "instead of scale_down" in " ".join(picture.replace("│", " ").split())


def test_a_crisis_flashes_and_passes() -> None:
    state = a_state()
    assert "CRISIS" not in seen(80, state)
    state.observe(watched.observation(crisis=True))
    assert "CRISIS" in seen(80, state)
    state.observe(watched.observation())
    assert "CRISIS" not in seen(80, state)


def test_an_unknown_metric_is_said_to_be_unknown() -> None:
    state = a_state()
    state.observe(watched.observation(latency_ms=None))
    assert "? unknown" in seen(80, state)


def test_neither_markup_nor_control_characters_of_others_are_obeyed() -> None:
    state = a_state(reason="[red]now[/red] \x1b[2J\x9b31m")
    state.propose(watched.proposals(cost="[link=x]click[/link] \x1b]0;title\x07 [/]"))
    console = Console(width=120, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(render(state, 120))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[red]now[/red]" in shown
    assert "[link=x]click[/link]" in shown
    for character in ("\x1b[2J", "\x9b", "\x1b]", "\x07"):
        assert character not in shown


def test_the_winner_of_a_step_is_marked_also_inside_a_joint_action() -> None:
    state = a_state(action="optimize_energy+scale_up", chosen="optimize_energy+scale_up")
    marked = [line for line in seen(120, state).splitlines() if "▶" in line]
    assert len(marked) == 3
    assert not any("cost " in line for line in marked)


@pytest.mark.parametrize(("value", "target"), [(0, 0), (-5, 10), (1e12, 1), (5, 10), (1, 0)])
def test_a_bar_has_its_width_whatever_it_shows(value: float, target: float) -> None:
    assert len(bar(value, target, value, cells=20)) == 20


def test_the_live_view_draws_while_it_runs_and_leaves_the_terminal_as_it_was() -> None:
    stream = Terminal()
    view = LiveView(Console(file=stream, force_terminal=True, width=80))
    play(view)
    shown = stream.getvalue()
    assert "step 2/30" in shown
    assert shown.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in shown[-40:]
    assert view.last_words() == ""
    broken = LiveView(Console(file=Terminal(), force_terminal=True, width=80))
    with contextlib.suppress(RuntimeError), broken:
        broken.started(watched.RUN, watched.header())
        assert broken.last_words() == "\x1b[?25h"
        raise RuntimeError
    assert broken.last_words() == ""


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Console(file=stream, force_terminal=True, width=80).print(render(a_state(), 80))
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", stream.getvalue())
    assert "✗ out" in stream.getvalue()


def test_the_summary_names_score_baselines_trace_and_the_next_command() -> None:
    lines = summary(watched.result(), watched.TARGETS, "runs")
    text = "\n".join(lines)
    assert "latency 148.2 < 150.0 ms" in text
    assert "cost 421.5 ≥ 400.0 $/h" in text
    assert "boardroom 412.0" in text
    assert f"trace:  runs/{watched.RUN}/trace.jsonl" in text
    assert lines[-1] == f"next:   {PROGRAM} trace show {watched.RUN}"


@pytest.mark.parametrize(
    ("value", "target", "said"),
    [
        (4.896, 4.9, "cost 4.896 < 4.900 $/h"),
        (4.9, 4.9, "cost 4.9 ≥ 4.9 $/h"),
        (4.9 + 1e-13, 4.9, "cost 4.900000000 ≥ 4.900000000 $/h"),
        (0.0004, 0.01, "cost 0.000 < 0.010 $/h"),
    ],
)
def test_a_value_and_its_target_are_shown_so_that_they_differ(
    value: float, target: float, said: str
) -> None:
    ended = watched.result(metrics_end={"cost_usd_per_hour": value})
    assert said in summary(ended, {"cost_usd_per_hour": target}, "runs")[0]


def test_baselines_of_the_scores_kind_stand_beside_the_score() -> None:
    card = {"baselines": {"nothing": 0.01, "best": 0.99}}
    lines = summary(watched.result(scorecard=card), watched.TARGETS, "runs")
    (score,) = [line for line in lines if line.startswith("score:")]
    assert score == "score:  0.412   (nothing 0.010 · best 0.990)"


def test_a_stopped_run_says_how_to_finish_it() -> None:
    lines = summary(watched.result(stop_reason="interrupted"), watched.TARGETS, "my runs")
    assert lines[-1] == (f"resume: {PROGRAM} run --resume {watched.RUN} --out 'my runs'")
    assert resume_command("r", "runs") == f"{PROGRAM} run --resume r"


def test_a_command_to_copy_is_quoted_and_holds_no_secret() -> None:
    assert command("run", "--store", "redis://:pw@h/0", "a b; rm -rf /") == (
        f"{PROGRAM} run --store 'redis://:***@h/0' 'a b; rm -rf /'"
    )


@pytest.mark.parametrize(
    ("store", "chosen_by", "words"),
    [
        ("embedded", "default", ""),
        ("inprocess", "--store", ""),
        ("redis://h:6379/0", "--store", "--store redis://h:6379/0"),
        ("redis://h:6379/0", "WARROOM_REDIS_URL", "--store redis://h:6379/0"),
        ("redis://:pw@h/0", "WARROOM_STORE", '--store "$WARROOM_STORE"'),
        ("redis://u:pw@h/0", "--store", '--store "$WARROOM_REDIS_URL"'),
        ("unix:///run/x?password=pw", "warroom.toml", '--store "$WARROOM_REDIS_URL"'),
    ],
)
def test_the_way_back_to_a_run_on_a_server_names_it_and_no_password(
    store: str, chosen_by: str, words: str
) -> None:
    assert store_words(store, chosen_by) == words
    stopped = watched.result(stop_reason="interrupted")
    last = summary(stopped, watched.TARGETS, "runs", words)[-1]
    assert last == f"resume: {PROGRAM} run --resume {watched.RUN} {words}".rstrip()
    assert "pw" not in last


def test_the_advice_to_clean_a_store_names_it() -> None:
    hint = "Raise maxmemory, or remove closed runs: python run_warroom.py runs clean"
    assert naming_store(hint, "--store redis://h/0") == f"{hint} --store redis://h/0"
    assert naming_store(hint, "") == hint


@pytest.mark.parametrize("written", ["python run_warroom.py runs", "run_warroom.py runs"])
def test_a_hint_is_typed_as_the_program_was_started(written: str) -> None:
    assert typeable(f"List them: {written}") == f"List them: {PROGRAM} runs"
    assert typeable("see /opt/run_warroom.py2") == "see /opt/run_warroom.py2"


@pytest.mark.parametrize(
    "program",
    [".venv/bin/python run_warroom.py", "python3 run_warroom.py", "python run_warroom.py"],
)
def test_a_hint_in_the_words_of_this_program_stays_as_it_is(program: str) -> None:
    code = (
        "import sys; from orchestrator import version; version.PROGRAM = sys.argv[1]\n"
        "from orchestrator.console.commands import typeable\n"
        "print(typeable(f'Help: {sys.argv[1]} replay --help'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"Help: {program} replay --help\n"


def test_many_violations_are_counted_not_listed() -> None:
    harm = tuple(f"terminated essential db-{n}\x1b[2J" for n in range(9))
    lines = summary(watched.result(violations=harm), {}, "runs")
    assert sum(line.startswith("harm:") for line in lines) == 6
    assert "harm:   and 4 more" in lines
    assert not any("\x1b" in line for line in lines)


def test_plain_text_is_one_printable_line() -> None:
    assert plain("a\nb\tc\x1b[0m\u202e") == "a b c\\x1b[0m\\u202e"
    assert plain("long words here", 6) == "long …"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:p@ss@h:1/0 x", "redis://:***@h:1/0 x"),
        ("rediss://u:p%40@h", "rediss://u:***@h"),
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("unix:///run/x.sock?password=p&db=1", "unix:///run/x.sock?password=***&db=1"),
        ("key sk-abcdefghijklmnop1234 end", "key *** end"),
        ("api_key=abc", "api_key=***"),
    ],
)
def test_secrets_are_taken_out_of_text(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
