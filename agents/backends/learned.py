"""A policy that was learned elsewhere, at a seat: it proposes what it scores highest.

Only what can be taken now and does no harm that can be known is proposed. The file's digest is in
every trace; the policy itself is plain data (`agents.backends.policy_file`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.backends.policy_file import Policy, load_policy
from agents.faults import SeatFault
from agents.persona_schema import PersonaSpec
from policies.records import Proposal, Reply, Request
from world.actions import joint_id, parse_joint
from world.errors import ConfigError
from world.model import Joint, Key, World, significant

_MOST_TARGETS = 64


@dataclass(frozen=True)
class LearnedPersona:
    """A learned policy at one seat.

    Attributes:
        spec: The seat's file.
        seat: The seat.
        policy: What it learned.
        content_digest: SHA-256 of the policy's file.
    """

    spec: PersonaSpec
    seat: str
    policy: Policy
    content_digest: str

    @staticmethod
    def of(spec: PersonaSpec, seat: str) -> LearnedPersona:
        """The persona of a file.

        Raises:
            UnknownNameError: ``backend.ref`` names no file.
            ConfigError: The file holds no policy.
        """
        return LearnedPersona(spec, seat, *load_policy(Path(spec.backend.ref)))

    @property
    def blocking(self) -> bool:
        """Looking up a table never waits."""
        return False

    def fits(self, world: World[Any]) -> None:
        """Refuse a world that the policy was not learned in.

        Raises:
            ConfigError: It is another world.
        """
        if world.name != self.policy.world:
            raise ConfigError(
                f"persona {self.spec.id!r}: its policy was learned in the world "
                f"{self.policy.world!r}",
                f"this scenario is played in {world.name!r}",
                "Seat another persona, or choose another scenario",
            )

    def answer(self, request: Request) -> Reply:
        """Propose, or answer a protocol in the order of the scores.

        Raises:
            SeatFault: ``no_answer`` in a state that the policy does not know.
        """
        ranked = self._ranked(request)
        kind = request.ask.kind
        if kind == "propose":
            where = self._where(request)
            return Reply(
                proposals=tuple(
                    Proposal(joint, f"learned value {significant(value, 4):g} in {where}")
                    for joint, value in ranked[: self.policy.proposals]
                )
            )
        wanted = [joint_id(joint) for joint, _ in ranked]
        offered = _texts(request.ask.payload.get("candidates"))
        known = [name for name in wanted if not offered or name in offered]
        if kind == "ballot":
            return Reply(scores={name: max(10 - rank, 0) for rank, name in enumerate(known)})
        best_id = known[0] if known else (offered[0] if offered else "")
        if kind == "pick":
            return Reply(choice=best_id)
        accept = request.ask.payload.get("offer") in wanted[: self.policy.proposals]
        return Reply(accept=accept, counter="" if accept else best_id)

    def _where(self, request: Request) -> str:
        seen = request.observation
        return self.policy.state(seen) if self.policy.kind == "q_table" else "this situation"

    def _ranked(self, request: Request) -> list[tuple[Joint, float]]:
        """Joint actions that can be taken now, best first; equals in the order of the file."""
        scores = self.policy.scores(request.observation)
        if not scores:
            where = self.policy.state(request.observation)
            raise SeatFault("no_answer", f"the policy does not know the state {where}")
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        found = []
        for place in order:
            joint = self._possible(request, self.policy.actions[place])
            if joint is not None:
                found.append((joint, scores[place]))
        return found

    def _possible(self, request: Request, name: str) -> Joint | None:
        """The action as it can be taken now; of a bare kind, the target that suits the seat."""
        joint = parse_joint(name)
        template = next((t for t in request.world.templates if t.kind == joint[0].kind), None)
        if template is not None and template.targeted and not joint[0].target and len(joint) == 1:
            return self._aimed(request, template.kind)
        return joint if _allowed(request, joint) else None

    def _aimed(self, request: Request, kind: str) -> Joint | None:
        # Imported here so that reading a policy does not load the machinery of utilities.
        from agents.persona import seat_rules
        from policies.utility import seat_utilities

        seen, world = request.observation, request.world
        options: list[Joint] = []
        for action in world.catalogue(seen):
            if action.kind == kind and _allowed(request, (action,)):
                options.append((action,))
                if len(options) == _MOST_TARGETS:
                    break
        if len(options) < 2 or request.history.scenario.masks.get(self.seat):
            return options[0] if options else None
        key = Key(0, request.step)  # mean noise draws nothing, so its address does not matter
        belief = world.believe(request.history, 0, key)
        projected = world.project(belief, [(joint,) for joint in options], 1, None, key)
        given = seen.facts.get("tolerances") or request.history.scenario.tolerances
        tolerances = {name: (float(pair[0]), float(pair[1])) for name, pair in given.items()}
        utilities = seat_utilities(
            seat_rules(self.spec, self.seat).utility,
            projected[0],
            world.metrics,
            seen.targets,
            tolerances,
        )
        if utilities is None:
            return options[0]
        rows = range(len(options))
        return options[min(rows, key=lambda row: (-utilities[row], joint_id(options[row])))]


def _allowed(request: Request, joint: Joint) -> bool:
    seen, world = request.observation, request.world
    return all(
        world.check(seen, action) is None and not world.hazards(seen, action) for action in joint
    )


def _texts(value: object) -> Sequence[str]:
    names = value if isinstance(value, list | tuple) else ()
    return [name for name in names if isinstance(name, str)]
