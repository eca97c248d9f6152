"""CloudEdge's rule personas: the original agents' proposals first, sensible alternatives after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agents.persona import load_persona
from agents.seat import make_persona
from agents.validate import validated_reply
from policies.records import Proposal, Reply
from tests.support.asks import request_of
from world.actions import Action
from world.model import Observation, Scenario, World
from world.scenarios.loader import load_scenario
from world.worlds.registry import make_world

SEATS = ("resource", "cost", "sustainability", "janitor")
VARIANTS = ("cloudedge/hard", "cloudedge/seed/hard", "cloudedge/seed-open/hard")
CRISIS = Action.of("crisis_response", server_count=5, region="canada-hydro")


@pytest.fixture(scope="module", params=VARIANTS)
def scene(request: pytest.FixtureRequest) -> tuple[Scenario, World[Any]]:
    scenario = load_scenario(request.param)
    return scenario, make_world(scenario)


def seen(
    world: World[Any],
    scenario: Scenario,
    metrics: tuple[float | None, float | None, float | None],
    last: str = "",
    crisis: bool = False,
    step: int = 1,
) -> Observation:
    """The world's own observation with other numbers in it."""
    start = world.observe(world.reset(scenario, [1]))
    names = ("latency_ms", "cost_usd_per_hour", "carbon_index")
    facts = {**start.facts, "last_action": last, "crisis": crisis}
    return Observation(
        step, start.horizon, dict(zip(names, metrics, strict=True)), start.targets, facts
    )


def proposals(
    scene: tuple[Scenario, World[Any]],
    seat: str,
    now: tuple[float | None, float | None, float | None],
    before: tuple[float | None, float | None, float | None] | None = None,
    last: str = "",
    crisis: bool = False,
) -> tuple[Proposal, ...]:
    scenario, world = scene
    views = [] if before is None else [seen(world, scenario, before, step=0)]
    views.append(seen(world, scenario, now, last, crisis))
    request = request_of(world, scenario, views, seat=seat)
    reply = make_persona(load_persona(seat), seat).answer(request)
    assert isinstance(reply, Reply)
    return validated_reply(request, reply).proposals


def first(
    scene: tuple[Scenario, World[Any]],
    seat: str,
    now: tuple[float | None, float | None, float | None],
    before: tuple[float | None, float | None, float | None] | None = None,
) -> str:
    return proposals(scene, seat, now, before)[0].actions[0].kind


Triple = tuple[float, float, float]
CASES: list[tuple[str, Triple, Triple | None, str]] = [
    ("resource", (200.1, 1, 1), None, "scale_up"),
    ("resource", (200.1, 1, 1), (300, 1, 1), "scale_up"),
    ("resource", (200.0, 1, 1), (200.0, 1, 1), "scale_up"),
    ("resource", (150.1, 1, 1), None, "scale_up"),
    ("resource", (150.0, 1, 1), None, "optimize_energy"),
    ("cost", (180.1, 450.1, 1), None, "optimize_energy"),
    ("cost", (180.0, 450.1, 1), None, "scale_down"),
    ("cost", (180.0, 450.1, 1), (1, 450.1, 1), "scale_down"),
    ("cost", (170.0, 450.1, 1), (1, 460.0, 1), "optimize_energy"),
    ("cost", (160.0, 450.1, 1), (1, 460.0, 1), "scale_down"),
    ("cost", (160.1, 400.1, 1), None, "optimize_energy"),
    ("cost", (160.0, 400.1, 1), None, "scale_down"),
    ("cost", (100.0, 400.0, 1), None, "optimize_energy"),
    ("sustainability", (1, 1, 350.1), None, "migrate_region"),
    ("sustainability", (1, 1, 280.1), None, "migrate_region"),
    ("sustainability", (1, 1, 280.0), None, "optimize_energy"),
    ("sustainability", (1, 1, 220.1), None, "optimize_energy"),
    ("sustainability", (180.1, 1, 220.0), None, "optimize_energy"),
    ("sustainability", (180.0, 1, 220.0), None, "scale_down"),
]


@pytest.mark.parametrize(("seat", "now", "before", "kind"), CASES)
def test_proposal_one_is_the_original_agents_rule(
    scene: tuple[Scenario, World[Any]], seat: str, now: Triple, before: Triple | None, kind: str
) -> None:
    assert first(scene, seat, now, before) == kind


def grid() -> Iterator[Triple]:
    for latency in (100.0, 150.0, 155.0, 165.0, 175.0, 190.0, 210.0, 300.0):
        for cost in (300.0, 400.0, 420.0, 450.0, 500.0):
            for carbon in (100.0, 220.0, 250.0, 280.0, 300.0, 400.0):
                yield latency, cost, carbon


def test_every_proposal_names_numbers_and_no_proposal_comes_twice(
    scene: tuple[Scenario, World[Any]],
) -> None:
    scenario, world = scene
    for now in grid():
        for seat in SEATS:
            found = proposals(scene, seat, now, last="scale_down")
            assert 1 <= len(found) <= 8
            assert len({proposal.actions for proposal in found}) == len(found)
            view = seen(world, scenario, now, "scale_down")
            for proposal in found:
                assert world.check(view, proposal.actions[0]) is None
                assert any(character.isdigit() for character in proposal.rationale)
                assert proposal.actions[0].kind in proposal.rationale


def test_in_a_crisis_every_seat_asks_for_the_full_response_first(
    scene: tuple[Scenario, World[Any]],
) -> None:
    for seat in SEATS:
        found = proposals(scene, seat, (260.0, 620.0, 380.0), crisis=True)
        assert found[0].actions == (CRISIS,)
        assert "crisis" in found[0].rationale
        assert len(found) > 1


def test_the_janitor_never_repeats_the_last_action_first(
    scene: tuple[Scenario, World[Any]],
) -> None:
    for last in ("", "scale_up", "scale_down", "optimize_energy", "migrate_region"):
        found = proposals(scene, "janitor", (140.0, 390.0, 210.0), last=last)
        assert found[0].actions[0].kind != last
    assert first(scene, "janitor", (140.0, 390.0, 210.0)) == "scale_down"


def test_metrics_that_are_not_known_neither_crash_nor_invent(
    scene: tuple[Scenario, World[Any]],
) -> None:
    for seat in SEATS:
        for crisis in (False, True):
            found = proposals(scene, seat, (None, None, None), crisis=crisis)
            assert found
            assert all("nan" not in proposal.rationale for proposal in found)


def test_the_rationale_of_a_wish_says_the_value_the_limit_and_the_effect() -> None:
    scenario = load_scenario("cloudedge/hard")
    found = proposals((scenario, make_world(scenario)), "resource", (281.3, 620.0, 380.0))
    assert found[0].rationale == (
        "latency 281.3 ms is above 200 and not improving (with no earlier value): "
        "scale_up (latency -25 to -40 ms, cost +12 to +22 $/h, carbon +8 to +15)"
    )
