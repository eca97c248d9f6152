"""The language models of a room: which seats speak through one, and what they share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.overrides import apply_overrides
from agents.persona_schema import PersonaSpec
from orchestrator.spec import EpisodeSpec
from world.errors import ConfigError

if TYPE_CHECKING:
    from agents.backends.llm.desk import ModelDesk

_VOICED_BY_MODEL = frozenset({"rules", "llm"})
"""Backends that ``--model`` replaces. People, scripts and other processes keep their own voice."""


def voiced_by_model(
    spec: EpisodeSpec, personas: Mapping[str, PersonaSpec]
) -> dict[str, PersonaSpec]:
    """The personas of a room with ``--model`` and ``--usd-per-mtok`` put into their files.

    A ``--set`` of the same field wins; it was applied before and names the seat.
    """
    model = spec.model
    if not model and spec.playback:
        from agents.backends.llm.recording import recorded_model

        model = recorded_model(Path(spec.playback))
    changed = {entry.partition("=")[0].strip() for entry in spec.overrides}
    return {
        seat: _voiced(spec, seat, persona, model, changed) for seat, persona in personas.items()
    }


def _voiced(
    spec: EpisodeSpec, seat: str, persona: PersonaSpec, model: str, changed: set[str]
) -> PersonaSpec:
    kind = persona.backend.kind
    if model and kind in _VOICED_BY_MODEL and f"{seat}.backend.kind" not in changed:
        kind = "llm"
    if kind != "llm":
        return persona
    found = {"backend.kind": kind}
    if f"{seat}.model.name" not in changed:
        name = model or persona.model.name or spec.default_model
        found |= {"model.name": json.dumps(name)} if name else {}
    prices = _prices(spec.usd_per_mtok)
    found |= dict(zip(("model.usd_per_mtok_in", "model.usd_per_mtok_out"), prices, strict=False))
    kept = {field: text for field, text in found.items() if f"{seat}.{field}" not in changed}
    return apply_overrides(persona, [f"{field}={text}" for field, text in kept.items()])


def _prices(text: str) -> tuple[str, ...]:
    """``IN/OUT`` in dollars per million tokens; nothing where nothing was said."""
    if not text:
        return ()
    try:
        prices = tuple(float(part) for part in text.split("/"))
    except ValueError:
        prices = ()
    if len(prices) != 2 or not all(0 <= price < 1e9 for price in prices):
        raise ConfigError(
            f"--usd-per-mtok is {text[:40]!r}",
            "it is two prices in dollars per million tokens: prompt/answer",
            "For example --usd-per-mtok 0.15/0.60",
        )
    return tuple(repr(price) for price in prices)


def make_desk(
    spec: EpisodeSpec, personas: Mapping[str, PersonaSpec], speaks: bool = True
) -> ModelDesk | None:
    """What the room's llm seats share, ready for the first call; None where there is none.

    Args:
        spec: What the room was asked to be.
        personas: Seat → persona, as `voiced_by_model` gives them.
        speaks: False makes nothing ready: no key, price, client or recording is looked at.

    Raises:
        ConfigError: A model, key, price or recording that is missing, or options without a model.
        MissingExtraError: The client is not installed.
    """
    speaking = {seat: found for seat, found in personas.items() if found.backend.kind == "llm"}
    if not speaking:
        for option, value in (("record", spec.record), ("playback", spec.playback)):
            if value:
                raise ConfigError(
                    f"--{option} {value}",
                    "no seat of this room speaks through a model",
                    "Give --model NAME, or --set ROLE.backend.kind=llm",
                )
        return None
    if spec.record and spec.playback:
        raise ConfigError(
            "--record does not go with --playback",
            "what is played back is recorded already",
            "Drop one of them",
        )
    from agents.backends.llm.desk import DeskSettings, ModelDesk

    if not speaks:
        return ModelDesk(DeskSettings())
    desk = ModelDesk(
        DeskSettings(
            base_url=spec.base_url,
            model=spec.model,
            budget_usd=spec.budget_usd,
            record=spec.record,
            playback=spec.playback,
        )
    )
    desk.make_ready(speaking)
    return desk


def first_prompt(name: str, scenario: str, seed: int, search: Sequence[str] = ()) -> dict[str, Any]:
    """What a model at a persona's seat would be sent at the first step, without calling one.

    Args:
        name: Persona's name or path.
        scenario: Scenario's name or path.
        seed: Episode seed.
        search: Further folders of personas.

    Returns:
        ``{persona, seat, scenario, seed, system, user, schema, prompt_sha}``.
    """
    from agents.backends.llm.prompt import render
    from agents.backends.llm.schema import schema_of
    from agents.persona import load_persona
    from policies.records import Ask, Request
    from world.model import History
    from world.scenarios.loader import load_scenario
    from world.worlds.registry import make_world

    persona = load_persona(name, search)
    played = load_scenario(scenario)
    world = make_world(played)
    seat = persona.identity.role
    seen = world.observe(world.reset(played, [seed]))
    seen = seen.masked(played.masks[seat]) if seat in played.masks else seen
    history = History(played)
    history.observations.append(seen)
    request = Request(Ask(seat, "propose"), 0, seen, history, world)
    messages = render(persona, request)
    return {
        "persona": persona.id,
        "seat": seat,
        "scenario": played.name,
        "seed": seed,
        "system": messages.system,
        "user": messages.user,
        "schema": schema_of(request, persona.prompt.options, persona.prompt.reason_chars),
        "prompt_sha": messages.digest,
    }
