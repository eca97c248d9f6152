"""Names of every key. All keys of an episode carry its id as hash tag, so they share a slot.

| key | type | what |
|---|---|---|
| ``wr:{E}:meta`` | hash | the episode's meta, written once |
| ``wr:{E}:ids`` | string | ids, vocabulary and dtypes of the columns, written once |
| ``wr:{E}:branches`` | hash | branch → [parent, fork step, reason] |
| ``wr:{E}:keys`` | set | every key of the episode, for retention |
| ``wr:{E}:B:w`` | hash | the world's scalars: step, fence, status, hidden, metrics |
| ``wr:{E}:B:c:NAME``, ``…:h:NAME`` | string | one column, shown or hidden |
| ``wr:{E}:B:t`` | stream | the log |
| ``wr:{E}:B:images`` | zset | steps of which a copy of the world is kept |
| ``wr:{E}:B:s:K:…`` | copies | that copy |
| ``wr:{E}:B:p:STEP`` | hash | journalled replies of one step |
| ``wr:{E}:B:lease`` | string | holder, with its time to live |
| ``wr:{E}:B:live``, ``…:watched`` | stream, string | live events, and whether somebody watches |
| ``wr:idx:all``, ``wr:idx:open`` | zset | episode ids by time of creation; rebuildable |
"""

from __future__ import annotations

from collections.abc import Iterable

INDEX_ALL = "wr:idx:all"
INDEX_OPEN = "wr:idx:open"
_HIDDEN = "h."


class EpisodeKeys:
    """Keys that all branches of one episode share."""

    __slots__ = ("branches", "ids", "known", "meta", "prefix")

    def __init__(self, episode: str) -> None:
        self.prefix = prefix = f"wr:{{{episode}}}:"
        self.meta = prefix + "meta"
        self.ids = prefix + "ids"
        self.branches = prefix + "branches"
        self.known = prefix + "keys"


class BranchKeys:
    """Keys of one branch."""

    __slots__ = ("images", "lease", "live", "log", "prefix", "shared", "watched", "world")

    def __init__(self, episode: str, branch: str) -> None:
        self.shared = EpisodeKeys(episode)
        self.prefix = prefix = f"{self.shared.prefix}{branch}:"
        self.world = prefix + "w"
        self.log = prefix + "t"
        self.lease = prefix + "lease"
        self.images = prefix + "images"
        self.live = prefix + "live"
        self.watched = prefix + "watched"

    def column(self, name: str) -> str:
        """Key of a column; hidden ones lie apart, so that access rules can tell them."""
        if name.startswith(_HIDDEN):
            return f"{self.prefix}h:{name[len(_HIDDEN) :]}"
        return f"{self.prefix}c:{name}"

    def journal(self, step: int) -> str:
        """Key of the journalled replies of a step."""
        return f"{self.prefix}p:{step}"

    def image(self, step: int) -> BranchKeys:
        """Keys of the copy of the world after `step` steps; only its world and columns exist."""
        copy = object.__new__(BranchKeys)
        copy.shared = self.shared
        copy.prefix = f"{self.prefix}s:{step}:"
        copy.world = copy.prefix + "w"
        return copy

    def columns(self, names: Iterable[str]) -> list[str]:
        """Keys of columns, in the order of `names`."""
        return [self.column(name) for name in names]


def in_pairs(sources: Iterable[str], targets: Iterable[str]) -> list[str]:
    """Source, target, source, target … as the copying functions take them."""
    return [key for pair in zip(sources, targets, strict=True) for key in pair]
