"""Rooms whose seats speak through the scripted endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.room import Room, build_room
from orchestrator.spec import EpisodeSpec
from tests.support.llm_stub import LLMStub

SEATS = ("resource", "cost", "sustainability", "janitor")


def with_every(field: str) -> tuple[str, ...]:
    """One override for each default seat."""
    return tuple(f"{seat}.{field}" for seat in SEATS)


def llm_spec(stub: LLMStub | None = None, **fields: Any) -> EpisodeSpec:
    """A short episode with four model seats, in process and without files."""
    base: dict[str, Any] = {
        "scenario": "cloudedge/hard",
        "model": "stub",
        "base_url": stub.url if stub else "",
        "store": "inprocess",
        "driver": "loop",
        "out": "",
        "steps": 3,
        "samples": 2,
        "lookahead_steps": 2,
    }
    return EpisodeSpec(**{**base, **fields})


def llm_room(stub: LLMStub | None = None, **fields: Any) -> Room:
    """The room of `llm_spec`."""
    return build_room(llm_spec(stub, **fields))


def outcomes(events: list[dict[str, Any]]) -> Mapping[str, int]:
    """Outcome of model calls → how often."""
    counts: dict[str, int] = {}
    for event in events:
        if event["type"] == "llm_call":
            word = event["data"]["outcome"]
            counts[word] = counts.get(word, 0) + 1
    return counts
