"""When a charge applied: instants from text, and the hours that several charges cover together.

A bill repeats the same hour on many rows of one resource, so hours are a union of intervals and
never a count of rows.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from world.errors import ImportFileError

SECONDS_PER_HOUR: Final = 3_600
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_CHARS: Final = 40
_YEARS: Final = range(1990, 2201)


class Instant(NamedTuple):
    """One moment.

    Attributes:
        epoch_s: Whole seconds since 1970-01-01T00:00:00Z.
        naive: Whether the text named no time zone and was taken as UTC.
    """

    epoch_s: int
    naive: bool


@lru_cache(maxsize=1 << 12)
def parse_instant(text: str) -> Instant | None:
    """A moment in ISO 8601, or None where the text is none (``9/1/2024`` could be two days).

    >>> parse_instant("2024-09-18 22:00:00") == Instant(1726696800, True)
    True
    >>> parse_instant("2024-09-18T22:00:00Z") == Instant(1726696800, False)
    True
    """
    text = text.strip().removesuffix(" UTC")
    if len(text) > _MAX_CHARS or not text.isascii():
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.year not in _YEARS:
        return None
    naive = moment.tzinfo is None
    aware = moment.replace(tzinfo=UTC) if naive else moment
    return Instant(int((aware - _EPOCH).total_seconds()), naive)


_LOCAL_DATE: Final = re.compile(r"\s*\d{1,2}[/.-]\d{1,2}[/.-](\d{4}|\d{2})(?!\d)")


def refuse_local_date(path: Path, column: str, text: str) -> None:
    """Refuse a whole file over a date as 09/01/2024: it is one day here and another there.

    Args:
        path: The file, for the message.
        column: Where the date stands.
        text: What stands there.

    Raises:
        ImportFileError: It is such a date.
    """
    if _LOCAL_DATE.match(text):
        raise ImportFileError(
            f"{path}: {column} is {text.strip()[:40]!r}",
            "month and day cannot be told apart in such a date",
            "Export the dates as ISO 8601, for example 2024-09-18T22:00:00Z",
        )


class Coverage:
    """The union of half-open intervals, kept merged so that it stays small.

    Charges mostly arrive in order and touch each other: then one interval is all there is.

    >>> hours = Coverage()
    >>> hours.add(0, 3600); hours.add(0, 3600); hours.add(3600, 7200)
    >>> hours.hours
    2.0
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start_s: int, end_s: int) -> None:
        """Add one interval; `end_s` is exclusive and after `start_s`."""
        starts, ends = self._starts, self._ends
        if starts and starts[-1] <= start_s <= ends[-1]:
            if end_s > ends[-1]:
                ends[-1] = end_s
            return
        # Every interval that overlaps or touches [start, end] becomes part of it.
        first = bisect_left(ends, start_s)
        last = first
        while last < len(starts) and starts[last] <= end_s:
            start_s = min(start_s, starts[last])
            end_s = max(end_s, ends[last])
            last += 1
        starts[first:last] = [start_s]
        ends[first:last] = [end_s]

    @property
    def hours(self) -> float:
        """Hours covered."""
        return (sum(self._ends) - sum(self._starts)) / SECONDS_PER_HOUR

    @property
    def seconds(self) -> int:
        """Seconds covered."""
        return sum(self._ends) - sum(self._starts)

    @property
    def end_s(self) -> int | None:
        """Last covered moment, or None while nothing is covered."""
        return self._ends[-1] if self._ends else None

    @property
    def start_s(self) -> int | None:
        """First covered moment, or None while nothing is covered."""
        return self._starts[0] if self._starts else None
