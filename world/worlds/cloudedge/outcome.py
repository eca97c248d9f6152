"""What a step reports: outcome and delta as views that are worked out when somebody looks.

A step in a sweep is rarely looked at beyond its reward. `StepOutcomes` and `StepDelta` satisfy
`world.model.Outcomes` and `Delta`, hold the states and compute the rest on demand.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from world.actions import Action
from world.errors import WorldError
from world.model import ActionOutcome, Cells, Delta, Joint, Outcomes, Snapshot
from world.worlds.cloudedge.rules import (
    ALL_TARGETS,
    CRISIS_RESPONSE,
    EFFECTS,
    HYDRO,
    KINDS,
    METRICS,
    POINTS,
    REPEATED,
    STABLE,
    STABLE_AFTER_STEPS,
    Effect,
    response,
    terms_of,
)
from world.worlds.cloudedge.state import Episode, Single

_HIDDEN: Final = struct.Struct("<qqQ")
"""Next crisis step, words consumed, seed: little-endian."""
_REGIONS = {True: HYDRO, False: ""}


class StepOutcomes(Outcomes):
    """Outcome of one step, worked out from the states around it."""

    __slots__ = ("_after", "_before", "_joint")
    # A frozen parent would route every assignment through Python; views are made every step.
    __setattr__ = object.__setattr__

    def __init__(self, before: Single, after: Single, joint: Joint) -> None:
        self._before = before
        self._after = after
        self._joint = joint

    def __reduce__(self) -> tuple[type[Outcomes], tuple[Any, ...]]:
        return Outcomes, tuple(getattr(self, part.name) for part in fields(Outcomes))

    @property
    def reward(self) -> float:
        """Points of the step."""
        return POINTS[self._after.verdict]

    @property
    def terms(self) -> Mapping[str, float]:
        """Reward term → points."""
        return terms_of(self._after.verdict)

    @property
    def actions(self) -> tuple[ActionOutcome, ...]:
        """The one action, and how the metrics moved in its step."""
        old, new = self._before, self._after
        effect = (
            f"latency {old.latency_ms:.1f} → {new.latency_ms:.1f} ms, "
            f"cost {old.cost_usd_per_hour:.1f} → {new.cost_usd_per_hour:.1f} $/h, "
            f"carbon {old.carbon_index:.1f} → {new.carbon_index:.1f}"
        )
        return tuple(ActionOutcome(action, "applied", effect) for action in self._joint)

    @property
    def events(self) -> tuple[str, ...]:
        """The crisis, if one struck."""
        return (crisis_line(self._after.step),) if self._after.crisis else ()

    @property
    def success(self) -> bool:
        """Whether every target holds."""
        return self._after.verdict & ALL_TARGETS == ALL_TARGETS

    @property
    def done(self) -> bool:
        """Whether this was the last step."""
        return self._after.step >= self._after.episode.horizon

    @property
    def stop_reason(self) -> str:
        """``horizon`` after the last step."""
        return "horizon" if self.done else ""

    @property
    def violations(self) -> tuple[str, ...]:
        """No action of this world does harm beyond its metrics."""
        return ()


class StepDelta(Delta):
    """What one step changed: every scalar that the store shows, and the hidden ones packed."""

    __slots__ = ("_after",)
    __setattr__ = object.__setattr__

    def __init__(self, after: Single) -> None:
        self._after = after

    def __reduce__(self) -> tuple[type[Delta], tuple[Any, ...]]:
        return Delta, tuple(getattr(self, part.name) for part in fields(Delta))

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metric and public scalar → new value."""
        return stored_metrics(self._after)

    @property
    def hidden(self) -> bytes:
        """Next crisis step, words consumed, seed."""
        return stored_hidden(self._after)

    @property
    def cells(self) -> tuple[Cells, ...]:
        """There is no inventory."""
        return ()


def crisis_line(step: int) -> str:
    """What seats and the trace say of a crisis."""
    return f"crisis at step {step}: latency, cost and carbon jumped"


def last_action(state: Single) -> Action | None:
    """The last action in its canonical spelling; any region but the hydro one reads empty."""
    effect = state.effect
    if effect is None:
        return None
    if effect.code != CRISIS_RESPONSE:
        return Action(KINDS[effect.code])
    return Action.of(
        "crisis_response", region=_REGIONS[effect.hydro], server_count=int(effect.servers)
    )


def stored_metrics(state: Single) -> dict[str, float]:
    """Every metric and public scalar in the store's encoding."""
    effect = state.effect
    return {
        "latency_ms": state.latency_ms,
        "cost_usd_per_hour": state.cost_usd_per_hour,
        "carbon_index": state.carbon_index,
        "repeat_fraction": 1.0 if state.verdict & REPEATED else 0.0,
        "stable_steps": float(state.stable_steps),
        "crisis": 1.0 if state.crisis else 0.0,
        "last_action": -1.0 if effect is None else float(effect.code),
        "last_server_count": 0.0 if effect is None else effect.servers,
        "last_region_hydro": 1.0 if effect is not None and effect.hydro else 0.0,
    }


def stored_hidden(state: Single) -> bytes:
    """The hidden scalars, packed."""
    return _HIDDEN.pack(state.next_crisis_step, state.word, state.episode.seed)


def snapshot(state: Single) -> Snapshot:
    """One world in the store's encoding."""
    return Snapshot(state.step, stored_metrics(state), stored_hidden(state))


def restore(episode: Episode, stored: Snapshot) -> Single:
    """The state that `snapshot` was taken from.

    Raises:
        WorldError: The snapshot is of another kind of world, or of another seed's generator.
    """
    try:
        following, word, seed = _HIDDEN.unpack(stored.hidden)
        metrics = stored.metrics
        latency, cost, carbon = (metrics[name] for name in METRICS)
        stable, code = int(metrics["stable_steps"]), int(metrics["last_action"])
        servers, hydro = metrics["last_server_count"], metrics["last_region_hydro"] == 1.0
        crisis, repeated = metrics["crisis"] == 1.0, metrics["repeat_fraction"] == 1.0
        effect = None if code < 0 else _effect(code, servers, hydro)
    except (struct.error, KeyError, IndexError, ValueError) as error:
        raise WorldError(
            f"the snapshot at step {stored.step} is not one of CloudEdge",
            f"{type(error).__name__}: {error}",
            "Attach the episode with the scenario that it was created with",
        ) from error
    if episode.settings.sequential and seed != episode.seed:
        raise WorldError(
            f"the snapshot belongs to seed {seed}, not {episode.seed}",
            "a place in one seed's generator means nothing in another's",
            f"Use seed {seed}, or a cloudedge/* scenario with counter-based noise",
        )
    verdict = sum(
        (value < target) << bit
        for bit, (value, target) in enumerate(
            zip((latency, cost, carbon), episode.targets, strict=True)
        )
    )
    verdict |= STABLE * (stable >= STABLE_AFTER_STEPS) | REPEATED * repeated
    return Single(
        episode,
        stored.step,
        float(latency),
        float(cost),
        float(carbon),
        stable,
        crisis,
        effect,
        verdict,
        following,
        word,
    )


def _effect(code: int, servers: float, hydro: bool) -> Effect:
    return response(servers, hydro) if code == CRISIS_RESPONSE else EFFECTS[code]
