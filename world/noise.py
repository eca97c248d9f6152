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
import math
import threading
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Constants as arrays: a NumPy scalar is converted anew by every call that meets it.
_M0 = np.array(0xD2511F53, dtype=np.uint64)
_M1 = np.array(0xCD9E8D57, dtype=np.uint64)
_W0 = np.array(0x9E3779B9, dtype=np.uint64)
_W1 = np.array(0xBB67AE85, dtype=np.uint64)
_MASK = np.array(0xFFFFFFFF, dtype=np.uint64)
_SHIFT = np.array(32, dtype=np.uint64)
_ROUNDS = 10
# (word >> 8 + ½)·2⁻²⁴ is (word with its low byte replaced by 128)·2⁻³², exactly. As the low bits
# of a double between 2²⁰ and 2²⁰ + 1 those 32 bits count 2⁻³² each, so that taking 2²⁰ away is
# the whole conversion.
_TOP24 = np.array(0xFFFFFF00, dtype=np.uint64)
_BASE = np.array(2.0**20)
_BASE_AND_HALF = np.asarray(_BASE.view(np.uint64) | np.uint64(0x80))
_TILE_LANES = 16384  # three pairs of buffers of 128 KiB: the rounds stay in a core's L2 cache
_TILE_COLUMNS = 4096  # where rows repeat a key, its schedule is made once for all of them

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
    shape = np.broadcast_shapes(counter.shape[1:], key.shape[1:])
    return _fill(tuple(counter), (key[0], key[1]), shape, np.empty((4, *shape), np.uint32))


Part = NDArray[np.uint64]
_Out = TypeVar("_Out", Words, Floats)


def _fill(
    counter: tuple[Part, ...], key: tuple[Part, Part], shape: tuple[int, ...], out: _Out
) -> _Out:
    """Philox over any broadcastable parts, one cache-sized tile of lanes at a time.

    Args:
        counter: Four parts.
        key: Two parts.
        shape: Their broadcast.
        out: ``(4, *shape)``; uint32 takes words, float64 takes 24-bit uniforms.
    """
    columns = shape[-1] if shape else 1
    rows = math.prod(shape[:-1])
    table = out.reshape(4, rows, columns)
    parts = [_table(part, shape[:-1]) for part in (*counter, *key)]
    wide = _TILE_LANES if rows == 1 else _TILE_COLUMNS
    for left in range(0, columns, wide):
        right = min(left + wide, columns)
        high = max(1, _TILE_LANES // (right - left))
        for top in range(0, rows, high):
            low = min(top + high, rows)
            _tile(
                [
                    part[
                        slice(top, low) if part.shape[0] > 1 else slice(None),
                        slice(left, right) if part.shape[1] > 1 else slice(None),
                    ]
                    for part in parts
                ],
                table[:, top:low, left:right],
            )
    return out


def _table(part: Part, leading: tuple[int, ...]) -> Part:
    """A part as rows × columns, one of either where it does not vary there."""
    if part.ndim == 0:
        return part.reshape(1, 1)
    columns = part.shape[-1]
    if part.size == columns:
        return part.reshape(1, columns)
    return np.broadcast_to(part, (*leading, columns)).reshape(-1, columns)


class _Scratch(threading.local):
    """Buffers of the rounds, one set per thread: fresh memory would cost as much as two rounds."""

    def __init__(self) -> None:
        size = 6 * _TILE_LANES
        memory = np.empty(size + 8, dtype=np.uint64)
        # On a cache line's boundary the exclusive-ors are a quarter faster.
        first = -memory.ctypes.data % 64 // 8
        self._lanes = memory[first : first + size]

    def pairs(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        """Three pairs of buffers: uint64 (3, 2, *shape)."""
        return self._lanes[: 6 * math.prod(shape)].reshape(3, 2, *shape)


_scratch = _Scratch()


def _tile(parts: list[Part], out: NDArray[Any]) -> None:
    """Ten rounds over one tile.

    Words 0 and 2 are one pair of buffers and words 1 and 3 the other, so that most calls do two
    words. A product keeps its high half when it becomes word 1 or 3, and a key its carries: one
    mask before the next products clears both from words 0 and 2.
    """
    multiply, shift, xor, mask = np.multiply, np.right_shift, np.bitwise_xor, np.bitwise_and
    e0, e1, e2, e3, k0, k1 = parts
    even, odd, products = _scratch.pairs(out.shape[1:])
    c0, c2 = even
    # The first two rounds run on the parts before they are spread over the lanes.
    p0, p1 = e0 * _M0, e2 * _M1
    first = (p1 >> _SHIFT) ^ e1 ^ k0
    p0, p1, c1, c3 = first * _M0, ((p0 >> _SHIFT) ^ e3 ^ k1) * _M1, p1, p0
    k0, k1 = k0 + _W0, k1 + _W1
    xor((p1 >> _SHIFT) ^ k0, c1, c0)
    xor(p0 >> _SHIFT, c3 ^ k1, c2)
    odd[0], odd[1] = p1, p0
    for _ in range(_ROUNDS - 2):
        k0 += _W0
        k1 += _W1
        mask(even, _MASK, even)
        multiply(c2, _M1, products[0])
        multiply(c0, _M0, products[1])
        shift(products, _SHIFT, even)
        xor(even, odd, even)
        xor(c0, k0, c0)
        xor(c2, k1, c2)
        odd, products = products, odd
    for start, pair in enumerate((even, odd)):
        if out.dtype == np.uint32:
            out[start::2] = pair
        else:
            mask(pair, _TOP24, pair)
            np.bitwise_or(pair, _BASE_AND_HALF, pair)
            np.subtract(pair.view(np.float64), _BASE, out[start::2])


def words(
    seed: ArrayLike, entity: ArrayLike, stream: ArrayLike, step: ArrayLike, replica: ArrayLike = 0
) -> Words:
    """Four 32-bit words for every address in the broadcast of the arguments.

    Args:
        seed: Episode seed(s), non-negative, below 2**64.
        entity: Permanent id(s) of what the noise belongs to, below 2**32.
        stream: A value of `channel`, or several.
        step: Step number(s), below 2**32.
        replica: 0 for the truth, 1… for projection samples.

    Returns:
        uint32, shape (4, …broadcast).
    """
    counter, key, shape = _address(seed, entity, stream, step, replica)
    return _fill(counter, key, shape, np.empty((4, *shape), np.uint32))


def _address(
    seed: ArrayLike, *counter: ArrayLike
) -> tuple[tuple[Part, ...], tuple[Part, Part], tuple[int, ...]]:
    parts = tuple(np.asarray(part, dtype=np.uint64) for part in counter)
    seeds = np.asarray(seed, dtype=np.uint64)
    shape = np.broadcast_shapes(seeds.shape, *(part.shape for part in parts))
    low, high = seeds & _MASK, seeds >> _SHIFT
    if high.size > 1 and not high.any():
        high = np.zeros((), dtype=np.uint64)  # seeds below 2³² share it: one key word for all
    return parts, (np.asarray(low), np.asarray(high)), shape


def uniforms(
    seed: ArrayLike, entity: ArrayLike, stream: ArrayLike, step: ArrayLike, replica: ArrayLike = 0
) -> Floats:
    """Four uniforms in (0, 1) for every address, 24 bits each: ``(word >> 8 + ½)·2⁻²⁴``.

    Returns:
        float64, shape (4, …broadcast).
    """
    counter, key, shape = _address(seed, entity, stream, step, replica)
    return _fill(counter, key, shape, np.empty((4, *shape), np.float64))


def uniform_rows(
    seeds: NDArray[np.uint64], entity: int, stream: int, steps: ArrayLike, replica: ArrayLike = 0
) -> Floats:
    """`uniforms` of several steps of a batch, where a step's four rows lie side by side.

    Args:
        seeds: uint64 [B].
        entity: As in `uniforms`.
        stream: As in `uniforms`.
        steps: [R].
        replica: 0, or one per seed.

    Returns:
        float64 [R, 4, B]: what `uniforms` gives, in the order in which a batch reads it.
    """
    when = np.asarray(steps)[:, None]
    counter, key, shape = _address(seeds, entity, stream, when, replica)
    drawn = np.empty((shape[0], 4, shape[1]))
    _fill(counter, key, shape, drawn.swapaxes(0, 1))
    return drawn


def uniforms53(
    seed: ArrayLike, entity: ArrayLike, stream: ArrayLike, step: ArrayLike, replica: ArrayLike = 0
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
    seed: ArrayLike, entity: ArrayLike, stream: ArrayLike, step: ArrayLike, low: int, high: int
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
