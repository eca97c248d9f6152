"""The same step over arrays: B worlds at once, equal to B plain steps to the last bit.

The arithmetic of a row is that of `rules.advance`, operation for operation: one product and one
sum per draw, in the same order, so no rounding can differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world.errors import InadmissibleActionError
from world.model import Encoded
from world.worlds.cloudedge.menu import Variant
from world.worlds.cloudedge.rules import (
    ALL_TARGETS,
    CEILINGS,
    CRISIS_RESPONSE,
    EXTRA_COST_SPAN,
    FLOORS,
    FULL_RESPONSE_SERVERS,
    KINDS,
    POINTS,
    RECOVERED_BELOW_MS,
    RESPONSE_CARBON_OTHER,
    SHOCK_LOW,
    SHOCK_SPAN,
    STABLE_AFTER_STEPS,
    Effect,
    effect_table,
)
from world.worlds.cloudedge.state import Floats, Many, Rows

SERVERS, REGION = 0, 1
"""Columns of `Encoded.params`."""
REGION_HYDRO, REGION_OTHER = 0.0, 1.0
"""Codes of the region: its index among the choices (the hydro region, any other)."""

_TABLE: Final = effect_table()
_FLOORS, _CEILINGS = (np.array(bounds)[:, None] for bounds in (FLOORS, CEILINGS))
_SHOCK_LOW, _SHOCK_SPAN = (np.array(part)[:, None] for part in (SHOCK_LOW, SHOCK_SPAN))
_METRIC_ROWS: Final = np.arange(3)[:, None]
_POINTS: Final = np.array(POINTS)
_MOST_SERVERS = 2.0**53


def encode(effects: Sequence[Effect]) -> Encoded:
    """One effect per world as arrays.

    ``params[:, 0, 0]`` is the server count as a number and ``params[:, 0, 1]`` the region's code
    (0 hydro, 1 any other); both are 0 for actions that are no crisis response.
    """
    kinds = np.array([[effect.code] for effect in effects], dtype=np.int32)
    params = np.zeros((len(effects), 1, 2))
    for row, effect in enumerate(effects):
        if effect.code == CRISIS_RESPONSE:
            params[row, 0] = effect.servers, REGION_HYDRO if effect.hydro else REGION_OTHER
    return Encoded(kinds.reshape(-1, 1), np.full((len(effects), 1), -1, dtype=np.int32), params)


def decode(
    state: Many, actions: Encoded, variant: Variant
) -> tuple[NDArray[np.int32], Rows, Floats, NDArray[np.bool_]]:
    """Check the arrays of a batch and take them apart.

    Returns:
        Kinds int32 [B]; the rows that answer a crisis, ascending; their server counts; whether
        they go to the hydro region.

    Raises:
        InadmissibleActionError: Wrong shapes, an unknown code, or an action that a row cannot
            take now.
    """
    batch = state.size
    if actions.kinds.shape != (batch, 1):
        raise InadmissibleActionError(
            f"the batch of actions has shape {actions.kinds.shape}",
            f"{batch} worlds take one action each",
            f"Pass kinds of shape ({batch}, 1)",
        )
    kinds = actions.kinds[:, 0].astype(np.int32)
    if kinds.view(np.uint32).max() >= len(KINDS):
        row = int(np.flatnonzero(kinds.view(np.uint32) >= len(KINDS))[0])
        raise InadmissibleActionError(
            f"world {row} of the batch has the action code {kinds[row]}",
            "every step takes one action, and there is none that does nothing",
            f"Codes: {', '.join(f'{code} {kind}' for code, kind in enumerate(KINDS))}",
        )
    rows = (kinds == CRISIS_RESPONSE).nonzero()[0]
    if not rows.size:
        return kinds, rows, np.empty(0), np.empty(0, dtype=np.bool_)
    if actions.params.shape != (batch, 1, 2):
        raise InadmissibleActionError(
            f"the parameters have shape {actions.params.shape}",
            "a crisis response has a server count and a region",
            f"Pass params of shape ({batch}, 1, 2)",
        )
    given = actions.params.reshape(batch, 2).take(rows, axis=0)
    # The full response is legal in every variant, and nearly all responses are full ones.
    if not (given == _FULL_PARAMS).all():
        _check_parameters(variant, rows, given[:, SERVERS], given[:, REGION])
    if variant != "open" and not state.crisis[rows].all():
        row = rows[int(np.flatnonzero(~state.crisis[rows])[0])]
        raise InadmissibleActionError(
            f"world {row} of the batch cannot take crisis_response",
            "it is legal only in an announced crisis, and none is announced there",
            "Mask the actions with World.legal, or with the crisis flag",
        )
    return kinds, rows, given[:, SERVERS].copy(), given[:, REGION] == REGION_HYDRO


_FULL_PARAMS: Final = np.array([FULL_RESPONSE_SERVERS, REGION_HYDRO])
_SERVER_RANGE: Final = {
    "native": (1.0, float(FULL_RESPONSE_SERVERS)),
    "seed": (float(FULL_RESPONSE_SERVERS), float(FULL_RESPONSE_SERVERS)),
    "open": (0.0, _MOST_SERVERS),
}


def _check_parameters(variant: Variant, rows: Rows, servers: Floats, region: Floats) -> None:
    low, high = _SERVER_RANGE[variant]
    right = (servers >= low) & (servers <= high) & (np.floor(servers) == servers)
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        raise InadmissibleActionError(
            f"world {rows[at]} of the batch answers with {servers[at]:g} servers",
            f"server_count must be a whole number from {low:g} to {high:g}",
            "Encode legal actions with World.encode",
        )
    right = region == REGION_HYDRO
    if variant != "seed":
        right |= region == REGION_OTHER
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        raise InadmissibleActionError(
            f"world {rows[at]} of the batch has the region code {region[at]:g}",
            "a region is 0 (canada-hydro) or, outside the seed's own regime, 1 (any other)",
            "Encode legal actions with World.encode",
        )


def advance_rows(
    state: Many,
    kinds: NDArray[np.int32],
    responders: Rows,
    servers: Floats,
    hydro: NDArray[np.bool_],
) -> Many:
    """One step of every row. Arguments as `decode` returns them."""
    settings, step, batch = state.settings, state.step + 1, len(kinds)
    helped = responders[hydro]
    draws, extra, word = state.tape.action(state, kinds, helped)
    effects = _TABLE.take(kinds, axis=1)
    moves = effects[:3]
    moves *= draws
    moves += effects[3:]
    if responders.size:
        _respond(moves, draws, responders, servers, hydro)
    metrics: Floats = moves + state.metrics
    if helped.size:
        extra *= EXTRA_COST_SPAN
        extra += metrics[1][helped]
        metrics[1][helped] = extra
    following = state.next_crisis_step
    crisis = following <= step
    struck, shocks, offsets, word = state.tape.shock(state, step, crisis, word)
    if struck.size:
        amounts = _SHOCK_SPAN * shocks
        amounts += _SHOCK_LOW
        # One flat index is three times as fast as a slice and an index.
        place = struck + batch * _METRIC_ROWS
        flat = metrics.reshape(-1)
        flat[place] = flat[place] + amounts
        following = following.copy()
        following[struck] = offsets + (step + settings.base_steps)
    np.clip(metrics, _FLOORS, _CEILINGS, out=metrics)
    verdict, stable = _judge(state, metrics, kinds)
    return Many(
        state.scenario,
        settings,
        state.seeds,
        state.tape,
        step,
        metrics,
        stable,
        crisis,
        kinds,
        *_response_columns(batch, responders, servers, hydro),
        verdict,
        following,
        word,
    )


def _respond(
    moves: Floats, draws: Floats, rows: Rows, servers: Floats, hydro: NDArray[np.bool_]
) -> None:
    """Scale the moves of crisis responses; the table holds those of the hydro region."""
    if not (servers == FULL_RESPONSE_SERVERS).all():
        scale = np.maximum(servers, 1.0) / FULL_RESPONSE_SERVERS
        moves[:2, rows] *= scale
    other = ~hydro
    if other.any():
        low, span = RESPONSE_CARBON_OTHER
        scale = np.maximum(servers, 1.0) / FULL_RESPONSE_SERVERS
        moves[2, rows[other]] = (low + span * draws[2, rows[other]]) * scale[other]


def _judge(
    state: Many, metrics: Floats, kinds: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Verdict bits and stable runs of every row."""
    latency, cost, carbon = metrics
    target_ms, target_usd, target_carbon = state.settings.targets
    low_ms, low_usd, low_carbon = latency < target_ms, cost < target_usd, carbon < target_carbon
    stable = state.stable_steps + np.int32(1)
    stable *= low_ms & low_usd & low_carbon
    recovered = latency < RECOVERED_BELOW_MS
    recovered &= state.crisis
    # Horner's rule over the bits, highest first: doubling beats shifting.
    verdict = recovered.view(np.uint8)
    repeated, lasting = kinds == state.last, stable >= STABLE_AFTER_STEPS
    for bit in (repeated, lasting, low_carbon, low_usd, low_ms):
        verdict += verdict
        verdict += bit.view(np.uint8)
    return verdict, stable


def _response_columns(
    batch: int, rows: Rows, servers: Floats, hydro: NDArray[np.bool_]
) -> tuple[Floats, NDArray[np.bool_]]:
    counts, regions = np.zeros(batch), np.zeros(batch, dtype=np.bool_)
    counts[rows] = servers
    regions[rows] = hydro
    return counts, regions


def points(state: Many) -> Floats:
    """Reward of the last step, float64 [B]."""
    return _POINTS.take(state.verdict)


def succeeded(state: Many) -> NDArray[np.bool_]:
    """Whether every target holds, bool [B]."""
    held: NDArray[np.bool_] = (state.verdict & ALL_TARGETS) == ALL_TARGETS
    return held
