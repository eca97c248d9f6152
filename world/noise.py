"""Counter-based noise: a function of where a number is used, never of what was drawn before.

Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11),
vectorised over any broadcastable address. The key is the episode seed; the counter is
``(entity, channel, step, replica)``. Swapping a persona, a vote or an action therefore never
shifts another number: the same storm still comes at step 9. Replica 0 is the truth, replicas
1… are the samples that projections use.

There is no generator object and no state.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = 0x9E3779B9
_W1 = 0xBB67AE85
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_ROUNDS = 10

Words = NDArray[np.uint32]
Floats = NDArray[np.float64]


@cache
def channel(name: str) -> int:
    """The 32-bit address of a named stream (blake2b, so that it never depends on a process).

    >>> channel("cloudedge.action") == channel("cloudedge.action")
    True
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")


def philox4x32(counter: NDArray[np.uint64], key: NDArray[np.uint64]) -> Words:
    """Ten rounds of Philox4x32.

    Args:
        counter: Shape (4, …), 32-bit words held in uint64.
        key: Shape (2, …), 32-bit words held in uint64, broadcastable against a counter word.

    Returns:
        Shape (4, …), uint32. Known answers: an all-zero input gives 6627e8d5 e169c58d bc57ac4c
        9b00dbd8 (Random123).
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0 = c0 * _M0
        p1 = c2 * _M1
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ k0, p1 & _MASK, (p0 >> _SHIFT) ^ c3 ^ k1, p0 & _MASK
        k0 = (k0 + np.uint64(_W0)) & _MASK
        k1 = (k1 + np.uint64(_W1)) & _MASK
    return np.stack([c0, c1, c2, c3]).astype(np.uint32)


def words(
    seed: ArrayLike, entity: ArrayLike, stream: int, step: ArrayLike, replica: ArrayLike = 0
) -> Words:
    """Four 32-bit words for every address in the broadcast of the arguments.

    Args:
        seed: Episode seed(s), non-negative, below 2**64.
        entity: Permanent id(s) of what the noise belongs to, below 2**32.
        stream: A value of `channel`.
        step: Step number(s), below 2**32.
        replica: 0 for the truth, 1… for projection samples.

    Returns:
        uint32, shape (4, …broadcast).
    """
    *counter, seeds = np.broadcast_arrays(
        *(np.asarray(part, dtype=np.uint64) for part in (entity, stream, step, replica, seed))
    )
    return philox4x32(np.stack(counter), np.stack([seeds & _MASK, seeds >> _SHIFT]))


def uniforms(
    seed: ArrayLike, entity: ArrayLike, stream: int, step: ArrayLike, replica: ArrayLike = 0
) -> Floats:
    """Four uniforms in (0, 1) for every address, 24 bits each: ``(word >> 8 + ½)·2⁻²⁴``.

    Returns:
        float64, shape (4, …broadcast).
    """
    raw = words(seed, entity, stream, step, replica)
    return ((raw >> np.uint32(8)).astype(np.float64) + 0.5) * 2.0**-24


def uniforms53(
    seed: ArrayLike, entity: ArrayLike, stream: int, step: ArrayLike, replica: ArrayLike = 0
) -> Floats:
    """Two uniforms in (0, 1) for every address, 53 bits each.

    Returns:
        float64, shape (2, …broadcast): ``((w0 >> 5)·2²⁶ + (w1 >> 6) + ½)·2⁻⁵³``.
    """
    raw = words(seed, entity, stream, step, replica).astype(np.uint64)
    high = (raw[0::2] >> np.uint64(5)).astype(np.float64)
    low = (raw[1::2] >> np.uint64(6)).astype(np.float64)
    return (high * 2.0**26 + low + 0.5) * 2.0**-53


def integers(
    seed: ArrayLike, entity: ArrayLike, stream: int, step: ArrayLike, low: int, high: int
) -> NDArray[np.int64]:
    """Whole numbers in ``[low, high]``, both ends included, four for every address.

    Returns:
        int64, shape (4, …broadcast). The bias of the multiply-shift is below 2⁻²⁴ of the range.
    """
    span = high - low + 1
    return low + np.floor(uniforms(seed, entity, stream, step) * span).astype(np.int64)


def generator(seed: int, name: str, step: int = 0) -> np.random.Generator:
    """An ordinary NumPy generator for one component at one step.

    For sampling and training, where a component draws many numbers of its own. Keyed like
    everything else by seed, stream name and step; 9 µs to make.
    """
    return np.random.Generator(np.random.Philox(key=[seed, (channel(name) << 32) | step]))
