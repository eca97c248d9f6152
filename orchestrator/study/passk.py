"""pass^k: the chance that k trials drawn from those made all succeed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from world.model import significant

DEFAULT_K = (1, 2, 4, 8)


def pass_k(successes: int, trials: int, k: int) -> float | None:
    """C(c, k)/C(n, k): the unbiased estimate of p^k from c successes in n trials.

    A trial is a seed where personas are deterministic, and a sample of the model where they are
    not.

    Args:
        successes: c.
        trials: n.
        k: Trials that must all succeed, 1 or more.

    Returns:
        None where fewer than k trials were made.

    >>> pass_k(3, 4, 1), pass_k(3, 4, 2), pass_k(3, 4, 4), pass_k(3, 4, 5)
    (0.75, 0.5, 0.0, None)

    Source: Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World
    Domains" (2024), section 4.
    """
    if trials < k or k < 1:
        return None
    return significant(math.comb(successes, k) / math.comb(trials, k))


def mean_pass_k(tasks: Sequence[tuple[int, int]], k: int) -> float | None:
    """Mean of pass^k over tasks, each ``(successes, trials)``.

    Returns:
        None where no task has k trials, or one has fewer: a mean over some tasks only would
        compare what is not alike.
    """
    values = [pass_k(successes, trials, k) for successes, trials in tasks]
    known = [value for value in values if value is not None]
    if not values or len(known) < len(values):
        return None
    return significant(math.fsum(known) / len(known))
