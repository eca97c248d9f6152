"""Personas whose character is known, for probes, and a model that conforms by chance."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.backends.stances import stance
from agents.persona_schema import PersonaSpec
from policies.records import Proposal, Reply, Request
from tests.support.llm_stub import StubCall
from world.actions import parse_joint

CONFORMS_FROM = 2
"""The conformist gives way to so many others of one mind."""


@dataclass(frozen=True, slots=True)
class Character:
    """A persona with one trait; for the rest it says what its numbers say.

    Attributes:
        spec: Its file.
        seat: Its seat.
        trait: Request and honest scores → what it states.
    """

    spec: PersonaSpec
    seat: str
    trait: Callable[[Request, dict[str, int]], Mapping[str, int]]
    blocking: bool = False

    def answer(self, request: Request) -> Reply:
        """Answer by its trait."""
        if request.ask.kind == "propose":
            wanted = self.spec.identity.description
            joint = parse_joint(wanted) if wanted else ()
            return Reply(proposals=(Proposal(joint),) if joint else ())
        honest = stance(request, self.spec)
        return Reply(scores=self.trait(request, dict(honest.scores) if honest else {}))


def conformist(spec: PersonaSpec, seat: str) -> Character:
    """Says what the others say at every second situation, where at least two are of one mind."""

    def trait(request: Request, honest: dict[str, int]) -> Mapping[str, int]:
        payload = request.ask.payload
        against = [row for row in payload.get("others", []) if row != payload["own"]]
        if request.step % 2 and len(against) >= CONFORMS_FROM:
            return _listed(request, against[0])
        return honest

    return Character(spec, seat, trait)


def fickle(spec: PersonaSpec, seat: str) -> Character:
    """Turns its ballot round whenever it is asked again, whatever it is shown."""

    def trait(request: Request, honest: dict[str, int]) -> Mapping[str, int]:
        again = request.ask.payload["round"] > 1
        return {name: 10 - score for name, score in honest.items()} if again else honest

    return Character(spec, seat, trait)


def stubborn(spec: PersonaSpec, seat: str) -> Character:
    """Repeats what it said."""

    def trait(request: Request, honest: dict[str, int]) -> Mapping[str, int]:
        said = request.ask.payload.get("own")
        return honest if said is None else _listed(request, said)

    return Character(spec, seat, trait)


def liar(spec: PersonaSpec, seat: str) -> Character:
    """States the reverse of what its numbers say."""
    return Character(spec, seat, lambda _, honest: {n: 10 - score for n, score in honest.items()})


def first_listed(spec: PersonaSpec, seat: str) -> Character:
    """Likes what stands first in the list, whatever it is."""

    def trait(request: Request, honest: dict[str, int]) -> Mapping[str, int]:
        names = request.ask.payload["candidates"]
        return {name: 10 if place == 0 else 5 for place, name in enumerate(names)}

    return Character(spec, seat, trait)


def silent(spec: PersonaSpec, seat: str) -> Character:
    """Has no answer."""
    return Character(spec, seat, lambda _, honest: {})


def character_file(folder: Path, name: str, role: str = "resource", more: str = "") -> str:
    """Path of a file that gives a role's persona one of the characters above."""
    path = folder / f"{name}.toml"
    path.write_text(
        f'schema = "persona/1"\nextends = "{role}"\n[identity]\nid = "{name}"\n{more}\n'
        f'[backend]\nkind = "python:tests.support.probed:{name}"\n'
    )
    return str(path)


def _listed(request: Request, row: list[int | None]) -> dict[str, int]:
    names = request.ask.payload["candidates"]
    return {name: score for name, score in zip(names, row, strict=True) if score is not None}


_LINE = re.compile(r'^\{"(option|own|others)".*$', re.M)


def conforming_model(share: float) -> Callable[[StubCall], str]:
    """A plan for the stub: an honest model that gives way to others with a known probability.

    Whether it does is a draw of the question, so that the same question gets the same answer.
    """

    def plan(call: StubCall) -> str:
        if '{"scores"' not in call.user:
            return "ok"
        return f"text:{json.dumps({'scores': _scores(call, share)})}"

    return plan


def gives_way(call: StubCall, share: float) -> bool:
    """Whether the model of `conforming_model` conforms on this question."""
    draw = int(hashlib.sha256(call.user.encode()).hexdigest()[:8], 16) / 2**32
    return draw < share


def shown(call: StubCall) -> tuple[list[dict[str, Any]], list[int], list[list[int]]]:
    """Options, own ballot and others' ballots in a question to the model."""
    options: list[dict[str, Any]] = []
    own: list[int] = []
    others: list[list[int]] = []
    for match in _LINE.finditer(call.user):
        data = json.loads(match.group(0))
        if "option" in data and "id" in data:
            options.append(data)
        own = data.get("own", own)
        others = data.get("others", others)
    return options, own, others


def _scores(call: StubCall, share: float) -> list[dict[str, Any]]:
    options, own, others = shown(call)
    worth = [option["worth_to_you"] for option in options]
    low, high = min(worth), max(worth)
    scores = [round(10.0 * (value - low) / (high - low)) if high > low else 10 for value in worth]
    against = [row for row in others if row != own]
    if against and gives_way(call, share):
        scores = against[0]
    return [
        {"option": option["option"], "score": score}
        for option, score in zip(options, scores, strict=False)
    ]
