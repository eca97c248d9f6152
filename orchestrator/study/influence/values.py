"""Values and power indices of cooperative games.

Players are 0…n−1; a coalition is a bit mask, bit i standing for player i; a game is an array of
2^n values indexed by it. Sums run in a fixed order with `math.fsum`, so that results do not
depend on how a game was computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world.errors import ConfigError
from world.noise import channel, uniforms

MOST_EXACT = 7
"""Most players of which every coalition is played (2^7 = 128)."""

_ORDERS = channel("influence.orders")


def players_of(game: NDArray[np.float64] | Sequence[object]) -> int:
    """How many players a game has.

    Raises:
        ConfigError: Its length is no power of two.
    """
    n = max(len(game), 1).bit_length() - 1
    if len(game) != 1 << n:
        raise ConfigError(
            f"a game of {len(game)} coalitions", "n players have 2^n of them", "List them all"
        )
    return n


def shapley(game: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shapley value: what a player adds on average over all orders in which players may come.

    φ_i = Σ over S without i of s!·(n − s − 1)!/n! · (v(S ∪ i) − v(S)), s the size of S. The sum
    over players is v(N) − v(∅) (efficiency).

    Args:
        game: float64 [2^n].

    Returns:
        float64 [n], in the unit of the game.

    >>> shapley(np.array([0.0, 1.0, 2.0, 5.0])).tolist()
    [2.0, 3.0]

    Source: Shapley, "A value for n-person games", Contributions to the Theory of Games II (1953).
    """
    n = players_of(game)
    values = game.tolist()
    weights = _shapley_weights(n)
    found = []
    for player in range(n):
        bit = 1 << player
        terms = [
            weights[mask.bit_count()] * (values[mask | bit] - values[mask])
            for mask in range(1 << n)
            if not mask & bit
        ]
        found.append(math.fsum(terms))
    return np.array(found)


@lru_cache(maxsize=64)
def _shapley_weights(n: int) -> tuple[float, ...]:
    return tuple(1.0 / (n * math.comb(n - 1, size)) for size in range(n))


def leave_one_out(game: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the full room loses without each player: v(N) − v(N without i), float64 [n]."""
    n = players_of(game)
    full = (1 << n) - 1
    return np.array([float(game[full] - game[full & ~(1 << player)]) for player in range(n)])


def swings(outcomes: Sequence[Hashable]) -> NDArray[np.float64]:
    """Banzhaf's index of a rule with any outcomes: how often a player changes what is decided.

    β_i = 2^(1−n) · Σ over S without i of [f(S ∪ i) ≠ f(S)]. With yes and no as the outcomes of a
    monotone rule this is the absolute Banzhaf index.

    Args:
        outcomes: Outcome per coalition, [2^n].

    Returns:
        float64 [n], 0–1.

    >>> swings([0, 0, 0, 1]).tolist()
    [0.5, 0.5]

    Source: Banzhaf, "Weighted voting doesn't work", Rutgers Law Review 19 (1965).
    """
    n = players_of(outcomes)
    counts = [
        sum(
            outcomes[mask | 1 << player] != outcomes[mask]
            for mask in range(1 << n)
            if not mask >> player & 1
        )
        for player in range(n)
    ]
    return np.array(counts, dtype=np.float64) / (1 << max(n - 1, 0))


class Sampled(NamedTuple):
    """Shapley values from sampled orders.

    Attributes:
        values: float64 [n], means over the orders.
        errors: float64 [n], standard errors over pairs of orders; NaN with one pair.
        coalitions: Coalitions that were asked for.
    """

    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    coalitions: int


def orders(n: int, count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Orders of n players in pairs, each with its reverse; a function of the seed.

    A player that comes early in an order comes late in its reverse, which cancels most of the
    error wherever marginal worth falls with the size of the room.

    Args:
        n: Players.
        count: How many, at least 2; odd numbers are rounded up.
        seed: Episode seed.

    Source: Mitchell, Cooper, Frank & Holmes, "Sampling permutations for Shapley value
        estimation", JMLR 23 (2022), antithetic sampling.
    """
    pairs = max(1, (count + 1) // 2)
    draws = uniforms(seed, np.arange(n)[None, :], _ORDERS, np.arange(pairs)[:, None])[0]
    found: list[tuple[int, ...]] = []
    for row in np.argsort(draws, axis=1, kind="stable").tolist():
        found += [tuple(row), tuple(reversed(row))]
    return tuple(found)


def coalitions_of(chosen: Sequence[Sequence[int]]) -> frozenset[int]:
    """Masks of every coalition that some orders pass through, the empty and the full one too."""
    masks = {0}
    for order in chosen:
        mask = 0
        for player in order:
            mask |= 1 << player
            masks.add(mask)
    return frozenset(masks)


def shapley_sampled(
    value: Callable[[int], float], n: int, chosen: Sequence[Sequence[int]]
) -> Sampled:
    """Shapley values from some orders only. Each order sums to v(N) − v(∅), hence so do they.

    Args:
        value: Coalition → its value.
        n: Players.
        chosen: Orders in pairs, as `orders` gives them.

    Source: Castro, Gómez & Tejada, "Polynomial calculation of the Shapley value based on
        sampling", Computers & Operations Research 36 (2009).
    """
    marginal = np.zeros((len(chosen), n))
    for row, order in enumerate(chosen):
        mask, before = 0, value(0)
        for player in order:
            mask |= 1 << player
            now = value(mask)
            marginal[row, player] = now - before
            before = now
    count = len(chosen)
    means = np.array([math.fsum(column) / count for column in marginal.T.tolist()])
    paired = (marginal[0::2] + marginal[1::2]) / 2
    errors = np.full(n, np.nan)
    if len(paired) > 1:
        errors = paired.std(axis=0, ddof=1) / math.sqrt(len(paired))
    return Sampled(means, errors, len(coalitions_of(chosen)))
