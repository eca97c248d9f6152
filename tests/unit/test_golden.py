"""What was decided in a few short runs is decided again, and comes to the same numbers."""

from __future__ import annotations

import json

import pytest

from tests.support.golden import FOLDER, GOLDENS, MOST_BYTES, REGENERATE, Golden, record, text_of


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.path.stem)
def test_a_golden_run_decides_and_comes_to_what_it_did(golden: Golden) -> None:
    kept = golden.path.read_text(encoding="utf-8").splitlines()
    played = text_of(record(golden)).splitlines()
    for number, (before, now) in enumerate(zip(kept, played, strict=False), start=1):
        if before != now:
            old, new = json.loads(before), json.loads(now)
            differing = {
                name: (old.get(name), new.get(name))
                for name in {*old, *new}
                if old.get(name) != new.get(name)
            }
            pytest.fail(
                f"{golden.path.name}, line {number} differs in {differing}. If the change is "
                f"meant, run `{REGENERATE}` and review the diff"
            )
    assert len(played) == len(kept)


def test_the_folder_holds_the_golden_runs_and_nothing_else_and_stays_small() -> None:
    files = [path for path in FOLDER.iterdir() if path.name != ".gitkeep"]
    assert {path.name for path in files} == {golden.path.name for golden in GOLDENS}
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


def test_a_golden_run_has_a_header_its_steps_and_an_end() -> None:
    for golden in GOLDENS:
        header, *steps, end = map(json.loads, golden.path.read_text(encoding="utf-8").splitlines())
        assert header["scenario"] == golden.scenario
        assert [entry["step"] for entry in steps] == list(range(1, len(steps) + 1))
        assert steps
        assert end["stop_reason"]
