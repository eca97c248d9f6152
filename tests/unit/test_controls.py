"""The operator's controls: freezes, blast radius by share, the way back, error-budget burn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.spec import EpisodeSpec
from orchestrator.trace.show import plain, story
from policies.controls import frozen_out, parse_freeze, reach
from policies.guardrails import Bounds, Gate
from policies.undo import CANNOT, NOTHING, undo_line
from tests.support.asked import request
from tests.support.rooms import room
from tests.support.runs import play
from tests.support.traces import commits, write_trace
from world.actions import Action, parse_action
from world.errors import ConfigError
from world.graders.burn import burn_of, burn_rate
from world.model import Inventory, Observation
from world.scenarios.loader import load_scenario, read_scenario


def estate(**changes: Any) -> Observation:
    """Three pools of two services, a volume, no incident, at 23:30."""
    inventory = Inventory(
        ids=("web.a", "web.b", "api.a", "vol"),
        columns={
            "kind": np.array([0, 0, 0, 1]),
            "service": np.array([0, 0, 1, 2]),
            "count": np.array([30.0, 10.0, 1.0, 0.0]),
            "size": np.array([1, 0, 1, 0]),
            "weight": np.array([1.0, 0.5, 1.0, 0.0]),
            "state": np.array([0, 0, 0, 0]),
            "snapshot_taken": np.array([0, 0, 0, 1]),
        },
        vocabulary={
            "kind": ("compute", "volume"),
            "service": ("web", "api", ""),
            "size": ("small", "large"),
            "state": ("running", "terminated"),
        },
    )
    facts = {
        "hour_utc": 23.5,
        "crisis": False,
        "services": {
            "web": {"eco_level": 2, "autoscaler": True},
            "api": {"eco_level": 0, "autoscaler": False},
        },
    }
    seen = Observation(4, 30, {}, {}, facts, inventory)
    return replace(seen, **changes)


# -- freezes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "step", "hour", "holds"),
    [
        ("10:20", 10, None, True),
        ("10:20", 20, 3.0, True),
        ("10:20", 21, None, False),
        ("22-06", 1, 23.0, True),
        ("22-06", 1, 5.99, True),
        ("22-06", 1, 6.0, False),
        ("09:30-17:00", 1, 9.4, False),
        ("09:30-17:00", 1, 9.5, True),
        ("22-06", 1, None, False),
    ],
)
def test_a_freeze_holds_in_its_window(
    text: str, step: int, hour: float | None, holds: bool
) -> None:
    assert parse_freeze(text).holds(step, hour) is holds


@pytest.mark.parametrize("text", ["", "20:10", "0:5", "25-26", "5-5", "always", "1:2:3", "１:2"])
def test_a_window_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="For example 10:20"):
        parse_freeze(text)


@pytest.mark.parametrize(
    ("action", "incidents", "said"),
    [
        ("nop", (), ""),
        ("analyse:web", (), ""),
        ("request_metrics:vol", (), ""),
        ("resize:web.a:new_size=small", (), "it is no incident remedy"),
        ("terminate:vol", ("alert: web",), "it is no incident remedy"),
        ("rollback:web", (), "no incident is open"),
        ("rollback:web", ("alert: web",), ""),
    ],
)
def test_a_freeze_lets_questions_pass_always_and_remedies_in_an_incident(
    action: str, incidents: tuple[str, ...], said: str
) -> None:
    why = frozen_out((parse_freeze("1:9"),), estate(incidents=incidents), parse_action(action))
    assert why.endswith(said)
    assert bool(why) is bool(said)
    assert (
        frozen_out((parse_freeze("6:9"),), estate(incidents=incidents), parse_action(action)) == ""
    )


def test_during_a_freeze_a_room_only_asks_and_remedies(tmp_path: Path) -> None:
    played = play(room(scenario="cloud/medium", steps=6, freeze=("1:4",)))
    kinds = [
        {action["id"].partition(":")[0] for action in event["data"]["actions"]}
        for event in played.of("applied")
    ]
    changes = {"resize", "terminate", "scale_down", "stop", "migrate_region", "optimize_energy"}
    assert not set().union(*kinds[:4]) & changes
    free = play(room(scenario="cloud/medium", steps=6))
    assert {e["data"]["action"] for e in free.of("decision")} - {
        e["data"]["action"] for e in played.of("decision")
    }
    refused = str([e["data"]["eliminated"] for e in played.of("decision")])
    assert "guard/freeze" in refused


def test_a_world_that_cannot_stand_still_cannot_be_frozen() -> None:
    with pytest.raises(ConfigError, match="doing nothing is not an action"):
        room(scenario="cloudedge/hard", freeze=("1:4",))


def test_a_scenario_file_may_name_its_controls_and_keeps_its_digest_without(
    tmp_path: Path,
) -> None:
    shipped = load_scenario("cloud/easy")
    source = Path("world/scenarios/cloud/easy.toml").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(
        source.replace('name = "cloud/easy"', 'name = "mine"')
        + '\n[controls]\nfreeze = ["2:3"]\nblast_share = 0.5\n'
    )
    mine = read_scenario(path)
    assert mine.controls == {"freeze": ["2:3"], "blast_share": 0.5}
    assert replace(mine, name=shipped.name, controls={}).digest == shipped.digest
    assert replace(mine, name=shipped.name).digest != shipped.digest
    base = room(scenario=str(path), freeze=("9:9",))
    assert [freeze.text for freeze in base.rules.freezes] == ["2:3", "9:9"]
    assert base.header()["room"]["blast_share"] == 0.5


# -- blast radius ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joint", "share", "refused"),
    [
        (("resize:web.a:new_size=small",), 0.5, "30 of 40 in service web (compute)"),
        (("resize:web.b:new_size=large",), 0.5, ""),
        (("scale_down:web.a:fraction=0.5",), 0.4, ""),
        (("scale_down:web.a:fraction=0.5",), 0.3, "15 of 40"),
        (("resize:api.a:new_size=small",), 0.1, ""),  # one instance may always be touched
        (("restart:web",), 0.5, "service web"),
        (("scale_up:web.a",), 0.01, ""),
        (("analyse:web",), 0.01, ""),
        (("terminate:vol", "resize:web.b:new_size=large"), 0.3, "2 of 4 in the fleet"),
    ],
)
def test_a_step_touches_no_larger_share_than_is_allowed(
    joint: tuple[str, ...], share: float, refused: str
) -> None:
    parts = reach(estate(), tuple(map(parse_action, joint)))
    over = [
        f"{p.units:g} of {p.total:g} in {p.of}" for p in parts if p.share > share and p.units > 1
    ]
    assert bool(over) is bool(refused)
    assert refused in " ".join(over)


def test_a_remedy_is_not_held_back_by_its_reach_while_an_incident_is_open() -> None:
    joint = (Action("rollback", "web"),)
    assert reach(estate(), joint)[0].share == 1.0
    assert reach(estate(incidents=("alert",)), joint) == ()


def test_the_gate_names_the_share_in_a_real_world() -> None:
    asked = request(scenario="cloud/medium")
    inventory = asked.observation.inventory
    assert inventory is not None
    action = next(
        a
        for a in asked.world.catalogue(asked.observation)
        if a.kind == "resize" and "web" in a.target
    )
    gate = Gate(asked.world, asked.observation, Bounds(3, blast_share=0.1))
    assert any(why.startswith("guard/blast_share: ") for why in gate.refusals((action,)))
    free = Gate(asked.world, asked.observation, Bounds(3)).refusals((action,))
    assert not any(why.startswith("guard/blast_share") for why in free)


# -- the way back ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("mark:vol", "unmark:vol"),
        ("stop:vm", "start:vm"),
        ("start:vm", "stop:vm"),
        ("detach:vol", "attach:vol"),
        ("resize:web.a:new_size=small", "resize:web.a:new_size=large"),
        ("rebalance:web.b:weight=4.0", "rebalance:web.b:weight=0.5"),
        ("optimize_energy:web:level=0", "optimize_energy:web:level=2"),
        ("set_autoscaler:api:enabled=True", "set_autoscaler:api:enabled=False"),
        ("scale_down:web.a:fraction=0.5", "scale_up:web.a:fraction=1.0"),
        ("scale_up:web.b:fraction=0.25", "scale_down:web.b:fraction=0.166667"),
        ("isolate:web.a", "start:web.a"),
        ("terminate:web.a", CANNOT),
        ("terminate:vol", f"{CANNOT}; its data are in a snapshot"),
        ("restore_backup:web-db", CANNOT),
        ("buy_reserved:web.a", CANNOT),
        ("snapshot:vol", NOTHING),
        ("analyse:web", NOTHING),
        ("nop", NOTHING),
        ("resize:gone:new_size=small", CANNOT),
    ],
)
def test_every_action_says_how_it_is_taken_back(action: str, line: str) -> None:
    assert undo_line(estate(), parse_action(action)) == line


def test_an_undo_line_takes_back_as_many_instances_as_were_changed() -> None:
    seen = estate()
    for text in ("scale_up:web.a:fraction=0.25", "scale_down:web.a:fraction=0.1"):
        action = parse_action(text)
        moved = np.floor(30 * float(action.param("fraction") or 0) + 1e-9)
        after = 30 + moved if action.kind == "scale_up" else 30 - moved
        back = parse_action(undo_line(seen, action))
        assert np.floor(after * float(back.param("fraction") or 0) + 1e-9) == moved


def test_the_trace_carries_the_way_back_of_what_was_applied() -> None:
    played = play(room(scenario="cloud/medium", steps=4))
    applied = [a for e in played.of("applied") for a in e["data"]["actions"]]
    assert all(("undo" in a) is (a["status"] == "applied") for a in applied)
    assert any(a.get("undo") not in {None, NOTHING} for a in applied)


# -- error budgets ---------------------------------------------------------------------------


def measured(*errors: float | None, dt_minutes: float = 5.0) -> list[Observation]:
    """A service with an error SLO of 1 % and these error fractions."""
    return [
        Observation(
            step,
            99,
            {},
            {},
            {
                "dt_minutes": dt_minutes,
                "services": {"web": {"error_fraction": value, "slo_error_fraction": 0.01}},
            },
        )
        for step, value in enumerate(errors)
    ]


def test_burn_is_the_mean_error_in_budgets_over_each_window() -> None:
    assert burn_rate([0.0] * 11 + [0.12], 0.01, 60.0, 5.0) == pytest.approx(1.0)
    burn = burn_of(measured(*[0.0] * 60, *[0.2] * 12))["web"]
    assert burn["1h"] == pytest.approx(20.0)
    assert burn["6h"] == pytest.approx(20 / 6)
    assert burn["alerts"] == ["1h", "3d"]


def test_an_alert_needs_the_long_and_the_short_window() -> None:
    over = burn_of(measured(*[0.5] * 11, 0.0))["web"]
    assert over["1h"] > 14.4
    assert "1h" not in over["alerts"]


def test_gaps_are_left_out_and_worlds_without_services_have_no_budgets() -> None:
    assert burn_of(measured(None, 0.02, None))["web"]["1h"] == pytest.approx(2.0)
    assert burn_of(measured(None)) == {}
    assert burn_of([request().observation]) == {}
    assert burn_of([]) == {}


def test_the_trace_of_a_cloud_episode_carries_the_burn_of_each_service() -> None:
    played = play(room(scenario="cloud/medium", steps=2))
    burn = played.of("observation")[-1]["data"]["burn"]
    assert set(burn) >= {"web", "api"}
    assert set(burn["web"]) == {"1h", "6h", "3d", "alerts"}


def test_controls_that_are_not_used_leave_no_word_in_the_header() -> None:
    assert not {"approve", "freeze", "blast_radius", "blast_share"} & set(
        room(scenario="cloud/easy").header()["room"]
    )
    assert EpisodeSpec().approve == "none"


def test_the_story_tells_an_alert_with_its_tails_and_how_each_change_is_taken_back(
    tmp_path: Path,
) -> None:
    lists = list(commits(1))
    told = []
    for event in (event for events in lists for event in events):
        data = dict(event.data)
        if event.type == "observation":
            data["facts"] = {"services": {"web": {"p95_ms": 400.0, "p99_ms": 712.5}}}
            data["burn"] = {
                "web": {"1h": 22.5, "6h": 7.0, "3d": 3.0, "alerts": ["1h", "6h"]},
                "api": {"1h": 0.1, "6h": 0.1, "3d": 0.1, "alerts": []},
            }
        elif event.type == "applied":
            data["actions"] = [
                {"id": "resize:vm:new_size=l", "status": "applied", "undo": "resize:vm:new_size=s"},
                {"id": "terminate:vol", "status": "applied", "undo": CANNOT},
                {"id": "analyse:web", "status": "applied", "undo": NOTHING},
            ]
        told.append(replace(event, data=data))
    path = write_trace(tmp_path / "t.jsonl", [told])
    text = "\n".join(plain(line) for line in story(path, width=160))
    assert (
        "! web burns its error budget: 22.5× over 1h, 7× over 6h, 3× over 3d (alert: 1h, 6h); "
        "p95 400, p99 712.5 ms"
    ) in text
    assert "api burns" not in text
    assert "undo resize:vm:new_size=l: resize:vm:new_size=s" in text
    assert "undo terminate:vol: cannot be undone" in text
    assert "undo analyse" not in text
