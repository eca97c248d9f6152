"""The original's noise: CPython's ``random.Random(seed)``, one cursor per world.

The original draws from the process-wide generator, which its language-model client shares: every
retry of a request moves the draws that follow. Here a world owns its generator, and such foreign
draws are an explicit number per step. Projections use `ImaginedDraws`, where every draw has a
place of its own, so that all candidates meet the same imagined failures and disturbances.

Source: CPython 3.11, Lib/random.py (``_randbelow_with_getrandbits``, ``uniform``, ``choice``).
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Final, Protocol

from world.worlds.cloudedge.twister import words_of

_FIRST_WORDS: Final = 512
_A, _B = 5, 6  # bits that a uniform leaves out of its two words


class Slot(IntEnum):
    """What a draw decides; the place of a draw in an imagined step."""

    FAIL = 0
    UNUSED = 1
    SHAKE = 2
    DISTURBED = 3
    WHICH = 4
    FIRST = 5
    SECOND = 6
    THIRD = 7


class Draws(Protocol):
    """Where a step takes its random numbers from."""

    def real(self, slot: Slot) -> float:
        """One number in [0, 1)."""
        ...

    def uniform(self, slot: Slot, low: float, high: float) -> float:
        """One number between two bounds."""
        ...

    def whole(self, slot: Slot, low: int, high: int) -> int:
        """One whole number, both ends included."""
        ...

    def choice(self, slot: Slot, count: int) -> int:
        """One index below `count`."""
        ...


@lru_cache(maxsize=256)
def _words(seed: int, count: int) -> tuple[int, ...]:
    return tuple(words_of(seed, count).tolist())


class TwisterDraws:
    """The generator of one world, from a word on. Slots are ignored: draws come in order.

    Args:
        seed: Episode seed.
        word: Words consumed so far; `word` afterwards says where to go on.
    """

    __slots__ = ("_known", "seed", "word")

    def __init__(self, seed: int, word: int = 0) -> None:
        self.seed = seed
        self.word = word
        self._known = _words(seed, _FIRST_WORDS)

    def _next(self) -> int:
        while self.word >= len(self._known):
            self._known = _words(self.seed, 2 * len(self._known))
        value = self._known[self.word]
        self.word += 1
        return value

    def real(self, slot: Slot) -> float:
        """``random()``: two words, 53 bits."""
        high, low = self._next() >> _A, self._next() >> _B
        return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)

    def uniform(self, slot: Slot, low: float, high: float) -> float:
        """``uniform(low, high)``."""
        return low + (high - low) * self.real(slot)

    def whole(self, slot: Slot, low: int, high: int) -> int:
        """``randint(low, high)``."""
        return low + self.choice(slot, high - low + 1)

    def choice(self, slot: Slot, count: int) -> int:
        """``_randbelow(count)``: top bits of one word at a time until they fall below `count`."""
        shift = 32 - count.bit_length()
        while True:
            value = self._next() >> shift
            if value < count:
                return value


class ImaginedDraws:
    """Draws of one imagined step, each at its place.

    Args:
        uniforms: One number in (0, 1) per slot; every one at ½ is mean noise, in which nothing
            fails and nothing disturbs.
    """

    __slots__ = ("_uniforms",)

    def __init__(self, uniforms: tuple[float, ...]) -> None:
        self._uniforms = uniforms

    def real(self, slot: Slot) -> float:
        """The slot's number."""
        return self._uniforms[slot]

    def uniform(self, slot: Slot, low: float, high: float) -> float:
        """The slot's number between two bounds."""
        return low + (high - low) * self._uniforms[slot]

    def whole(self, slot: Slot, low: int, high: int) -> int:
        """The slot's number as a whole one."""
        return low + self.choice(slot, high - low + 1)

    def choice(self, slot: Slot, count: int) -> int:
        """The slot's number as an index."""
        return int(self._uniforms[slot] * count)


MEAN: Final = ImaginedDraws((0.5,) * len(Slot))
