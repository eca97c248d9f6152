"""The AI-Ops page says what the tables and scenarios say."""

from __future__ import annotations

from pathlib import Path

from world.scenarios.loader import load_scenario, scenario_names
from world.worlds.aiops.diagnosis import HARM_LIMIT
from world.worlds.aiops.events import EVENTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "aiops.md").read_text(encoding="utf-8")


def row_of(name: str, number: int) -> list[str]:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip(" `") for cell in rows[number].strip("|").split("|")]


def test_the_page_lists_every_event_as_the_table_has_it() -> None:
    for event in EVENTS:
        cells = row_of(event.name, 0)
        named = [event.name, event.service, event.severity]
        assert cells[:6] == [*named, event.remedy, event.workaround, event.tempting]
        others = set(event.harmful) - {event.tempting}
        assert {part.strip(" `") for part in cells[6].split(",")} == (others or {"–"})
        assert row_of(event.name, 1)[1:] == [event.root_cause, event.harm]
        assert [float(cell) for cell in row_of(event.name, 2)[2:]] == list(event.pressure)


def test_the_page_lists_every_task_as_its_scenario_has_it() -> None:
    tasks = [n for n in scenario_names() if n.startswith("aiops/") and n.count("/") == 1]
    assert len(tasks) == 10
    for name in tasks:
        params = load_scenario(name).params
        cells = row_of(name.removeprefix("aiops/"), 0)
        assert cells[1:3] == [params["difficulty"], params["priority"]]


def test_the_page_states_the_limit_of_a_hazard() -> None:
    assert f"does harm with {100 * HARM_LIMIT:g} % probability or more" in PAGE
