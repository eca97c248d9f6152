"""What an import of samples took and left out, in numbers that add up, and when it refuses.

``rows == used + Σ skipped`` always holds. Some rows are left out for good reason (the same sample
twice, a pod that has completed); all others are unusable, and where they are more than a stated
share of the rows nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from world.errors import ConfigError
from world.model import significant

LIMIT_FRACTION: Final = 0.1
"""Share of unusable rows above which an import is refused unless told otherwise; our choice."""


class Intake:
    """Rows of an import as they come.

    Attributes:
        rows: Rows seen.
        skipped: Reason → rows left out.
    """

    __slots__ = ("_harmless", "rows", "skipped")

    def __init__(self) -> None:
        self.rows = 0
        self.skipped: Counter[str] = Counter()
        self._harmless: set[str] = set()

    def skip(self, reason: str, count: int = 1) -> None:
        """Leave rows out because they cannot be used."""
        if count:
            self.skipped[reason] += count

    def set_aside(self, reason: str, count: int = 1) -> None:
        """Leave rows out that say nothing new or are not asked for."""
        self._harmless.add(reason)
        self.skip(reason, count)

    @property
    def used(self) -> int:
        """Rows that were used."""
        return self.rows - sum(self.skipped.values())

    @property
    def unusable(self) -> int:
        """Rows that could not be used."""
        return sum(n for reason, n in self.skipped.items() if reason not in self._harmless)


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """The result of importing samples.

    Attributes:
        rows: Rows of the input: lines of a table, samples of a query, containers of a pod.
        used: Rows that were used.
        skipped: Reason → rows left out.
        unusable: Rows left out because they cannot be used.
        limit_fraction: Share of unusable rows, and of missing hours, that is still accepted.
        refusals: Why nothing was written, one sentence each; empty where all is well.
        warnings: What a careful reader should know, one sentence each.
        details: What this kind of import found, JSON-plain.
        written: Name of the output in the document (``scenario`` or ``metrics``) and its path;
            the path is None where nothing was written.
    """

    rows: int
    used: int
    skipped: Mapping[str, int]
    unusable: int
    limit_fraction: float
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    details: Mapping[str, Any]
    written: tuple[str, str | None]

    @property
    def accepted(self) -> bool:
        """Whether the input is good enough to be written."""
        return not self.refusals

    def as_json(self) -> dict[str, Any]:
        """The report as JSON-plain values."""
        name, path = self.written
        return {
            "rows": self.rows,
            "used": self.used,
            "skipped": dict(self.skipped),
            "unusable": self.unusable,
            "unusable_fraction": share(self.unusable, self.rows),
            "limit_fraction": self.limit_fraction,
            "accepted": self.accepted,
            "refusals": list(self.refusals),
            "warnings": list(self.warnings),
            **self.details,
            name: path,
        }


def share(part: int, whole: int) -> float:
    """`part` ÷ `whole` as a fraction, 0 of nothing is 0."""
    return significant(part / whole) if whole else 0.0


def check_limit(limit_fraction: float) -> None:
    """Refuse a share that is none.

    Raises:
        ConfigError: It is not within 0 to 1.
    """
    if not 0.0 <= limit_fraction <= 1.0:
        raise ConfigError(
            f"the limit of skipped rows is {limit_fraction}",
            "it is a share of the rows",
            "Give a fraction from 0 to 1, for example --max-skipped-fraction 0.1",
        )


def refusals(
    intake: Intake, limit_fraction: float, missing: tuple[int, int, str] = (0, 0, "")
) -> list[str]:
    """Why these rows are not good enough, one sentence each.

    Args:
        intake: What was taken and left out.
        limit_fraction: Share that is accepted, 0 to 1.
        missing: How many parts are missing, of how many, and what they are called.
    """
    found = []
    unusable = share(intake.unusable, intake.rows)
    if unusable > limit_fraction:
        found.append(
            f"{intake.unusable:,} of {intake.rows:,} rows cannot be used ({unusable:.1%}), more "
            f"than {limit_fraction:.1%}"
        )
    part, whole, name = missing
    gone = share(part, whole)
    if gone > limit_fraction:
        found.append(
            f"{part:,} of {whole:,} {name} are missing ({gone:.1%}), more than {limit_fraction:.1%}"
        )
    if intake.rows and not intake.used:
        found.append("no row can be used")
    return found
