"""The page on protocols says what there is, and its code runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from policies.protocols import protocol, protocol_names
from policies.protocols.conformance import check_protocol
from policies.records import Decision
from tests.support.tables import context, settle

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_one_shot_protocol_has_a_section_and_a_row() -> None:
    text = page()
    for name in protocol_names():
        if protocol(name).max_rounds == 0:
            assert f"### `{name}`" in text
            assert text.count(f"`{name}`") > 2 or name == "cloudedge_boardroom"


def test_every_section_is_about_a_protocol_that_exists() -> None:
    named = re.findall(r"^### `(\w+)`", page(), re.MULTILINE)
    assert set(named) <= set(protocol_names())


def test_the_page_leaves_nothing_to_fill_in() -> None:
    assert "@@" not in page()


def test_the_protocol_in_ten_lines_runs_and_conforms() -> None:
    blocks = re.findall(r"```python\n(.*?)```", page(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(blocks[0], names)  # noqa: S102 (our own page)
    own = names["Maximin"]()
    assert check_protocol(own) == []
    decision: Decision = settle(own.decide(context([[5.0, 2.0], [0.0, 1.0]])))
    assert decision.chosen.id == "b"
    assert decision.reason == "nobody gets less than 1"
    assert "check_protocol" in blocks[1]
