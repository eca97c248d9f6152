"""The seed's noise: CPython's ``random.Random(seed)``, word for word, without its module.

MT19937 seeded by ``init_by_array`` with the 32-bit digits of the seed, lowest first. One uniform
takes two words, ``(a·2²⁶ + b)·2⁻⁵³`` with ``a = w0 >> 5`` and ``b = w1 >> 6``;
``uniform(a, b)`` is ``a + (b − a)·u``; ``randint(−j, j)`` takes the top bits of one word at a time
until they fall below ``2j + 1``. How many words a step consumes depends on the action, so states
carry a word count.

Source: Matsumoto & Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998; CPython 3.11,
Modules/_randommodule.c and Lib/random.py.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloudedge.rules import EFFECTS, response, rises_of
from world.worlds.cloudedge.state import Floats, Many, Rows

Words = NDArray[np.uint32]

_N: Final = 624
_M: Final = 397
_ACTION_WORDS: Final = 6
_HYDRO_WORDS: Final = 8
_MOST_STEP_WORDS: Final = _HYDRO_WORDS + 6
_WORD_OFFSETS: Final = np.array([effect.order for effect in (*EFFECTS, response(5, True))]).T
_FIRST_WORDS = 320  # a usual episode of 30 steps takes fewer than 300
_MASK = 0xFFFFFFFF
_RUNS = ((0, _N - _M), (_N - _M, 2 * (_N - _M)), (2 * (_N - _M), _N - 1), (_N - 1, _N))


def seed_digits(seed: int) -> list[int]:
    """The 32-bit digits of a seed, lowest first; at least one.

    >>> seed_digits(2**32 + 5)
    [5, 1]
    """
    digits = [seed & _MASK]
    while seed := seed >> 32:
        digits.append(seed & _MASK)
    return digits


def words_of(seed: int, count: int) -> Words:
    """The first `count` words of one seed, uint32 [count]."""
    source = np.random.MT19937(0)
    seeding: Any = getattr(source, "_legacy_seeding", None)
    if seeding is None:
        seed_publicly(source, seed)
    else:
        # A list goes through init_by_array, as in CPython; a bare number would not.
        seeding(seed_digits(seed))
    return source.random_raw(count).astype(np.uint32)


def seed_publicly(source: np.random.MT19937, seed: int) -> None:
    """Seed through NumPy's public interface alone: the same words, more slowly."""
    key = seed_states(np.array([seed], dtype=np.uint64))[:, 0]
    source.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": _N}}


@cache
def _base_state() -> Words:
    """``init_genrand(19650218)``, uint32 [624]."""
    state = [19650218]
    for i in range(1, _N):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & _MASK)
    return np.array(state, dtype=np.uint32)


def seed_states(seeds: NDArray[np.uint64]) -> Words:
    """``init_by_array`` of many seeds at once, uint32 [624, B]."""
    low = (seeds & np.uint64(_MASK)).astype(np.uint32)
    high = (seeds >> np.uint64(32)).astype(np.uint32)
    state = np.empty((_N, len(seeds)), dtype=np.uint32)
    long = high > 0
    for rows, digits in ((~long, [low]), (long, [low, high])):
        if rows.any():
            state[:, rows] = _init_by_array([digit[rows] for digit in digits])
    return state


def _init_by_array(digits: list[Words]) -> Words:
    """The published loop, vectorised over seeds; each digit is uint32 [B]."""
    state = np.repeat(_base_state()[:, None], len(digits[0]), axis=1)
    mixed = np.empty_like(state[0])
    adds = [digit + np.uint32(position) for position, digit in enumerate(digits)]
    i = 1
    for turn in range(_N):
        _mix(state[i - 1], 1664525, mixed)
        state[i] ^= mixed
        state[i] += adds[turn % len(adds)]
        i += 1
        if i == _N:
            state[0] = state[_N - 1]
            i = 1
    for _ in range(_N - 1):
        _mix(state[i - 1], 1566083941, mixed)
        state[i] ^= mixed
        state[i] -= np.uint32(i)
        i += 1
        if i == _N:
            state[0] = state[_N - 1]
            i = 1
    state[0] = np.uint32(0x80000000)
    return state


def _mix(word: Words, factor: int, out: Words) -> None:
    np.right_shift(word, np.uint32(30), out=out)
    out ^= word
    out *= np.uint32(factor)


def twist(state: Words, low: int, high: int) -> Words:
    """Make words `low` to `high` of the next 624 in place and return them tempered.

    Args:
        state: uint32 [624, B]; rows below `low` are new already.
        low: First row, a bound of the four runs that do not read what they write.
        high: One past the last row of that run.

    Returns:
        uint32 [high − low, B].
    """
    following = state[low + 1 : high + 1] if high < _N else state[:1]
    y = (state[low:high] & np.uint32(0x80000000)) | (following & np.uint32(0x7FFFFFFF))
    far = (low + _M) % _N
    fresh = state[far : far + high - low] ^ (y >> np.uint32(1))
    fresh ^= (y & np.uint32(1)) * np.uint32(0x9908B0DF)
    state[low:high] = fresh
    fresh ^= fresh >> np.uint32(11)
    fresh ^= (fresh << np.uint32(7)) & np.uint32(0x9D2C5680)
    fresh ^= (fresh << np.uint32(15)) & np.uint32(0xEFC60000)
    fresh ^= fresh >> np.uint32(18)
    return fresh


def reals_of(words: Words) -> Floats:
    """The uniform that begins at each word, float64 [count − 1, …]."""
    reals: Floats = (words[:-1] >> np.uint32(5)).astype(np.float64)
    reals *= 67108864.0
    reals += words[1:] >> np.uint32(6)
    reals *= 1.0 / 9007199254740992.0
    return reals


def _bits(jitter_steps: int) -> tuple[int, int]:
    """Width of ±jitter, and the shift that keeps just enough top bits of a word for it."""
    width = 2 * jitter_steps + 1
    return width, 32 - width.bit_length()


class TwisterTape:
    """The seed's noise for one world.

    Args:
        seed: Episode seed.
        jitter_steps: Crisis intervals are uniform over base ± jitter.
    """

    __slots__ = ("_drawn", "jitter_steps", "seed")

    def __init__(self, seed: int, jitter_steps: int) -> None:
        self.seed = seed
        self.jitter_steps = jitter_steps
        self._drawn: tuple[list[int], list[float]] = ([], [])

    def _draw(self, word: int) -> tuple[list[int], list[float]]:
        """Draw from the first word on, well past `word`, and keep that."""
        words = words_of(self.seed, max(_FIRST_WORDS, 2 * (word + _MOST_STEP_WORDS)))
        self._drawn = (words.tolist(), reals_of(words).tolist())
        return self._drawn

    def first(self) -> tuple[int, int]:
        """Offset of the first crisis from the base interval, and the words consumed."""
        return self._offset(0)

    def action(
        self, step: int, word: int, order: tuple[int, int, int], hydro: bool
    ) -> tuple[float, float, float, float, int]:
        """See `state.Tape.action`."""
        reals = self._drawn[1]
        if word + _MOST_STEP_WORDS >= len(reals):
            reals = self._draw(word)[1]
        latency, cost, carbon = order
        u, v, w = reals[word + latency], reals[word + cost], reals[word + carbon]
        if hydro:
            return u, v, w, reals[word + _ACTION_WORDS], word + _HYDRO_WORDS
        return u, v, w, 0.0, word + _ACTION_WORDS

    def shock(self, step: int, word: int) -> tuple[float, float, float, int, int]:
        """See `state.Tape.shock`."""
        reals = self._drawn[1]
        if word + _MOST_STEP_WORDS >= len(reals):
            reals = self._draw(word)[1]
        u, v, w = reals[word], reals[word + 2], reals[word + 4]
        offset, word = self._offset(word + _ACTION_WORDS)
        return u, v, w, offset, word

    def _offset(self, word: int) -> tuple[int, int]:
        width, shift = _bits(self.jitter_steps)
        words = self._drawn[0]
        while True:
            if word >= len(words):
                words = self._draw(word)[0]
            value = words[word] >> shift
            word += 1
            if value < width:
                return value - self.jitter_steps, word


class TwisterRows:
    """The seed's noise for a batch: words [count, B], made as far as a row has come.

    Args:
        seeds: uint64 [B].
        jitter_steps: Crisis intervals are uniform over base ± jitter.
    """

    __slots__ = ("_made", "jitter_steps", "seeds")

    def __init__(self, seeds: NDArray[np.uint64], jitter_steps: int) -> None:
        self.seeds = seeds
        self.jitter_steps = jitter_steps
        # (twister state, runs made, words, reals): replaced as a whole, never changed in part.
        empty = np.empty((0, len(seeds)), dtype=np.uint32)
        self._made: tuple[Words, int, Words, Floats] = (
            seed_states(seeds),
            0,
            empty,
            np.empty((0, len(seeds))),
        )

    def prepare(self, count: int) -> tuple[Words, Floats]:
        """At least `count` words and uniforms of every row: uint32 and float64 [≥ count, B]."""
        state, runs, words, reals = self._made
        if len(reals) >= count:
            return words, reals
        state, parts = state.copy(), [words]
        while sum(map(len, parts)) <= count:
            parts.append(twist(state, *_RUNS[runs % len(_RUNS)]))
            runs += 1
        words = np.concatenate(parts)
        reals = reals_of(words)
        self._made = (state, runs, words, reals)
        return words, reals

    def first(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offsets of the first crises from the base interval, and the words consumed, [B]."""
        rows = np.arange(len(self.seeds))
        return self._intervals(rows, np.zeros(len(rows), dtype=np.int64))

    def action(
        self, state: Many, kinds: NDArray[np.int32], hydro: Rows
    ) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """See `state.RowTape.action`."""
        word = state.word
        reals = self._reals(word)
        batch = len(self.seeds)
        place = word * batch
        place += np.arange(batch)
        drawn = np.empty((3, batch))
        for metric, offsets in enumerate(_WORD_OFFSETS):
            np.take(reals, place + (offsets * batch)[kinds], out=drawn[metric], mode="clip")
        extra = reals[place[hydro] + _ACTION_WORDS * batch]
        word = word + _ACTION_WORDS
        word[hydro] += _HYDRO_WORDS - _ACTION_WORDS
        return drawn, extra, word

    def shock(
        self, state: Many, step: int, struck: NDArray[np.bool_], word: NDArray[np.int64]
    ) -> tuple[Rows, Floats, NDArray[np.int64], NDArray[np.int64]]:
        """See `state.RowTape.shock`."""
        rows = struck.nonzero()[0]
        if not rows.size:
            return rows, np.empty((3, 0)), np.empty(0, dtype=np.int64), word
        batch = len(self.seeds)
        reals = self._reals(word)
        place = word[rows] * batch + rows
        draws = np.stack([reals[place + offset * batch] for offset in (0, 2, 4)])
        offsets, after = self._intervals(rows, word[rows] + _ACTION_WORDS)
        word[rows] = after
        return rows, rises_of(draws), offsets, word

    def _reals(self, word: NDArray[np.int64]) -> Floats:
        return self.prepare(int(word.max()) + _MOST_STEP_WORDS)[1].reshape(-1)

    def _intervals(
        self, rows: Rows, word: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``randint(−j, j)`` of some rows from their words on: offsets and new word counts."""
        width, shift = _bits(self.jitter_steps)
        batch = len(self.seeds)
        offsets = np.empty(len(rows), dtype=np.int64)
        word = word.copy()
        left = np.arange(len(rows))
        while left.size:
            words = self.prepare(int(word[left].max()) + 1)[0].reshape(-1)
            drawn = (words[word[left] * batch + rows[left]] >> np.uint32(shift)).astype(np.int64)
            word[left] += 1
            offsets[left] = drawn - self.jitter_steps
            left = left[drawn >= width]
        return offsets, word
