"""Absurd answers of a persona, ten thousand of them from one seed: malformed, hostile, or good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from policies.records import Note, Proposal, Reply, Request, Usage
from tests.support.hostile import PAYLOADS
from world.actions import Action

_TEXTS = [*PAYLOADS.values(), "", "\ud800", "x" * 50_000, "NaN", "nop", "terminate:prod-db"]


class Trap:
    """Raises from everything that a careless reader would touch."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("gotcha")

    def __repr__(self) -> str:
        raise SystemError("gotcha")


class Liar(Reply):
    """Passes for a reply until it is read."""

    def __getattribute__(self, name: str) -> Any:
        if name in {"usage", "proposals", "scores"}:
            raise RecursionError("gotcha")
        return super().__getattribute__(name)


def _endless() -> Any:
    while True:
        yield 1


class Absurd:
    """Answers of all kinds, a function of the seed and of how often it was asked.

    Args:
        seed: Which answers.
        targets: Ids that its orders name.
    """

    def __init__(self, seed: int, targets: Sequence[str] = ("prod-db", "")) -> None:
        self._rng = np.random.Generator(np.random.Philox(seed))
        self._targets = targets
        self.count = 0

    def __call__(self, request: Request) -> Any:
        """One answer."""
        self.count += 1
        makers: tuple[Callable[[Request], Any], ...] = (
            self._junk_reply,
            self._junk_reply,
            self._orders,
            self._orders,
            self._near_miss,
            self._near_miss,
            self._no_reply,
            self._raise,
            self._good,
        )
        return makers[int(self._rng.integers(len(makers)))](request)

    def _one_of(self, values: Sequence[Any]) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def junk(self, depth: int = 0) -> Any:
        """Any value at all."""
        draw = int(self._rng.integers(14 if depth < 3 else 11))
        if draw == 11:
            return [self.junk(depth + 1) for _ in range(int(self._rng.integers(5)))]
        if draw == 12:
            return tuple(self.junk(depth + 1) for _ in range(int(self._rng.integers(4))))
        if draw == 13:
            return {self._one_of(_TEXTS): self.junk(depth + 1) for _ in range(3)}
        leaves: tuple[Any, ...] = (
            None,
            bool(self._rng.integers(2)),
            self._one_of([0, -1, 10**400, -(2**63), 2**53 + 1]),
            self._one_of([float("nan"), float("inf"), -1e308, 0.5]),
            self._one_of(_TEXTS),
            b"bytes",
            self._one_of([np.float64("nan"), np.int64(3), np.array([1.0]), np.str_("nop")]),
            self._one_of([Trap(), object(), 1j, {1, 2}, range(10**12), iter([1]), _endless()]),
            self._one_of([Action, Reply, len, Proposal]),
            Action("nop"),
            self._one_of(_TEXTS),
        )
        return leaves[draw]

    def _action(self, request: Request) -> Any:
        kinds = [template.kind for template in request.world.templates]
        kind = self._one_of([*kinds, *kinds, "drop_database", "", "__class__", self.junk(3)])
        target = self._one_of([*self._targets, *self._targets, self.junk(3)])
        params = self._one_of(
            [(), (), (("new_size", "m5.large"),), (("force", True),), self.junk()]
        )
        return Action(kind, target, params)

    def _orders(self, request: Request) -> Reply:
        """Well formed, and mostly what may not be done."""
        templates = request.world.templates
        proposals = []
        for _ in range(int(self._rng.integers(1, 5))):
            template = self._one_of(templates)
            target = self._one_of(self._targets) if template.targeted else ""
            params = tuple(
                (each.name, self._one_of([*each.choices, each.default or 1.0, "m5.large"]))
                for each in template.params
            )
            proposals.append(Proposal((Action(template.kind, target, params),), "do it now"))
        return self._reply(request, tuple(proposals))

    def _near_miss(self, request: Request) -> Reply:
        """A good reply with one thing wrong."""
        actions = tuple(self._action(request) for _ in range(int(self._rng.integers(4))))
        proposal = Proposal(
            actions,
            self._one_of([*_TEXTS, self.junk()]),
            self._one_of([None, 0.5, 7.0, float("nan"), self.junk()]),
            self._one_of([{}, {"latency_ms": 1.0}, self.junk()]),
        )
        return self._reply(request, self._one_of([(proposal,), [proposal] * 9, proposal]))

    def _reply(self, request: Request, proposals: Any) -> Reply:
        offered = request.ask.payload.get("candidates") or ["nop"]
        some = self._one_of([*offered, self._one_of(_TEXTS), self.junk(3)])
        return Reply(
            proposals=proposals,
            scores=self._one_of([{}, {offered[0]: 10}, {offered[0]: 11}, self.junk()]),
            accept=self._one_of([True, False, self.junk(3)]),
            counter=some,
            choice=some,
            message=self._one_of([*_TEXTS, self.junk(3)]),
            usage=self._one_of([Usage(), Usage(-1), Usage(usd=float("nan")), self.junk(3)]),
            fallback=self._one_of(["", "I was replaced", self.junk(3)]),
            notes=self._one_of([(), (Note("llm_call", {"x": 1}),), self.junk()]),
        )

    def _junk_reply(self, request: Request) -> Any:
        del request
        return Reply(*(self.junk() for _ in range(5)))

    def _no_reply(self, request: Request) -> Any:
        del request
        return self._one_of([self.junk(), Liar(), Trap(), {"proposals": []}, '{"proposals": []}'])

    def _raise(self, request: Request) -> Any:
        del request
        raise self._one_of(
            [
                ValueError(self._one_of(_TEXTS)),
                RecursionError("deep"),
                MemoryError(),
                SystemExit(3),
                KeyboardInterrupt(),
                GeneratorExit(),
                StopIteration(),
                UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
                BaseException("base"),
            ]
        )

    def _good(self, request: Request) -> Reply:
        legal = [
            action
            for action in request.world.catalogue(request.observation)[:20]
            if request.world.check(request.observation, action) is None
        ]
        offered = request.ask.payload.get("candidates") or [""]
        return Reply(tuple(Proposal((each,), "fine") for each in legal[:3]), choice=offered[0])
