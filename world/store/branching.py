"""Branches of an episode on a server: where they left their parent, and how one is made.

A branch refers to its parent's log up to the step at which it left and writes its own from there,
so a fork copies the world once and no history. The world at an earlier step is the nearest kept
image before it plus the logged deltas, replayed on the server in calls of bounded length.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import redis

from world.errors import WorldError
from world.store.checks import MAIN_BRANCH
from world.store.keys import BranchKeys, EpisodeKeys, in_pairs
from world.store.link import Link
from world.store.refusals import branch_exists, malformed, missing, not_reached

_REPLAY_STEPS_PER_CALL = 200
_TRIES = 8


class Line(NamedTuple):
    """A stretch of the log.

    Attributes:
        branch: Whose log.
        last: Last step that belongs to it; None is all that is there.
    """

    branch: str
    last: int | None


def entry_to_json(parent: str, step: int, reason: str) -> str:
    """What is kept about a branch."""
    return json.dumps([parent, step, reason])


def read_branches(link: Link, episode: str) -> dict[str, tuple[str, int, str]]:
    """Branch → (parent, fork step, reason), in order of their names.

    Raises:
        EpisodeMissingError: There is no such episode.
    """
    raw = link.run("HGETALL", EpisodeKeys(episode).branches)
    if not raw:
        raise missing(episode, MAIN_BRANCH)
    found = {}
    for name in sorted(raw):
        parent, step, reason = json.loads(raw[name])
        found[name.decode()] = (str(parent), int(step), str(reason))
    return found


def lineage(link: Link, episode: str, branch: str) -> list[Line]:
    """The stretches that make up the log of a branch, oldest first.

    Raises:
        EpisodeMissingError: There is no such branch.
    """
    known = read_branches(link, episode)
    if branch not in known:
        raise missing(episode, branch)
    lines = [Line(branch, None)]
    last: int | None = None
    parent, step, _ = known[branch]
    while parent:
        last = step if last is None else min(last, step)
        lines.append(Line(parent, last))
        parent, step, _ = known[parent]
    return lines[::-1]


def fork(
    link: Link,
    episode: str,
    branch: str,
    step: int,
    new_branch: str,
    reason: str,
    columns: Sequence[str],
) -> None:
    """Make a branch; see `WorldStore.fork`. Nobody sees it before it is whole."""
    known = read_branches(link, episode)
    if branch not in known:
        raise missing(episode, branch)
    if new_branch in known:
        raise branch_exists(episode, new_branch)
    source = BranchKeys(episode, _origin(known, branch, step))
    target = BranchKeys(episode, new_branch)
    token = secrets.token_hex(16)
    try:
        at = _start(link, (episode, branch, step), source, target, new_branch, token, columns)
        while at < step:
            at = int(
                link.call(
                    "wr_replay",
                    [source.log, target.world, *target.columns(columns)],
                    [token, _REPLAY_STEPS_PER_CALL, step, *columns],
                )
            )
        _open(link, target, new_branch, token, step, entry_to_json(branch, step, reason), columns)
    except redis.ResponseError as error:
        code, _, rest = str(error).partition(" ")
        if code == "WR_EXISTS":
            raise branch_exists(episode, new_branch) from None
        raise malformed(rest or code) from None


def _origin(known: Mapping[str, tuple[str, int, str]], branch: str, step: int) -> str:
    """The branch whose own steps include this one."""
    while known[branch][0] and step < known[branch][1]:
        branch = known[branch][0]
    return branch


def _start(
    link: Link,
    asked: tuple[str, str, int],
    source: BranchKeys,
    target: BranchKeys,
    new_branch: str,
    token: str,
    columns: Sequence[str],
) -> int:
    """Copy the nearest world at or before a step. Returns the step of what was copied."""
    episode, branch, step = asked
    for _ in range(_TRIES):
        reached, images = link.run_all(
            [
                ("HGET", source.world, "step"),
                ("ZREVRANGEBYSCORE", source.images, step, 0, "LIMIT", 0, 1),
            ]
        )
        if reached is None:
            raise missing(episode, branch)
        if not 0 <= step <= int(reached):
            raise not_reached(episode, branch, step, int(reached))
        at = step if step == int(reached) else int(images[0])
        base = source if step == int(reached) else source.image(at)
        pairs = in_pairs(base.columns(columns), target.columns(columns))
        started = link.call(
            "wr_fork",
            [target.shared.branches, target.shared.known, base.world, target.world, *pairs],
            [new_branch, token, at],
        )
        if started:
            return at
    raise WorldError(
        f"episode {episode!r}, branch {branch!r} moves on too fast to be forked at its head",
        "each copy was of a world that had changed meanwhile",
        "Choose an earlier step",
    )


def _open(
    link: Link,
    target: BranchKeys,
    new_branch: str,
    token: str,
    step: int,
    entry: str,
    columns: Sequence[str],
) -> None:
    shared, image = target.shared, target.image(step)
    ttl_ms = link.call(
        "wr_open_branch",
        [
            *(shared.meta, shared.branches, shared.known, target.world, target.images),
            *(image.world, target.log),
            *in_pairs(target.columns(columns), image.columns(columns)),
        ],
        [new_branch, token, step, entry],
    )
    if ttl_ms >= 0:
        # Somebody goes on with an episode that was about to expire: it stays.
        keys = link.run("SMEMBERS", shared.known)
        link.run_all([("PERSIST", key) for key in (*keys, shared.known)])
