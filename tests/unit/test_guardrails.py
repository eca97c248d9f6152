from __future__ import annotations

import math

import pytest

from policies.guardrails import GUARDRAILS, Bounds, Gate, RedLine
from tests.support.tables import FleetWorld, observation
from world.actions import Action
from world.errors import ConfigError
from world.model import Joint

STOP = [Action("stop", f"m{i}") for i in range(12)]


def gate(**bounds: object) -> Gate:
    return Gate(FleetWorld(), observation(), Bounds(3, **bounds))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "crossing", "fine"),
    [
        ("<", 9.0, 10.0),
        ("<=", 10.0, 10.1),
        (">", 10.1, 10.0),
        (">=", 10.0, 9.9),
        ("==", 10.0, 9.0),
        ("!=", 9.0, 10.0),
    ],
)
def test_a_red_line_compares_as_its_operator_says(op: str, crossing: float, fine: float) -> None:
    line = RedLine("latency_ms", op, 10.0)
    assert line.crossed(crossing)
    assert not line.crossed(fine)
    assert not line.crossed(math.nan)


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "=>"},
        {"op": "__import__('os').system('true')"},
        {"on": "later"},
        {"severity": "shout"},
        {"value": math.nan},
    ],
)
def test_a_red_line_that_is_no_typed_predicate_is_refused(fields: dict[str, object]) -> None:
    whole: dict[str, object] = {"metric": "latency_ms", "op": ">", "value": 1.0, **fields}
    with pytest.raises(ConfigError):
        RedLine(**whole)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("joint", "rule"),
    [
        ((), "guard/slots"),
        (tuple(STOP[2:6]), "guard/slots"),
        ((Action("explode", "m1"),), "guard/validator"),
        ((Action("stop", "m8"),), "guard/validator"),
        ((STOP[2], STOP[2]), "guard/clash"),
        ((STOP[2], Action("shrink", "m2")), "guard/clash"),
        ((STOP[0], STOP[1]), "guard/clash"),
        ((STOP[9],), "guard/hazard"),
    ],
)
def test_each_guardrail_refuses_with_its_id_and_a_reason(joint: Joint, rule: str) -> None:
    reasons = gate().refusals(joint)
    assert len(reasons) == 1
    assert reasons[0].startswith(f"{rule}: ")
    assert len(reasons[0]) > len(rule) + 2


def test_several_guardrails_are_all_named() -> None:
    reasons = gate(blast_radius=1).refusals((STOP[9], STOP[2], Action("shrink", "m2")))
    assert [reason.split(":")[0] for reason in reasons] == [
        "guard/clash",
        "guard/hazard",
        "guard/blast_radius",
    ]


def test_the_blast_radius_counts_distinct_targets() -> None:
    pair = (STOP[2], STOP[3])
    assert gate(blast_radius=2).refusals(pair) == ()
    assert gate(blast_radius=0).refusals(pair) == ()
    assert "2 targets" in gate(blast_radius=1).refusals(pair)[0]


def test_oscillation_is_refused_only_when_asked_for_and_only_the_fourth_leg() -> None:
    recent = ("stop:m2", "stop:m3", "stop:m2")
    assert gate(recent=recent).refusals((STOP[3],)) == ()
    strict = gate(recent=recent, refuse_oscillation=True)
    assert strict.refusals((STOP[3],))[0].startswith("guard/oscillation")
    assert strict.refusals((STOP[4],)) == ()
    calm = gate(recent=("stop:m2",) * 3, refuse_oscillation=True)
    assert calm.refusals((STOP[2],)) == ()


def test_guardrails_have_stable_ids_in_a_stated_order() -> None:
    assert GUARDRAILS == (
        "guard/slots",
        "guard/validator",
        "guard/clash",
        "guard/hazard",
        "guard/blast_radius",
        "guard/blast_share",
        "guard/freeze",
        "guard/oscillation",
    )


def test_the_world_is_asked_once_per_action() -> None:
    asked: list[str] = []

    class Counting(FleetWorld):
        def check(self, observation: object, action: Action) -> str | None:
            asked.append(action.id)
            return None

    one = Gate(Counting(), observation(), Bounds(3))
    for _ in range(3):
        one.refusals((STOP[2], STOP[3]))
    assert sorted(asked) == ["stop:m2", "stop:m3"]
