"""The same step over arrays: B worlds at once, equal to B plain steps to the last bit.

The arithmetic of a row is that of `rules.advance`, operation for operation: one product and one
sum per draw, in the same order, so no rounding can differ.

At a few thousand worlds an array operation costs half a microsecond to call and as much to run, so
what counts here is how few there are, and that none converts a type or walks short rows.
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
    CEILINGS,
    CRISIS_RESPONSE,
    EXTRA_COST_SPAN,
    FLOORS,
    FULL_RESPONSE_SERVERS,
    KINDS,
    POINTS,
    RECOVERED_BELOW_MS,
    RESPONSE_CARBON_OTHER,
    STABLE_AFTER_STEPS,
    Effect,
    effect_table,
)
from world.worlds.cloudedge.state import NO_ANSWERS, Answers, Floats, Many, Rows

SERVERS, REGION = 0, 1
"""Columns of `Encoded.params`."""
REGION_HYDRO, REGION_OTHER = 0.0, 1.0
"""Codes of the region: its index among the choices (the hydro region, any other)."""

_WORLDS_AT_ONCE: Final = 4
# Four codes of 16 bits, times this, hold the base-5 number that they spell in the highest 16 bits.
_SPELL: Final = np.array(sum(len(KINDS) ** place << 16 * place for place in range(4)), np.uint64)
_HIGHEST_16: Final = np.array(48, np.uint64)


def _spelled(kinds: NDArray[np.int32]) -> NDArray[np.int64]:
    """One number below 625 for every four worlds: what their four actions are."""
    codes = kinds.astype(np.uint16)
    if len(codes) % _WORLDS_AT_ONCE:
        codes = np.append(codes, np.zeros(-len(codes) % _WORLDS_AT_ONCE, dtype=np.uint16))
    fours = codes.view(np.uint64)
    fours *= _SPELL
    fours >>= _HIGHEST_16
    return fours.view(np.int64)


def _effects_of_four() -> Floats:
    """`effect_table` for four worlds at once, ``[6, 625, 4]``, by what `_spelled` gives.

    A look-up of four neighbours costs hardly more than that of one.
    """
    fours = np.indices((len(KINDS),) * _WORLDS_AT_ONCE).reshape(_WORLDS_AT_ONCE, -1).T
    table = np.empty((6, len(fours), _WORLDS_AT_ONCE))
    table[:, _spelled(fours.reshape(-1).astype(np.int32))] = effect_table()[:, fours]
    return table


_SPANS, _LOWS = np.split(_effects_of_four(), 2)
_FLOORS, _CEILINGS = (np.array(bounds)[:, None] for bounds in (FLOORS, CEILINGS))
_POINTS: Final = np.array(POINTS)
# Constants as arrays: a Python number is converted anew by every call that meets it.
_ZERO, _ONE = np.array(0, np.int32), np.array(1, np.int32)
_STABLE_AFTER: Final = np.array(STABLE_AFTER_STEPS, np.int32)
_RECOVERED_BELOW_MS: Final = np.array(RECOVERED_BELOW_MS)
_EIGHT: Final = np.array(8, np.uint8)
_RESPONSE: Final = np.array(CRISIS_RESPONSE, np.int32)
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


def decode(state: Many, actions: Encoded, variant: Variant) -> tuple[NDArray[np.int32], Answers]:
    """Check the arrays of a batch and take them apart.

    Returns:
        Kinds int32 [B], and who answers a crisis how.

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
    if np.maximum.reduce(kinds.view(np.uint32)) >= len(KINDS):
        row = int(np.flatnonzero(kinds.view(np.uint32) >= len(KINDS))[0])
        raise InadmissibleActionError(
            f"world {row} of the batch has the action code {kinds[row]}",
            "every step takes one action, and there is none that does nothing",
            f"Codes: {', '.join(f'{code} {kind}' for code, kind in enumerate(KINDS))}",
        )
    answering = kinds == _RESPONSE
    rows = answering.nonzero()[0]
    if not rows.size:
        return kinds, NO_ANSWERS
    if actions.params.shape != (batch, 1, 2):
        raise InadmissibleActionError(
            f"the parameters have shape {actions.params.shape}",
            "a crisis response has a server count and a region",
            f"Pass params of shape ({batch}, 1, 2)",
        )
    # The two parameters as one complex number: one look-up and one comparison for both.
    pairs = np.ascontiguousarray(actions.params, dtype=np.float64).view(np.complex128)
    given = pairs.reshape(batch).take(rows)
    # The full response is legal in every variant, and nearly all responses are full ones.
    full = np.count_nonzero(given == _FULL_PARAMS) == rows.size
    if not full:
        _check_parameters(variant, rows, given.real, given.imag)
    if variant != "open" and np.count_nonzero(answering & state.crisis) < rows.size:
        row = rows[int(np.flatnonzero(~state.crisis[rows])[0])]
        raise InadmissibleActionError(
            f"world {row} of the batch cannot take crisis_response",
            "it is legal only in an announced crisis, and none is announced there",
            "Mask the actions with World.legal, or with the crisis flag",
        )
    hydro = np.ones(rows.size, dtype=np.bool_) if full else given.imag == REGION_HYDRO
    return kinds, Answers(rows, given.real, hydro, full)


_FULL_PARAMS: Final = np.array(complex(FULL_RESPONSE_SERVERS, REGION_HYDRO))
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


def advance_rows(state: Many, kinds: NDArray[np.int32], answers: Answers) -> Many:
    """One step of every row. Arguments as `decode` returns them."""
    settings, step = state.settings, state.step + 1
    helped = answers.rows if answers.full else answers.rows[answers.hydro]
    draws, extra, word = state.tape.action(state, kinds, helped)
    fours = _spelled(kinds)
    metrics = _SPANS.take(fours, axis=1).reshape(3, -1)[:, : len(kinds)]
    metrics *= draws
    metrics += _LOWS.take(fours, axis=1).reshape(3, -1)[:, : len(kinds)]
    if not answers.full:
        _respond(metrics, draws, answers)
    metrics += state.metrics
    if helped.size:
        np.add.at(metrics[1], helped, extra * EXTRA_COST_SPAN)
    following = state.next_crisis_step
    crisis = following <= step
    struck, rises, offsets, word = state.tape.shock(state, step, crisis, word)
    if struck.size:
        for metric, rise in zip(metrics, rises, strict=True):
            np.add.at(metric, struck, rise)
        following = following.copy()
        following[struck] = offsets + (step + settings.base_steps)
    metrics.clip(_FLOORS, _CEILINGS, out=metrics)
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
        answers,
        verdict,
        following,
        word,
    )


def _respond(moves: Floats, draws: Floats, answers: Answers) -> None:
    """Scale the moves of crisis responses; the table holds those of the hydro region."""
    rows, servers, hydro, _ = answers
    scale = np.maximum(servers, 1.0) / FULL_RESPONSE_SERVERS
    moves[:2, rows] *= scale
    other = ~hydro
    low, span = RESPONSE_CARBON_OTHER
    moves[2, rows[other]] = (low + span * draws[2, rows[other]]) * scale[other]


def _judge(
    state: Many, metrics: Floats, kinds: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Verdict bits and stable runs of every row."""
    judged = np.empty((6, len(kinds)), dtype=np.bool_)
    low_ms, low_usd, low_carbon, lasting, repeated, recovered = judged
    latency, cost, carbon = metrics
    target_ms, target_usd, target_carbon = state.settings.targets
    np.less(latency, target_ms, low_ms)
    np.less(cost, target_usd, low_usd)
    np.less(carbon, target_carbon, low_carbon)
    stable = state.stable_steps + _ONE
    stable *= low_ms & low_usd & low_carbon
    np.greater_equal(stable, _STABLE_AFTER, lasting)
    np.equal(kinds, state.last, repeated)
    np.less(latency, _RECOVERED_BELOW_MS, recovered)
    recovered &= state.crisis
    # Bits 3, 4 and 5 join bits 0, 1 and 2; then Horner's rule, as doubling beats shifting.
    bits = judged.view(np.uint8)
    low, high = bits[:3], bits[3:]
    high *= _EIGHT
    low |= high
    first, second, third = low
    verdict = third + third
    verdict += second
    verdict += verdict
    verdict += first
    return verdict, stable


def points(state: Many) -> Floats:
    """Reward of the last step, float64 [B]."""
    return _POINTS.take(state.verdict)


def succeeded(state: Many) -> NDArray[np.bool_]:
    """Whether every target holds, bool [B]: a stable run is under way."""
    held: NDArray[np.bool_] = state.stable_steps > _ZERO
    return held
