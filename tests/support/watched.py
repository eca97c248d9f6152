"""What an episode tells its observers, made by hand: for tests of logs and views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.spec import EpisodeResult

RUN = "cloudedge-hard.s1.weighted_score.0a1b2c3d.1"
TARGETS = {"latency_ms": 150.0, "cost_usd_per_hour": 400.0, "carbon_index": 220.0}


def header(**changes: Any) -> dict[str, Any]:
    """What `Observer.started` is told."""
    data: dict[str, Any] = {
        "schema": "trace/1",
        "scenario": {
            "name": "cloudedge/hard",
            "digest": "00",
            "world": "cloudedge",
            "targets": dict(TARGETS),
        },
        "seed": 1,
        "horizon": 30,
        "seats": [
            {"seat": "resource", "persona": "resource", "backend": "rules"},
            {"seat": "cost", "persona": "cost", "backend": "rules"},
        ],
        "protocol": {"name": "weighted_score", "digest": "00"},
        "run": RUN,
        "driver": "loop",
        "store": "in this process, not durable",
        "trace": "",
        "resumed_at": 0,
    }
    return data | changes


def observation(crisis: bool = False, **metrics: float | None) -> dict[str, Any]:
    """Data of a live ``observation``."""
    known: Mapping[str, float | None] = {
        "latency_ms": 182.4,
        "cost_usd_per_hour": 395.0,
        "carbon_index": 221.0,
    }
    return {
        "metrics": {**known, **metrics},
        "targets": dict(TARGETS),
        "facts": {"crisis": crisis},
    }


def proposals(**rationales: str) -> dict[str, dict[str, str]]:
    """Data of a live ``proposals``: seat → its first proposal."""
    texts = {
        "resource": "latency 182.4 ms is above 150: add capacity before it gets worse",
        "cost": "395 $/h is 5 below the target",
        "sustainability": "carbon 221 is above 220",
        "janitor": "scale_up was done last step; this is the cheapest that does not repeat",
    } | rationales
    actions = {"resource": "scale_up", "cost": "scale_down", "sustainability": "optimize_energy"}
    return {
        seat: {"id": actions.get(seat, "optimize_energy"), "rationale": text}
        for seat, text in texts.items()
    }


def decision(**changes: Any) -> dict[str, Any]:
    """Data of a live ``decision``."""
    data: dict[str, Any] = {
        "chosen": "scale_up",
        "action": "scale_up",
        "protocol": "weighted_score",
        "agreement": True,
        "reason": "highest weighted sum -1.42, next optimize_energy -1.61",
        "scores": {"scale_up": -1.42, "optimize_energy": -1.61},
        "eliminated": {},
        "rounds": 0,
        "overridden_from": "",
        "override_rule": "",
        "tie": [],
        "no_deal": "",
    }
    return data | changes


def record(step: int = 1, **changes: Any) -> dict[str, Any]:
    """What `Observer.committed` is told."""
    data: dict[str, Any] = {
        "step": step,
        "horizon": 30,
        "action": "scale_up",
        "reward": -18.0,
        "done": False,
        "error": None,
        "success": False,
        "metrics": {"latency_ms": 148.2, "cost_usd_per_hour": 421.5, "carbon_index": 224.0},
        "targets": dict(TARGETS),
        "events": [],
        "proposals": proposals(),
        "decision": decision(),
    }
    return data | changes


def result(**changes: Any) -> EpisodeResult:
    """What `Observer.ended` is told."""
    data: dict[str, Any] = {
        "run": RUN,
        "scenario": "cloudedge/hard",
        "seed": 1,
        "protocol": "weighted_score",
        "personas": {"resource": "resource", "cost": "cost"},
        "driver": "loop",
        "store": "inprocess",
        "steps": 2,
        "stop_reason": "horizon",
        "success": False,
        "success_any": True,
        "score": 0.412,
        "reward_total": -18.25,
        "rewards": (-18.0, -0.25),
        "metrics_end": {"latency_ms": 148.2, "cost_usd_per_hour": 421.5, "carbon_index": 224.0},
        "violations": (),
        "usage": {"calls": 0, "tokens_in": 0, "tokens_out": 0, "usd": 0.0},
        "trace": f"runs/{RUN}/trace.jsonl",
        "trace_sha": "00",
        "scorecard": {
            "total": 0.412,
            "baselines": {"random": -80.0, "boardroom": 412.0, "best_known": 728.0},
            "note": "",
        },
    }
    return EpisodeResult.model_validate(data | changes)
