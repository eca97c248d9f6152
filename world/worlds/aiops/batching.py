"""Seeds and action codes as arrays, checked once for both AI-Ops worlds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from world.errors import ConfigError, InadmissibleActionError
from world.model import Encoded

_MOST_SEED = 2**63


def checked_seeds(seeds: Sequence[int]) -> NDArray[np.uint64]:
    """Seeds as an array, uint64 [B].

    Raises:
        ConfigError: No seed, or one that is not a whole number from 0 to 2**63 − 1.
    """
    numbers = list(seeds)
    whole = all(
        isinstance(seed, int | np.integer) and not isinstance(seed, bool) for seed in numbers
    )
    if not numbers or not whole or min(numbers) < 0 or max(numbers) >= _MOST_SEED:
        raise ConfigError(
            f"seeds {str(numbers[:3])[1:-1] or '(none)'} cannot be used",
            "a batch holds at least one world, and a seed is a whole number from 0 to 2**63-1",
            "Pass such numbers",
        )
    return np.array(numbers, dtype=np.uint64)


def encode_codes(codes: Sequence[int], size: int) -> Encoded:
    """One code per world as arrays: one slot, no target, no parameter.

    Raises:
        InadmissibleActionError: There is not one code for every world.
    """
    if len(codes) != size:
        raise InadmissibleActionError(
            f"{len(codes)} joint actions for {size} worlds", "", "Pass one for every world"
        )
    kinds = np.array(codes, dtype=np.int32).reshape(-1, 1)
    return Encoded(kinds, np.full_like(kinds, -1), np.zeros((size, 1, 0)))


def codes_of(actions: Encoded, size: int, most: int) -> NDArray[np.int32]:
    """Check the arrays of a batch and take the codes out, int32 [B].

    Raises:
        InadmissibleActionError: A wrong shape or an unknown code.
    """
    if actions.kinds.shape != (size, 1):
        raise InadmissibleActionError(
            f"the batch of actions has shape {actions.kinds.shape}",
            f"{size} worlds take one action each",
            f"Pass kinds of shape ({size}, 1)",
        )
    codes: NDArray[np.int32] = actions.kinds[:, 0].astype(np.int32)
    wrong = (codes < 0) | (codes >= most)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InadmissibleActionError(
            f"world {row} of the batch has the action code {codes[row]}",
            f"codes are 0 to {most - 1}",
            "Encode actions with World.encode",
        )
    return codes


def episode_over(step: int) -> InadmissibleActionError:
    """The error of a step after the end."""
    return InadmissibleActionError(
        f"the episode is over (step {step})", "no step follows", "Reset the world"
    )
