"""CloudEdge's rules: every constant, and one plain step of one world.

One fleet with three numbers: latency (ms), cost ($/h) and a unit-less carbon index. Five kinds of
action push them by uniform amounts, a crisis comes at irregular intervals, and the targets are
strict. `advance` is the whole step for one world in plain floats; `batch.advance_rows` is the
same step over arrays and is tested equal to the last bit.

Source: the environment KartikRaut09/ecocloud-war-room at commit d995635 (2026-04-29), restated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.errors import ScenarioError
from world.model import Scenario
from world.worlds.cloudedge.state import Single

KINDS: Final = ("scale_up", "scale_down", "optimize_energy", "migrate_region", "crisis_response")
"""Kinds in code order 0…4."""
SCALE_UP, SCALE_DOWN, OPTIMIZE_ENERGY, MIGRATE_REGION, CRISIS_RESPONSE = range(5)
METRICS: Final = ("latency_ms", "cost_usd_per_hour", "carbon_index")
HYDRO: Final = "canada-hydro"
FULL_RESPONSE_SERVERS: Final = 5
"""Servers at which a crisis response has its full effect."""

FLOORS: Final = (50.0, 100.0, 50.0)
CEILINGS: Final = (400.0, 800.0, 600.0)
_MS_MIN, _USD_MIN, _CARBON_MIN = FLOORS
_MS_MAX, _USD_MAX, _CARBON_MAX = CEILINGS
LOAD_ABOVE_MS: Final = ((250.0, "critical"), (200.0, "high"), (150.0, "medium"))

IN_TARGET_POINTS: Final = (10.0, 8.0, 8.0)
OUT_OF_TARGET_POINTS: Final = (-8.0, -6.0, -4.0)
ALL_TARGETS_POINTS: Final = 10.0
STABLE_POINTS: Final = 15.0
STABLE_AFTER_STEPS: Final = 5
REPEAT_POINTS: Final = -4.0
RECOVERY_POINTS: Final = 5.0
RECOVERED_BELOW_MS: Final = 200.0

ALL_TARGETS: Final = 0b111
"""Verdict bits 0, 1, 2: latency, cost, carbon in target."""
STABLE: Final = 1 << 3
REPEATED: Final = 1 << 4
RECOVERED: Final = 1 << 5

SHOCK_LOW: Final = (35.0, 10.0, 15.0)
SHOCK_SPAN: Final = (30.0, 15.0, 15.0)
"""A crisis adds latency U(35, 65), cost U(10, 25) and carbon U(15, 30)."""

_SHOCK_LOW, _SHOCK_SPAN = (np.array(part)[:, None] for part in (SHOCK_LOW, SHOCK_SPAN))


def rises_of(uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much crises raise latency, cost and carbon: float64 [3, n] from as many uniforms."""
    rises: NDArray[np.float64] = _SHOCK_SPAN * uniforms
    rises += _SHOCK_LOW
    return rises


_MAX_INTERVAL_STEPS = 1_000_000


class Effect(NamedTuple):
    """What one kind of action does: each metric moves by ``low + span·u``, u uniform in [0, 1).

    Attributes:
        code: Index into `KINDS`.
        servers: Server count as a number; only a crisis response has one.
        hydro: Whether a crisis response goes to the hydro region.
        scale: Factor on latency and cost (and on carbon elsewhere than in the hydro region):
            servers ÷ 5, at least 1/5.
        latency: ``(low, span)`` in ms.
        cost: ``(low, span)`` in $/h.
        carbon: ``(low, span)``.
        order: Offset in words of the latency, cost and carbon draws in a sequential generator,
            which takes two words a draw.
    """

    code: int
    servers: float
    hydro: bool
    scale: float
    latency: tuple[float, float]
    cost: tuple[float, float]
    carbon: tuple[float, float]
    order: tuple[int, int, int]


EXTRA_COST_SPAN: Final = 2.0
"""A response in the hydro region costs a further U(0, 2) $/h, drawn fourth."""

EFFECTS: Final = (
    Effect(0, 0.0, False, 1.0, (-25.0, -15.0), (12.0, 10.0), (8.0, 7.0), (0, 2, 4)),
    Effect(1, 0.0, False, 1.0, (8.0, 7.0), (-65.0, -25.0), (-5.0, -7.0), (2, 0, 4)),
    Effect(2, 0.0, False, 1.0, (3.0, 5.0), (-25.0, -15.0), (-25.0, -15.0), (2, 4, 0)),
    Effect(3, 0.0, False, 1.0, (10.0, 15.0), (5.0, 15.0), (-40.0, -30.0), (2, 4, 0)),
)
"""Effects of the four kinds without parameters, by code."""
_RESPONSE_LATENCY = (-55.0, -20.0)
_RESPONSE_COST = (2.0, 4.0)
RESPONSE_CARBON_HYDRO: Final = (-40.0, -20.0)
RESPONSE_CARBON_OTHER: Final = (5.0, 5.0)
_RESPONSE_ORDER = (0, 2, 4)


def response(servers: float, hydro: bool) -> Effect:
    """The effect of a crisis response.

    Args:
        servers: Whole number ≥ 0; below one server the effect is that of one.
        hydro: Whether the region is the hydro region.
    """
    carbon = RESPONSE_CARBON_HYDRO if hydro else RESPONSE_CARBON_OTHER
    scale = max(servers, 1.0) / FULL_RESPONSE_SERVERS
    return Effect(
        CRISIS_RESPONSE,
        servers,
        hydro,
        scale,
        _RESPONSE_LATENCY,
        _RESPONSE_COST,
        carbon,
        _RESPONSE_ORDER,
    )


def effect_table() -> NDArray[np.float64]:
    """``[6, 5]``: spans of latency, cost and carbon, then their lows, per code.

    The crisis response stands with its hydro carbon; the other region is patched by row.
    """
    effects = (*EFFECTS, response(FULL_RESPONSE_SERVERS, True))
    pairs = [(effect.latency, effect.cost, effect.carbon) for effect in effects]
    return np.array(
        [[pair[metric][part] for pair in pairs] for part in (1, 0) for metric in range(3)]
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of one CloudEdge scenario, checked.

    Attributes:
        horizon: Steps in an episode.
        start: Latency (ms), cost ($/h) and carbon index at step 0.
        targets: Strict upper bounds, same order.
        base_steps: Middle of the interval between crises.
        jitter_steps: The interval is uniform over base ± jitter.
        sequential: Whether noise is CPython's generator (the seed's) and not counter-based.
        announced: Whether a crisis response is legal only in an announced crisis.
    """

    horizon: int
    start: tuple[float, float, float]
    targets: tuple[float, float, float]
    base_steps: int
    jitter_steps: int
    sequential: bool
    announced: bool

    @staticmethod
    def of(scenario: Scenario) -> Settings:
        """Read and check a scenario.

        Raises:
            ScenarioError: A number or name is missing, unknown or out of range.
        """
        params = scenario.params
        known = {*METRICS, *_STEPS, *_WORDS, "difficulty"}
        for name in params:
            if name not in known:
                raise _wrong(
                    scenario, f"params.{name}", params[name], "it is not known here", known
                )
        for name in scenario.targets:
            if name not in METRICS:
                raise _wrong(
                    scenario, f"targets.{name}", scenario.targets[name], "no such metric", METRICS
                )
        base = _steps(scenario, "crisis_base_steps", 1)
        jitter = _steps(scenario, "crisis_jitter_steps", 0)
        if jitter >= base:
            raise _wrong(
                scenario,
                "params.crisis_jitter_steps",
                jitter,
                f"it must be below crisis_base_steps ({base})",
            )
        return Settings(
            horizon=scenario.horizon,
            start=_triple(scenario, "params", params),
            targets=_triple(scenario, "targets", scenario.targets),
            base_steps=base,
            jitter_steps=jitter,
            sequential=_word(scenario, "noise") == "mt19937",
            announced=_word(scenario, "crisis_response") == "announced",
        )

    @property
    def variant(self) -> Literal["native", "seed", "open"]:
        """``open`` has no guard, ``seed`` has the seed's generator and duty, else ``native``."""
        if not self.announced:
            return "open"
        return "seed" if self.sequential else "native"


_STEPS = ("crisis_base_steps", "crisis_jitter_steps")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "noise": ("counter", "mt19937"),
    "crisis_response": ("announced", "open"),
}


def _wrong(
    scenario: Scenario, where: str, value: Any, why: str, choices: Any = ()
) -> ScenarioError:
    fix = f"Choose from {', '.join(sorted(choices))}" if choices else "Correct that field"
    return ScenarioError(f"scenario {scenario.name!r}: {where} is {value!r}", why, fix)


def _number(scenario: Scenario, table: str, name: str, values: Mapping[str, Any]) -> float:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(scenario, f"{table}.{name}", value, "it must be a finite number")
    return float(value)


def _triple(
    scenario: Scenario, table: str, values: Mapping[str, Any]
) -> tuple[float, float, float]:
    for name, low, high in zip(METRICS, FLOORS, CEILINGS, strict=True):
        number = _number(scenario, table, name, values)
        if not low <= number <= high:
            raise _wrong(scenario, f"{table}.{name}", number, f"it must lie in {low:g}–{high:g}")
    latency, cost, carbon = (_number(scenario, table, name, values) for name in METRICS)
    return latency, cost, carbon


def _steps(scenario: Scenario, name: str, minimum: int) -> int:
    value = scenario.params.get(name)
    whole = value if isinstance(value, int) and not isinstance(value, bool) else -1
    if minimum <= whole <= _MAX_INTERVAL_STEPS:
        return whole
    raise _wrong(
        scenario,
        f"params.{name}",
        value,
        f"it must be a whole number of steps from {minimum} to {_MAX_INTERVAL_STEPS}",
    )


def _word(scenario: Scenario, name: str) -> str:
    value = scenario.params.get(name)
    if value not in _WORDS[name]:
        raise _wrong(scenario, f"params.{name}", value, "that word is not known", _WORDS[name])
    return str(value)


def terms_of(verdict: int) -> dict[str, float]:
    """Reward terms of a step, in points.

    >>> terms_of(ALL_TARGETS)["all_targets"]
    10.0
    """
    held = [bool(verdict >> metric & 1) for metric in range(3)]
    points = [
        yes if ok else no
        for ok, yes, no in zip(held, IN_TARGET_POINTS, OUT_OF_TARGET_POINTS, strict=True)
    ]
    return {
        "latency": points[0],
        "cost": points[1],
        "carbon": points[2],
        "all_targets": ALL_TARGETS_POINTS if all(held) else 0.0,
        "stable": STABLE_POINTS if verdict & STABLE else 0.0,
        "repeat": REPEAT_POINTS if verdict & REPEATED else 0.0,
        "recovery": RECOVERY_POINTS if verdict & RECOVERED else 0.0,
    }


POINTS: Final = tuple(sum(terms_of(verdict).values()) for verdict in range(64))
"""Reward by verdict. Whole numbers, so that sums are exact."""


def load_word(latency_ms: float) -> str:
    """The load word that seats see.

    >>> load_word(250.0), load_word(150.1), load_word(90.0)
    ('high', 'medium', 'low')
    """
    for bound, word in LOAD_ABOVE_MS:
        if latency_ms > bound:
            return word
    return "low"


def advance(before: Single, effect: Effect) -> Single:
    """One step of one world in plain floats, in the seed's order.

    Act, count the step, let a due crisis strike, clamp, then judge. Draws come from the world's
    tape: three or four for the action, and three and the next interval for a crisis.
    """
    episode = before.episode
    tape = episode.tape
    code, _, hydro, scale, of_latency, of_cost, of_carbon, order = effect
    step = before.step + 1
    u, v, w, extra, word = tape.action(step, before.word, order, hydro)
    by_latency = of_latency[0] + of_latency[1] * u
    by_cost = of_cost[0] + of_cost[1] * v
    by_carbon = of_carbon[0] + of_carbon[1] * w
    if code != CRISIS_RESPONSE:
        latency = before.latency_ms + by_latency
        cost = before.cost_usd_per_hour + by_cost
        carbon = before.carbon_index + by_carbon
    else:
        latency = before.latency_ms + by_latency * scale
        cost = before.cost_usd_per_hour + by_cost * scale
        carbon = before.carbon_index + (by_carbon if hydro else by_carbon * scale)
        if hydro:
            cost += EXTRA_COST_SPAN * extra
    following = before.next_crisis_step
    crisis = step >= following
    if crisis:
        u, v, w, offset, word = tape.shock(step, word)
        latency += SHOCK_LOW[0] + SHOCK_SPAN[0] * u
        cost += SHOCK_LOW[1] + SHOCK_SPAN[1] * v
        carbon += SHOCK_LOW[2] + SHOCK_SPAN[2] * w
        following = step + episode.base_steps + offset
    latency = _MS_MIN if latency < _MS_MIN else _MS_MAX if latency > _MS_MAX else latency
    cost = _USD_MIN if cost < _USD_MIN else _USD_MAX if cost > _USD_MAX else cost
    carbon = (
        _CARBON_MIN if carbon < _CARBON_MIN else _CARBON_MAX if carbon > _CARBON_MAX else carbon
    )
    target_ms, target_usd, target_carbon = episode.targets
    verdict = (latency < target_ms) | (cost < target_usd) << 1 | (carbon < target_carbon) << 2
    stable = 0
    if verdict == ALL_TARGETS:
        stable = before.stable_steps + 1
        if stable >= STABLE_AFTER_STEPS:
            verdict |= STABLE
    last = before.effect
    if last is not None and last[0] == code:
        verdict |= REPEATED
    if before.crisis and latency < RECOVERED_BELOW_MS:
        verdict |= RECOVERED
    return Single(
        episode, step, latency, cost, carbon, stable, crisis, effect, verdict, following, word
    )
