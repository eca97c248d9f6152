"""The program writes reports: whole, self-contained, readable, and safe with text of others."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from orchestrator.cli.app import main
from orchestrator.trace.events import Event, event
from tests.support.pages import Page, parsed, policy, source_of
from tests.support.program import warroom
from tests.support.traces import (
    CANDIDATES,
    SEATS,
    commits,
    run_ended,
    run_started,
    step_events,
    write_trace,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
SHORT = ("--steps", "6", "--driver", "loop", "--store", "inprocess", "--log", "quiet")
NASTY = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onclick='x' "
    "\u202egnp.exe \u2066iso\u2069 &lt;b&gt; \x1b[2J \x00 \ufffe ]]> <!-- --> \ud800 {{7*7}}"
)
DRAWN = {"svg", "style", "rect", "path", "circle", "title", "text", "g"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of one seed, by two protocols."""
    folder = tmp_path_factory.mktemp("report")
    for protocol in ("weighted_score", "alternating_offers"):
        done = warroom("run", *SHORT, "--protocol", protocol, cwd=folder)
        assert done.status == 0, done.err
    return folder


def runs(place: Path) -> list[str]:
    return (place / "runs" / ".order").read_text(encoding="utf-8").split()


def nasty_trace(path: Path) -> Path:
    """A trace in which every free text is hostile: ids, seats, reasons, rationales, titles."""

    def poisoned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: poisoned(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [poisoned(part, key) for part in value]
        return NASTY if key in {"rationale", "reason", "title", "effect", "text", "rule"} else value

    def batches() -> Iterator[list[Event]]:
        head = run_started(2).data
        seats = [{**seat, "persona": NASTY} for seat in head["seats"]]
        scenario = {**head["scenario"], "title": NASTY, "name": NASTY}
        yield [event("run_started", 0, 0, {**head, "seats": seats, "scenario": scenario})]
        for step in (1, 2):
            told = step_events(
                step, vetoed=[("cost", "scale_down")], talk=True, overridden_from=NASTY
            )
            entries = [
                event(e.type, e.step, e.round, poisoned(dict(e.data)), e.agent) for e in told
            ]
            kept = [e for e in entries if e.type != "candidates"]
            items = [
                {"id": name, "origin": [NASTY], "feasible": True, "projected": {NASTY: 1.0}}
                for name in (*CANDIDATES, NASTY)
            ]
            table = event("candidates", step, 0, {"items": items})
            yield [kept[0], table, *kept[1:]]
        yield [run_ended(2)]

    return write_trace(path, batches())


def written(path: Path) -> tuple[str, Page]:
    text = path.read_text(encoding="utf-8")
    return text, parsed(text)


def assert_self_contained(text: str, page: Page) -> None:
    """Closed elements; one script and one style, allowed by hash; nothing is fetched or framed."""
    assert page.faults == []
    rules = policy(page)
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [source_of(text, "script")]
    assert rules["style-src"] == [source_of(text, "style")]
    assert rules["form-action"] == rules["base-uri"] == ["'none'"]
    assert [len(page.of(name)) for name in ("script", "style", "body", "main", "h1")] == [1] * 5
    for element in page.elements:
        assert element.name not in {"img", "link", "iframe", "object", "embed", "base", "form"}
        for name, value in element.attributes.items():
            assert not name.startswith("on"), (element.name, name)
            assert name != "style"
            if name in {"href", "src"}:
                assert value.startswith("#"), value


def test_a_report_of_a_run_is_one_page_with_every_step_and_every_rejected_option(
    place: Path,
) -> None:
    run = runs(place)[0]
    done = warroom("report", run, "--json", cwd=place)
    assert done.status == 0, done.err
    told = done.document
    page_file = place / told["files"]["html"]
    assert page_file == place / "runs" / run / "report.html"
    assert told["runs"][0]["steps"] == told["runs"][0]["steps_in_full"] == 6
    text, page = written(page_file)
    assert_self_contained(text, page)
    assert len(text.encode()) == told["bytes"]["html"]
    steps = page.of("details", "step")
    assert [step.attributes["data-step"] for step in steps] == ["1", "2", "3", "4", "5", "6"]
    shown = warroom("trace", "show", run, "--json", cwd=place).document
    for step, record in zip(steps, shown, strict=True):
        options = len(record["candidates"]["items"])
        assert f"{options - 1} rejected options" in step.text
        for proposal in record["ballots"]["cost"]["proposals"]:
            assert proposal["rationale"] in step.text
    for word in ("Metrics against targets", "What was decided", "Influence", "latency, ms"):
        assert word in page.text
    assert told["runs"][0]["trace_sha"] in page.text


def test_a_figure_has_a_drawing_for_wide_and_one_for_narrow_pages_and_words_for_both(
    place: Path,
) -> None:
    _, page = written(_report(place, runs(place)[1], "figures.html"))
    drawings = [svg for svg in page.of("svg") if svg.has("wide") or svg.has("narrow")]
    assert drawings
    assert sum(svg.has("wide") for svg in drawings) == sum(svg.has("narrow") for svg in drawings)
    for svg in drawings:
        assert svg.attributes["role"] == "img"
        assert svg.attributes["aria-label"]
        assert float(svg.attributes["width"]) <= (1040 if svg.has("wide") else 358)
    assert "Concessions" in page.text


def _report(place: Path, run: str, name: str) -> Path:
    done = warroom("report", run, "--html", name, cwd=place)
    assert done.status == 0, done.err
    return place / name


def test_a_comparison_names_the_step_where_two_runs_part_and_what_they_were_asked(
    place: Path,
) -> None:
    one, other = runs(place)
    done = warroom("report", one, other, cwd=place)
    assert done.status == 0, done.err
    text, page = written(place / "runs" / one / f"report-against-{other}.html")
    assert_self_contained(text, page)
    actions = [
        [step["decision"]["action"] for step in warroom("trace", "show", run, "--json",
                                                        cwd=place).document]
        for run in (one, other)
    ]  # fmt: skip
    differ = [step for step, (a, b) in enumerate(zip(*actions, strict=True), 1) if a != b]
    entries = [int(e.attributes["data-step"]) for e in page.of("details", "step")]
    assert entries == differ
    parted = f"step {differ[0]}" if differ else "never"
    tile = next(e for e in page.of("div", "tile") if e.text.startswith("They part"))
    assert parted in tile.text
    assert "protocol.name" in page.text
    assert "alternating_offers" in page.text
    assert "what happened by chance is the same in both" in page.text


def test_the_sheet_of_figures_is_well_formed_svg_of_drawn_elements_only(place: Path) -> None:
    one, other = runs(place)
    for named in ((one,), (one, other)):
        done = warroom("report", *named, "--svg", "sheet.svg", cwd=place)
        assert done.status == 0, done.err
        root = ElementTree.parse(place / "sheet.svg").getroot()  # noqa: S314
        names = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert {"svg", "path", "text"} <= names <= DRAWN
        text = (place / "sheet.svg").read_text(encoding="utf-8")
        assert "var(--" not in text
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_png_is_rendered_without_a_browser_or_the_extra_is_named(place: Path) -> None:
    done = warroom("report", "last", "--png", "sheet.png", cwd=place)
    target = place / "sheet.png"
    if importlib.util.find_spec("vl_convert") is None:
        assert done.status == 3
        assert "--png needs vl-convert-python" in done.err
        assert "extra 'ui'" in done.err
        assert not target.exists()
        return
    assert done.status == 0, done.err
    assert target.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_hostile_text_stays_text_on_the_page_and_in_the_drawing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = nasty_trace(tmp_path / "x.jsonl")
    page_file, sheet = tmp_path / "x.html", tmp_path / "x.svg"
    assert main(["report", str(trace), "--html", str(page_file), "--svg", str(sheet)]) == 0
    assert main(["report", str(trace), str(trace), "--html", str(tmp_path / "two.html")]) == 0
    capsys.readouterr()
    for file in (page_file, tmp_path / "two.html"):
        text, page = written(file)
        assert_self_contained(text, page)
        assert "<script>alert(1)</script>" in page.text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\ufffe\ud800]", text)
        assert "\\u202e" in page.text
    root = ElementTree.parse(sheet).getroot()  # noqa: S314
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= DRAWN
    assert "alert(1)" in "".join(root.itertext())


def test_an_edited_trace_has_no_report_but_an_error_that_names_the_line(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "edited.jsonl", commits(3))
    trace.write_bytes(trace.read_bytes().replace(b"scale_up", b"scale_UP", 1))
    done = warroom("report", str(trace), "--html", "page.html", cwd=tmp_path)
    assert done.status != 0
    assert done.out == ""
    assert "line " in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--html", "missing/page.html"), "there is no folder"),
        (("--svg", "."), "is a folder"),
        (("--html", "t.jsonl"), "is the trace itself"),
    ],
)
def test_a_place_that_cannot_take_the_file_is_refused_in_one_line(
    tmp_path: Path, arguments: tuple[str, str], word: str
) -> None:
    trace = write_trace(tmp_path / "t.jsonl", commits(2))
    before = trace.read_bytes()
    done = warroom("report", "t.jsonl", *arguments, cwd=tmp_path)
    assert done.status == 2
    assert len(done.err.strip().splitlines()) == 1
    assert word in done.err
    assert trace.read_bytes() == before


def test_a_run_that_stopped_early_is_reported_as_not_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write_trace(tmp_path / "t.jsonl", commits(2, ended=False))
    assert main(["report", str(trace), "--html", str(tmp_path / "p.html"), "--json"]) == 0
    assert '"complete": false' in capsys.readouterr().out
    _, page = written(tmp_path / "p.html")
    assert "Not finished" in page.text
    assert len(page.of("details", "step")) == 2


def test_a_trace_of_one_line_is_reported_without_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write_trace(tmp_path / "t.jsonl", [[run_started(3)]])
    for kind in ("html", "svg"):
        assert main(["report", str(trace), f"--{kind}", str(tmp_path / f"p.{kind}")]) == 0
    capsys.readouterr()
    text, page = written(tmp_path / "p.html")
    assert_self_contained(text, page)
    assert "no step was done" in page.text
    assert page.of("svg") == []


def test_a_long_run_is_thinned_says_so_and_stays_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write_trace(tmp_path / "t.jsonl", commits(3000))
    assert main(["report", str(trace), "--html", str(tmp_path / "p.html")]) == 0
    assert "of 3,000 steps are shown in full" in capsys.readouterr().err
    text, page = written(tmp_path / "p.html")
    assert len(text.encode()) < 5_000_000
    listed = [int(step.attributes["data-step"]) for step in page.of("details", "step")]
    assert 120 <= len(listed) <= 160
    assert listed[0] == 1
    hidden = [list(map(int, re.findall(r"--step (\d+):(\d+)", p.text)[0]))
              for p in page.of("p", "gap")]  # fmt: skip
    covered = sorted([*listed, *(s for a, b in hidden for s in range(a, b + 1))])
    assert covered == list(range(1, 3001))
    assert "over 120 of 3,000 decisions, every 25th" in page.text


def test_the_same_trace_makes_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = write_trace(tmp_path / "t.jsonl", commits(4, talk=True))
    made = []
    for name in ("one", "two"):
        target = tmp_path / f"{name}.html"
        assert main(["report", str(trace), "--html", str(target)]) == 0
        made.append(target.read_bytes())
    capsys.readouterr()
    assert made[0] == made[1]
    assert all(seat.encode() in made[0] for seat in SEATS)
