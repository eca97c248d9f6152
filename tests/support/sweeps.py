"""Rows of tournaments, made by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from orchestrator.study.ledger import Row


def row(seed: int = 0, score: float | None = 0.5, **changes: Any) -> Row:
    """A finished episode; its cell follows from what it is."""
    data: dict[str, Any] = {
        "scenario": "cloudedge/hard",
        "seed": seed,
        "protocol": "weighted_score",
        "set": "default",
        "personas": {"resource": "resource", "cost": "cost"},
        "score": score,
        "reward_total": None if score is None else 100 * score,
        "success": score is not None and score >= 0.5,
        "success_any": True,
        "steps": 30,
        "stop_reason": "horizon",
        "violations": [],
        "metrics_end": {"latency_ms": 100.0 + seed},
        "usage": {"calls": 0, "tokens_in": 0, "tokens_out": 0, "usd": 0.0},
        "trace": "",
        "trace_sha": "00",
        "error": None,
    }
    data |= changes
    name = f"{data['scenario']}|{data['protocol']}|{data['set']}|{seed}"
    return Row.model_validate({"cell": hashlib.sha256(name.encode()).hexdigest()[:16], **data})


def failed(seed: int = 0, what: str = "no", **changes: Any) -> Row:
    """A cell that could not be played."""
    fault = {"what": what, "why": "it is impossible", "fix": "Take another"}
    nothing = dict.fromkeys(
        ("success", "success_any", "steps", "violations", "metrics_end", "usage")
    )
    return row(seed, None, error=fault, **nothing, **changes)


def arm(score_of: Callable[[int], float], seeds: range, **changes: Any) -> list[Row]:
    """One arm: a score for every seed."""
    return [row(seed, score_of(seed), **changes) for seed in seeds]
