"""What may be a name, a request or a payload in any store. The same rules for every store.

Names become parts of keys, and an episode id is also the Cluster hash tag, so braces, blanks and
control characters are refused. Nothing here touches a store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized

from world.errors import ConfigError
from world.model import Cells, Snapshot
from world.store.base import EpisodeMeta
from world.store.refusals import malformed

MAIN_BRANCH = "0"
OPEN = "open"
START_REQUEST = "start"
MAX_PAYLOAD_BYTES = 8 * 2**20
MAX_STEP = 2**53 - 1
"""Lua numbers are doubles: beyond this, step + 1 would be step."""

_EPISODE = re.compile(r"[^\s{}\x00-\x20\x7f\ud800-\udfff]{1,200}\Z")
_NAME = re.compile(r"[^\s{}\x00-\x20\x7f\ud800-\udfff]{1,100}\Z")
_BRANCH = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_STATUS = re.compile(r"[A-Za-z0-9 ._:/-]{1,64}\Z")
_INTERNAL_STATUSES = frozenset({OPEN, "forking"})

_SNAPSHOT_SPANS = ((2_000, 100), (20_000, 1_000))
_SNAPSHOT_SPAN_LATER = 10_000


def snapshot_due(step: int) -> bool:
    """Whether a commit of this step also keeps a copy of the world.

    Every 100 steps at first, then every 1,000, then every 10,000: a fork replays few steps where
    people fork, and a very long episode does not fill the server with copies of its inventory.

    >>> [step for step in (0, 99, 100, 2100, 3000) if snapshot_due(step)]
    [0, 100, 3000]
    """
    for until, span in _SNAPSHOT_SPANS:
        if step <= until:
            return step % span == 0
    return step % _SNAPSHOT_SPAN_LATER == 0


def possible_episode(episode: str, branch: str) -> bool:
    """Whether these can be ids at all; reading others finds nothing."""
    return bool(_EPISODE.match(episode)) and bool(_BRANCH.match(branch))


def check_new_episode(meta: EpisodeMeta, snapshot: Snapshot) -> None:
    """Refuse an episode that no store can hold.

    Raises:
        ConfigError: The id cannot be a key.
        WorldError: The snapshot is not one of step 0, or names a column that cannot be a key.
    """
    if not _EPISODE.match(meta.episode):
        raise ConfigError(
            f"{meta.episode[:80]!r} cannot be an episode id",
            "1 to 200 characters, without blanks, braces and control characters",
            "Choose another run id",
        )
    if snapshot.step != 0:
        raise malformed(f"an episode starts at step 0, not {snapshot.step}")
    for name in snapshot.columns:
        if not _NAME.match(name):
            raise malformed(f"{name!r} cannot be a column name")
    check_metric_names(snapshot.metrics)


def check_metric_names(names: Iterable[str]) -> None:
    """Refuse metric names that cannot be fields."""
    for name in names:
        if not 0 < len(name.encode("utf-8", "replace")) < 256:
            raise malformed(f"{name[:80]!r} cannot be a metric name")


def check_branch(branch: str) -> None:
    """Refuse a branch id that cannot be part of a key.

    Raises:
        ConfigError: It has other characters than ``A-Za-z0-9._-``, or more than 64.
    """
    if not _BRANCH.match(branch):
        raise ConfigError(
            f"{branch[:80]!r} cannot be a branch",
            "1 to 64 letters, digits, dots, underscores and dashes",
            "Choose another name",
        )


def check_status(status: str) -> None:
    """Refuse a stop reason that would read as a state of the store."""
    if not _STATUS.match(status) or status in _INTERNAL_STATUSES:
        raise malformed(f"{status[:80]!r} cannot be a stop reason")


def check_reason(reason: str) -> None:
    """Refuse a reason for a fork that is longer than a remark."""
    if len(reason) > 2_000:
        raise malformed(f"the reason of a fork has {len(reason)} characters, more than 2,000")


def check_request(expected_step: int, request_id: str, payload: bytes) -> None:
    """Refuse a commit that no correct caller sends."""
    if not 0 <= expected_step < MAX_STEP:
        raise malformed(f"step {expected_step} is outside 0 to {MAX_STEP - 1}")
    if not request_id or len(request_id) > 400:
        raise malformed(f"a request id has 1 to 400 characters, not {len(request_id)}")
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise malformed(
            f"the events of one step have {len(payload)} bytes, more than {MAX_PAYLOAD_BYTES}"
        )


def check_lease(holder: str, ttl_s: float) -> None:
    """Refuse a lease that could never lapse, or nobody holds."""
    if not holder or len(holder) > 400:
        raise malformed(f"a holder has 1 to 400 characters, not {len(holder)}")
    if not 0.001 <= ttl_s <= 86_400:
        raise malformed(f"a lease of {ttl_s} s; it lasts from a millisecond to a day")


def check_runs(cells: Sequence[Cells]) -> None:
    """Refuse changed cells whose place could not even be written down."""
    for column, offset, _ in cells:
        if not 0 <= offset < 2**32:
            raise malformed(f"offset {offset} in column {column!r}")


def check_cells(cells: Sequence[Cells], columns: Mapping[str, Sized]) -> None:
    """Refuse changed cells outside their column, before anything is written.

    Args:
        cells: What is about to be written.
        columns: Column name → its bytes.

    Raises:
        WorldError: A column does not exist, or the cells would make it longer.
    """
    for column, offset, data in cells:
        held = columns.get(column)
        if held is None:
            raise malformed(f"there is no column {column!r}")
        if offset + len(data) > len(held):
            raise malformed(
                f"bytes {offset} to {offset + len(data)} of column {column!r}, "
                f"which has {len(held)}"
            )


def check_journal(step: int, field: str, value: bytes) -> None:
    """Refuse a journal entry that no correct caller writes."""
    if not 0 <= step <= MAX_STEP:
        raise malformed(f"step {step} is outside 0 to {MAX_STEP}")
    if not field or len(field) > 400:
        raise malformed(f"a journal field has 1 to 400 characters, not {len(field)}")
    if len(value) > MAX_PAYLOAD_BYTES:
        raise malformed(f"a reply of {len(value)} bytes, more than {MAX_PAYLOAD_BYTES}")
