"""The finite list of actions of one moment: a sequence that makes them when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from world.actions import Action


class Catalogue(Sequence[Action]):
    """The finite list of actions of one moment, made lazily so that 100,000 rows cost nothing.

    Args:
        blocks: ``(kind, length, item)``: `item(i)` makes the i-th action of that kind.
    """

    __slots__ = ("_blocks", "_length")

    def __init__(self, blocks: Sequence[tuple[str, int, Callable[[int], Action]]]) -> None:
        self._blocks = tuple(blocks)
        self._length = sum(length for _, length, _ in self._blocks)

    @staticmethod
    def of(actions: Sequence[Action]) -> Catalogue:
        """A catalogue from actions that exist already."""
        fixed = tuple(actions)
        return Catalogue([("", len(fixed), fixed.__getitem__)])

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """Kind and length of each run of actions, in order; what a stratified sample needs."""
        return tuple((kind, length) for kind, length, _ in self._blocks)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if index < 0:
            index += self._length
        for _, length, item in self._blocks:
            if index < length:
                return item(index)
            index -= length
        raise IndexError(index)

    def __iter__(self) -> Iterator[Action]:
        for _, length, item in self._blocks:
            for position in range(length):
                yield item(position)
