"""Makes synthetic traces: whole episodes of plausible events, no world and no store needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.trace.events import SCHEMA, Chain, Event, event
from orchestrator.trace.writer import TraceWriter

SEATS = ("resource", "cost", "sustainability", "janitor")
CANDIDATES = ("migrate_region", "optimize_energy", "scale_down", "scale_up")
TARGETS = {"latency_ms": 150.0, "cost_usd_per_hour": 280.0, "carbon_index": 400.0}
HOSTILE = "\x1b[2Jlatency\x07 [red]bold[/red] \u202egnp.exe\r\n[STEP] step=9 \ud800=1"


def run_started(steps: int = 3, seed: int = 1, **extra: Any) -> Event:
    """The first event."""
    seats = [
        {
            "seat": seat,
            "persona": "cost_hawk" if seat == "cost" else seat,
            "digest": "d" * 64,
            "backend": "rules",
            "weight": 0.5 if seat == "janitor" else 1.0,
        }
        for seat in SEATS
    ]
    data = {
        "schema": SCHEMA,
        "scenario": {
            "name": "cloudedge/hard",
            "digest": "a" * 64,
            "world": "cloudedge",
            "horizon": steps,
            "targets": TARGETS,
        },
        "seed": seed,
        "horizon": steps,
        "seats": seats,
        "protocol": {"name": "weighted_score", "digest": "b" * 64},
        "room": {"no_deal": "weighted_score", "lookahead_steps": 1, "samples": 0},
        **extra,
    }
    return event("run_started", 0, 0, data)


def _metrics(step: int) -> dict[str, float]:
    return {
        "latency_ms": 190.0 - 10.0 / 3.0 * step,
        "cost_usd_per_hour": 250.123456789 + step,
        "carbon_index": 401.5 - step,
    }


def _utilities(seat: int, step: int) -> dict[str, float]:
    return {name: (3 * seat + 5 * at + step) % 7 / 7 for at, name in enumerate(CANDIDATES)}


def step_events(
    step: int,
    *,
    chosen: str = "scale_up",
    crisis: bool = False,
    vetoed: Sequence[tuple[str, str]] = (),
    overridden_from: str = "",
    rationale: str = "latency is above its target",
    talk: bool = False,
) -> Iterator[Event]:
    """All events of one step.

    Args:
        step: Step, 1….
        chosen: Id that is decided on.
        crisis: Whether the crisis flag is up.
        vetoed: ``(seat, candidate)`` pairs.
        overridden_from: What the plain rule would have chosen.
        rationale: Text of every seat's first proposal.
        talk: Whether the seats exchange an offer, a response and a message.
    """
    yield event(
        "observation",
        step,
        0,
        {
            "metrics": _metrics(step),
            "targets": TARGETS,
            "facts": {"crisis": crisis, "crisis_base_steps": 8, "load": "high"},
            "incidents": ["carbon crisis"] if crisis else [],
            "unknown": ["next_crisis_step"],
        },
    )
    items = [
        {"id": n, "origin": ["catalogue"], "feasible": True, "reasons": [], "projected": {"u": 1.5}}
        for n in CANDIDATES
    ]
    yield event("candidates", step, 0, {"items": items, "dropped": [], "resources": {}})
    for at, seat in enumerate(SEATS):
        utilities = _utilities(at, step)
        ranking = sorted(utilities, key=lambda name: (-utilities[name], name))
        proposals = [] if seat == "janitor" else [{"id": ranking[0], "rationale": rationale}]
        yield event(
            "ballot",
            step,
            0,
            {
                "proposals": proposals,
                "utilities": utilities,
                "ranking": ranking,
                "weight": 0.5 if seat == "janitor" else 1.0,
                "abstains": False,
            },
            seat,
        )
    for seat, candidate in vetoed:
        data = {"candidate": candidate, "rule": f"{seat}/red_line/1", "reason": "over its line"}
        yield event("veto", step, 0, data, seat)
    if talk:
        asked = {"kind": "respond", "payload": {"offer": "scale_down", "by": "cost"}}
        yield event("offer", step, 1, asked, "resource")
        yield event("response", step, 1, {"accept": False, "counter": "scale_up"}, "resource")
        yield event("message", step, 1, {"text": rationale}, "resource")
    yield event("decision", step, 0, _decision(step, chosen, vetoed, overridden_from))
    yield event(
        "applied",
        step,
        0,
        {
            "actions": [{"id": chosen, "status": "applied", "effect": "done", "reason": ""}],
            "events": [],
            "metrics": _metrics(step + 1),
            "success": False,
            "state": "c" * 64,
        },
    )
    grade = {"reward": -18.0 + step, "terms": {"latency": -18.0 + step}, "success": False}
    yield event("grade", step, 0, grade)


def _decision(
    step: int, chosen: str, vetoed: Sequence[tuple[str, str]], overridden_from: str
) -> Mapping[str, Any]:
    totals = {
        name: sum(_utilities(at, step)[name] for at in range(len(SEATS))) for name in CANDIDATES
    }
    return {
        "chosen": chosen,
        "action": chosen,
        "protocol": "weighted_score",
        "agreement": True,
        "reason": "highest weighted sum",
        "scores": totals,
        "eliminated": {candidate: f"vetoed by {seat}" for seat, candidate in vetoed},
        "rounds": 0,
        "overridden_from": overridden_from,
        "override_rule": "safety/1" if overridden_from else "",
        "tie": [],
        "no_deal": "",
    }


def run_ended(steps: int = 3) -> Event:
    """The last event, with a scorecard."""
    component = {
        "value": 0.3,
        "weight": 0.5,
        "unit": "fraction",
        "explanation": "all three targets at once",
        "steps": [1],
    }
    rewards = [-18.0 + step for step in range(1, steps + 1)]
    data = {
        "stop_reason": "horizon",
        "steps": steps,
        "reward_total": sum(rewards),
        "rewards": rewards,
        "scorecard": {
            "total": 0.412,
            "success": False,
            "success_any": True,
            "components": {"joint_time_in_target": component},
            "violations": ["terminated an essential resource"],
            "baselines": {"random": -80.0, "best_known": 728.0},
            "note": "",
        },
    }
    return event("run_ended", steps, 0, data)


def commits(steps: int = 3, *, ended: bool = True, **options: Any) -> Iterator[list[Event]]:
    """A plain episode, one list of events per commit; `options` go to every `step_events`."""
    yield [run_started(steps)]
    for step in range(1, steps + 1):
        yield list(step_events(step, **options))
    if ended:
        yield [run_ended(steps)]


def lines(batches: Iterator[list[Event]] | Sequence[list[Event]]) -> list[list[bytes]]:
    """The chained lines of each commit."""
    chain = Chain()
    return [[chain.add(entry) for entry in batch] for batch in batches]


def write_trace(path: Path, batches: Iterator[list[Event]] | Sequence[list[Event]]) -> Path:
    """Write commits to a new trace file."""
    with TraceWriter(path) as writer:
        for batch in lines(batches):
            writer.append(batch)
    return path


def small_trace(path: Path) -> Path:
    """The smallest complete trace that has every kind of commit and a seat in it."""
    batches = [
        [event("run_started", 0, 0, {"schema": SCHEMA, "seed": 1})],
        [
            event("ballot", 1, 0, {"utilities": {"é": -0.5}}, "cost"),
            event("grade", 1, 0, {"reward": 1e-9}),
        ],
        [event("run_ended", 1, 0, {"stop_reason": "horizon"})],
    ]
    return write_trace(path, batches)
