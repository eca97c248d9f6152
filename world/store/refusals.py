"""Every way in which a store says no, worded once, so that all stores refuse alike.

Functions here build errors; they never raise them and never look at a store.
"""

from __future__ import annotations

from world.errors import (
    BehindWorldError,
    EpisodeClosedError,
    EpisodeMissingError,
    LeaseLostError,
    StaleWorldError,
    WorldError,
)


def missing(episode: str, branch: str) -> EpisodeMissingError:
    """``WR_NOEPISODE``: the store does not hold this episode, or not this branch of it."""
    return EpisodeMissingError(
        f"the store holds no episode {episode!r} with a branch {branch!r}",
        "it was never created here, it has expired, or the server came back without its data",
        "List what is there: python run_warroom.py runs",
    )


def stale(episode: str, step: int, expected_step: int) -> StaleWorldError:
    """``WR_STALE``: the world is ahead of the caller."""
    return StaleWorldError(
        f"episode {episode!r} is at step {step}, not {expected_step}",
        "another orchestrator committed in the meantime, and its decision stands",
        "Attach again and go on from there",
    )


def behind(episode: str, step: int, expected_step: int) -> BehindWorldError:
    """``WR_BEHIND``: the server lost steps that it had acknowledged."""
    return BehindWorldError(
        f"episode {episode!r} is at step {step}, but step {expected_step} was acknowledged",
        "the server lost its last writes, as after a power failure",
        f"Send steps {step + 1} to {expected_step} again with their own request ids",
        step=step,
    )


def fenced(episode: str, branch: str, fence: int) -> LeaseLostError:
    """``WR_FENCED``: a newer holder writes this branch."""
    return LeaseLostError(
        f"the lease on episode {episode!r}, branch {branch!r} is gone",
        f"a newer orchestrator holds it with fence {fence}",
        "Stop this one; its last acknowledged step stands",
    )


def closed(episode: str, status: str) -> EpisodeClosedError:
    """``WR_CLOSED``: the episode has ended."""
    return EpisodeClosedError(
        f"episode {episode!r} is closed ({status})",
        "nothing can be added to an episode that has ended",
        "Fork it at a step to go on differently",
    )


def malformed(problem: str) -> WorldError:
    """``WR_BADARG``: a call that no correct caller makes; nothing was written."""
    return WorldError(f"the store refused a malformed call: {problem}", "nothing was written", "")


def branch_exists(episode: str, branch: str) -> WorldError:
    """The name of a new branch is taken."""
    return WorldError(
        f"episode {episode!r} has a branch {branch!r} already",
        "a branch is made once",
        "Choose another name for the fork",
    )


def not_reached(episode: str, branch: str, step: int, reached: int) -> WorldError:
    """A fork at a step that the branch has not reached."""
    return WorldError(
        f"episode {episode!r}, branch {branch!r} cannot be forked at step {step}",
        f"it has committed {reached} steps",
        f"Choose a step from 0 to {reached}",
    )


def still_open(episode: str) -> WorldError:
    """An open episode is never given an end."""
    return WorldError(
        f"episode {episode!r} is still open",
        "only a closed episode may expire",
        "Finish it first (run --resume), or leave it",
    )
