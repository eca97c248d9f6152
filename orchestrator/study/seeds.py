"""Seeds: how they are typed, and which of them tune and which report.

A seed on which something was tuned may not be among those on which it is reported. The ranges of
the split are fixed once for the whole project, and stand in the manifest of every tournament.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from orchestrator.console.text import plain
from world.errors import ConfigError

MAX_CELLS = 10_000_000
PUBLISHED, TUNING, FREE, REPORTING = "published", "tuning", "free", "reporting"
SPLITS = {PUBLISHED: 0, TUNING: 200, FREE: 2000, REPORTING: 5000}
"""Split → its first seed; it ends where the next begins.

``published`` seeds are those of examples and of comparisons with published figures; ``reporting``
seeds are touched by nothing before they are reported on.
"""
_RANGE = re.compile(r"(\d{1,19}):(\d{1,19})")
_NUMBER = re.compile(r"\d{1,19}")


def seeds_of(text: str) -> tuple[int, ...]:
    """Read ``A:B`` (A to B−1), single seeds, and lists of both.

    >>> seeds_of("0:3,10")
    (0, 1, 2, 10)

    Raises:
        ConfigError: The text is no list of seeds.
    """
    seeds: dict[int, None] = {}
    for part in map(str.strip, text.split(",")):
        match = _RANGE.fullmatch(part)
        if match and int(match[1]) < int(match[2]):
            first, end = int(match[1]), int(match[2])
            if end - first + len(seeds) > MAX_CELLS:
                raise ConfigError(
                    f"--seeds is {plain(text, 60)!r}",
                    f"that is more than {MAX_CELLS:,} seeds",
                    "For example --seeds 0:32",
                )
            seeds.update(dict.fromkeys(range(first, end)))
        elif _NUMBER.fullmatch(part):
            seeds[int(part)] = None
        else:
            raise ConfigError(
                f"--seeds is {plain(text, 60)!r}",
                "it must be A:B with A below B (A to B−1), or single seeds, joined by commas",
                "For example --seeds 0:32",
            )
    if max(seeds) >= 2**63:
        raise ConfigError(f"--seeds is {plain(text, 60)!r}", "a seed is below 2^63", "")
    return tuple(seeds)


def ranges_of(seeds: Sequence[int]) -> str:
    """Seeds as `seeds_of` reads them, ascending and as short as they can be told.

    >>> ranges_of([2, 0, 1, 10])
    '0:3,10'
    """
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and parts[-1][1] == seed:
            parts[-1][1] = seed + 1
        else:
            parts.append([seed, seed + 1])
    return ",".join(f"{a}:{b}" if b - a > 1 else f"{a}" for a, b in parts)


def split_of(seed: int) -> str:
    """The split that a seed belongs to.

    >>> split_of(0), split_of(200), split_of(4999), split_of(5000)
    ('published', 'tuning', 'free', 'reporting')
    """
    return next(name for name, first in reversed(SPLITS.items()) if seed >= first)


def split_counts(seeds: Iterable[int]) -> dict[str, int]:
    """How many distinct seeds of each split there are; splits without any are left out."""
    named = [split_of(seed) for seed in set(seeds)]
    return {name: named.count(name) for name in SPLITS if name in named}


def mixture(seeds: Iterable[int]) -> str:
    """What to warn of where seeds come from several splits; "" where they do not.

    >>> mixture([1, 2]), mixture([199, 200])
    ('', 'seeds of several splits are mixed: 1 published, 1 tuning; report on seeds from 5000 on')
    """
    counts = split_counts(seeds)
    if len(counts) < 2:
        return ""
    parts = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"seeds of several splits are mixed: {parts}; report on seeds from 5000 on"
