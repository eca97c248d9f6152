"""What a store of war-room episodes promises, whichever server is behind it.

One episode is one append-only step log plus the world's current columns. One `apply` per step
does everything or nothing. See docs/adr for why the log is the record and the columns a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from world.model import Delta, Snapshot

ApplyStatus = Literal["OK", "DUP"]


@dataclass(frozen=True, slots=True)
class EpisodeMeta:
    """Written once, when an episode is created. JSON-plain text and numbers only.

    Attributes:
        episode: Root episode id (the run id); also the Cluster hash tag.
        scenario: Scenario name.
        scenario_digest: SHA-256 of what can change an outcome.
        seed: Episode seed.
        config: JSON text of everything needed to rebuild the room on resume.
        schema: Layout version.
    """

    episode: str
    scenario: str
    scenario_digest: str
    seed: int
    config: str
    schema: int = 1


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One committed step of the log.

    Attributes:
        step: 0 is run_started; k is step k; the close follows the last step.
        kind: ``start``, ``step`` or ``close``.
        request_id: Request that wrote it.
        payload: The trace events of this step, canonical JSON lines joined by newlines.
        delta: What changed (None for start and close).
    """

    step: int
    kind: Literal["start", "step", "close"]
    request_id: str
    payload: bytes
    delta: Delta | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """What is read at attach, in one round trip.

    Attributes:
        meta: The episode's meta.
        branch: Branch id.
        step: Steps committed.
        status: ``open`` or the stop reason.
        fence: Current fence.
        request_id: Last request applied.
    """

    meta: EpisodeMeta
    branch: str
    step: int
    status: str
    fence: int
    request_id: str


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one branch.

    Attributes:
        episode: Episode id.
        branch: Branch id.
        holder: Holder token.
        fence: Grows with every new holder; a write with an older fence is refused.
        ttl_s: Seconds until it lapses unless renewed.
    """

    episode: str
    branch: str
    holder: str
    fence: int
    ttl_s: float


@dataclass(frozen=True, slots=True)
class Applied:
    """Answer to `WorldStore.apply` and `WorldStore.close`.

    Attributes:
        status: ``OK``, or ``DUP`` when this very request had been applied before.
        step: Steps committed.
    """

    status: ApplyStatus
    step: int


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One event seen before its step was committed. Never the record.

    Attributes:
        cursor: Place of this event; hand it to `WorldStore.watch` to go on after it.
        fence: Fence of the writer; another fence than before means that the writer changed and
            that uncommitted events of the old one are void.
        data: The event, as `WorldStore.live` was given it.
    """

    cursor: str
    fence: int
    data: bytes


class WorldStore(Protocol):
    """Where episodes live. Every method is synchronous and safe to retry.

    Attributes:
        name: ``embedded``, ``:memory:``, ``inprocess``, ``fakeredis`` or ``server``.
        description: One line for people: which server, where, durable or not. No secrets.
        durable: Whether an acknowledged step survives a killed process.
    """

    name: str
    description: str
    durable: bool

    def create(self, meta: EpisodeMeta, snapshot: Snapshot, payload: bytes) -> bool:
        """Create if absent: world columns at step 0 and the run_started log entry.

        Returns:
            False when the episode exists already (nothing was changed).

        Raises:
            ConfigError: The id cannot be one (blanks, braces, too long).
        """
        ...

    def attach(self, episode: str, branch: str = "0") -> Stored:
        """Read an episode's header.

        Raises:
            EpisodeMissingError: There is no such episode.
        """
        ...

    def lease(self, episode: str, branch: str, holder: str, ttl_s: float = 3.0) -> Lease | None:
        """Take or renew the lease. The same holder keeps its fence; a new holder gets a higher one.

        A closed branch has nothing to drive, so that there it keeps nobody from anything.

        Returns:
            None while somebody else holds it. A holder of this host that is known to have died
            (its `leases.Holder` file is free) does not hold it any more.

        Raises:
            EpisodeMissingError: There is no such episode or branch.
        """
        ...

    def release(self, lease: Lease) -> None:
        """Give the lease back, if it is still held by this holder."""
        ...

    def apply(
        self, lease: Lease, expected_step: int, request_id: str, delta: Delta, payload: bytes
    ) -> Applied:
        """Commit one step, all or nothing, in one round trip.

        A step also renews a lease that has not lapsed, so that half of its time is always left.

        A request that was applied before is answered ``DUP``, whatever happened since. A metric
        or hidden scalar that `delta` does not name keeps its value.

        Raises:
            StaleWorldError: The world is ahead of ``expected_step``.
            BehindWorldError: The world is behind: acknowledged steps were lost.
            LeaseLostError: A newer holder exists.
            EpisodeClosedError: The episode has ended.
            EpisodeMissingError: There is no such episode.
            StoreUnavailableError: No answer, or the server refuses to write; nothing was written.
            WorldError: The call is malformed, for example cells outside their column.
        """
        ...

    def close(
        self, lease: Lease, expected_step: int, request_id: str, status: str, payload: bytes
    ) -> Applied:
        """Append the close entry (run_ended) and set the status. Raises like `apply`."""
        ...

    def log(self, episode: str, branch: str = "0", since: int = 0) -> Iterator[LogEntry]:
        """Committed entries with step ≥ `since`, in order, in pages; the close comes last.

        A fork's log begins with its parent's, up to the step at which it left.
        """
        ...

    def world(self, episode: str, branch: str = "0") -> Snapshot:
        """The current columns."""
        ...

    def snapshot(self, episode: str, branch: str = "0") -> int:
        """Keep a copy of the current columns under their step. Returns the step."""
        ...

    def fork(self, episode: str, branch: str, step: int, new_branch: str, reason: str) -> None:
        """A new branch whose world is `branch` as it was after `step` steps.

        Raises:
            WorldError: The branch exists, or the step has not been reached.
        """
        ...

    def branches(self, episode: str) -> Mapping[str, tuple[str, int, str]]:
        """Branch → (parent, fork step, reason)."""
        ...

    def journal(self, episode: str, branch: str, step: int, field: str, value: bytes) -> bytes:
        """Keep the first value written for a field of a step (replies of paid or slow seats).

        Raises:
            EpisodeClosedError: The branch has ended, and there is no such field.

        Returns:
            The value that stands: this one, or the one that was there first.
        """
        ...

    def journalled(self, episode: str, branch: str, step: int) -> Mapping[str, bytes]:
        """All journalled fields of a step."""
        ...

    def live(self, episode: str, branch: str, fence: int, events: Sequence[bytes]) -> None:
        """Fire-and-forget events before the commit, bounded, non-authoritative.

        Nothing is written unless somebody watched this branch in the last seconds, and nothing
        is ever raised: a lost live event is not worth a step.
        """
        ...

    def watch(
        self, episode: str, branch: str, cursor: str = "", wait_s: float = 0.0
    ) -> Sequence[LiveEvent]:
        """Live events after `cursor` ("" is everything kept), and mark the branch as watched.

        Args:
            episode: Episode id.
            branch: Branch id.
            cursor: `LiveEvent.cursor` of the last event seen.
            wait_s: Longest wait for the first event, in seconds; at most 2.
        """
        ...

    def episodes(self, status: str | None = None) -> Sequence[Stored]:
        """Known episodes, oldest first; all, or those with this status."""
        ...

    def retain(self, episode: str, ttl_s: float) -> None:
        """Let a closed episode expire after `ttl_s` seconds; 0 deletes it now. A fork undoes it.

        Raises:
            WorldError: It is still open, or one of its branches is leased.
        """
        ...

    def disconnect(self) -> None:
        """Close connections. An embedded server stops when its last client is gone."""
        ...


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where to look for a store.

    Attributes:
        state_dir: Folder of the embedded store; None means under XDG_STATE_HOME.
        timeout_s: Seconds before a server counts as not answering.
        retention_s: Seconds that a closed episode is kept; 0 keeps it.
        environment: Not read here; kept for messages about which variable chose the store.
    """

    state_dir: str | None = None
    timeout_s: float = 5.0
    retention_s: float = 7 * 86400.0
    environment: Mapping[str, str] = field(default_factory=dict)
