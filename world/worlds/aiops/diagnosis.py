"""What follows from a posterior over root causes: remedies, risks, doubt, and what to ask next.

Everything here is public: it is worked out from probabilities that any seat can see.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world.worlds.aiops.events import CLASS, HARMFUL, N_EVENTS, RIGHT
from world.worlds.aiops.evidence import IS_QUESTION, LIKELIHOOD
from world.worlds.aiops.menu import REMEDIES, VERIFY

Floats = NDArray[np.float64]

_CURES: Final = (CLASS == RIGHT).astype(np.float64)
_HARMS: Final = (CLASS == HARMFUL).astype(np.float64)

HARM_LIMIT: Final = 0.01
"""A remedy is a hazard from this probability on that it does harm, 0–1."""


def posterior_of(log_weights: Floats) -> Floats:
    """Probabilities from log weights, normalised over the last axis of length 12."""
    shifted = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    total = np.einsum("...e->...", shifted)
    posterior: Floats = shifted / total[..., None]
    return posterior


def remedy_probabilities(posterior: Floats) -> Floats:
    """Probability that each remedy is the right one: [..., 12] → [..., 7]."""
    right: Floats = np.einsum("...e,er->...r", posterior, _CURES)
    return right


def harm_probabilities(posterior: Floats) -> Floats:
    """Probability that each remedy does harm: [..., 12] → [..., 7]."""
    harm: Floats = np.einsum("...e,er->...r", posterior, _HARMS)
    return harm


def doubt_percent(posterior: Floats) -> Floats:
    """Probability, in percent, that the likeliest remedy is not the right one: [..., 12] → [...].

    >>> float(doubt_percent(np.full(12, 1 / 12)).round(1))
    83.3
    """
    doubt: Floats = 100.0 * (1.0 - remedy_probabilities(posterior).max(axis=-1))
    return np.maximum(doubt, 0.0)


def cured_probability(posterior: Floats, applied: Collection[str]) -> float:
    """Probability that one of the remedies already applied was the right one.

    Args:
        posterior: float64 [12].
        applied: Remedies that took effect.
    """
    remedies = remedy_probabilities(posterior).tolist()
    return float(sum(p for p, name in zip(remedies, REMEDIES, strict=True) if name in applied))


def branches(posterior: Floats, codes: tuple[int, ...]) -> Floats:
    """Joint probability of event and readings, if these questions were answered.

    Args:
        posterior: float64 [12].
        codes: Action codes; those that are no questions about the event change nothing.

    Returns:
        float64 [12, branches]: sums over branches are the posterior.
    """
    joint = posterior.reshape(N_EVENTS, 1)
    for code in codes:
        if IS_QUESTION[code] and code != VERIFY:
            parts = joint[:, :, None] * LIKELIHOOD[code][:, None, :]
            joint = parts.reshape(N_EVENTS, -1)
    return joint


def expected_doubt_percent(posterior: Floats, codes: tuple[int, ...]) -> float:
    """Doubt that is to be expected once these questions are answered (value of information).

    Source: preposterior analysis, Raiffa & Schlaifer, "Applied Statistical Decision Theory" (1961).
    """
    joint = branches(posterior, codes)
    by_remedy = np.einsum("er,eb->rb", _CURES, joint)
    known = float(sum(by_remedy.max(axis=0).tolist()))
    return 100.0 * max(0.0, 1.0 - known)
