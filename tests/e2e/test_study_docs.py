"""The page on studies is followed to the letter, and what it prints is what is printed today."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.guide import FIGURES, PAGE, REGENERATE, Desk, blocks, code_of, comparable
from tests.support.program import ROOT

EVERYTHING = bool(os.environ.get("WARROOM_TEST_STUDY_ALL"))
"""Whether the blocks that take long are typed, too."""
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800 if EVERYTHING else 400)]


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_quick_command_prints_what_the_page_says(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    compared = 0
    for block in blocks(text()):
        if block.name:
            desk.write(block)
        if block.language != "console" or not block.possible:
            continue
        if block.heavy and not EVERYTHING:
            continue
        for typed in block.typed:
            now = desk.type(typed.command)
            assert comparable(now.lines) == comparable(typed.lines), (
                f"$ {typed.command}\nprints something else than {PAGE.name} says: {REGENERATE}"
            )
            compared += bool(now.lines)
    assert compared >= 10
    drawn = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert drawn
    assert drawn == sorted(path.name for path in FIGURES.glob("*.svg"))


def test_what_takes_long_is_as_the_program_wrote_it() -> None:
    heavy = [block for block in blocks(text()) if block.heavy]
    assert heavy
    for block in heavy:
        assert all(typed.lines for typed in block.typed)
        assert block.code == code_of(block.text), (
            f"{block.typed[0].command}: changed by hand; write it anew: {REGENERATE}"
        )


def test_a_digit_changed_by_hand_is_found() -> None:
    page = text()
    block = next(block for block in blocks(page) if block.heavy)
    inside = re.search(r"\n[^$].*?(\d)", block.text)
    assert inside is not None
    place = page.index(block.text, block.start) + inside.start(1)
    other = str((int(page[place]) + 1) % 10)
    changed = next(b for b in blocks(page[:place] + other + page[place + 1 :]) if b.heavy)
    assert changed.code != code_of(changed.text)


def test_every_figure_and_page_that_it_points_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text())
    assert len(links) > 5
    for link in links:
        assert (ROOT / "docs" / link).exists(), link
    for figure in FIGURES.glob("*.svg"):
        assert f"figures/{figure.name}" in text()


def test_nothing_is_left_to_fill_in() -> None:
    assert "@@" not in text()


def test_what_a_counterfactual_offers_to_type_next_can_be_typed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    program = "python run_warroom.py"
    desk.type(f"{program} run --scenario cloudedge/hard --steps 2 --store inprocess --out one")
    told = desk.type(
        f"{program} counterfactual one/* --drop cost --store inprocess --out two"
    ).lines
    command = told[-1].removeprefix("next:").strip()
    assert command.startswith(f"{program} trace diff one/")
    assert any(line.startswith("first  step 1") for line in desk.type(f"{command} || true").lines)
