"""What a person is shown and how what they type is read, whatever front end carries it.

A `Question` is plain data: the situation against its targets, numbered options with what they are
expected to do, and the words that may be typed. `read_answer` turns such a word into a reply, or
says in one line why it cannot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agents.backends.rules.persona import RulePersona
from agents.persona_schema import PersonaSpec
from agents.validate import cleaned_text, validated_reply
from policies.records import MAX_PROPOSALS, Proposal, Reply, Request
from world.actions import Action, joint_id, parse_joint
from world.errors import InadmissibleActionError, InvalidProposalError
from world.model import Joint, Key, Observation

SHOWN = 9
"""Options that are shown at first; ``?`` shows the rest."""
_MOST_OPTIONS = 60
_SMALL_CATALOGUE = 64
_REASON = re.compile(r"\s--\s")
_MOST_FOUND = 20
_TELLING = 1e-3
"""Share of its target by which options must differ in a metric for it to be shown."""
_PASS = frozenset({"pass", "p", "none"})
_YES = frozenset({"y", "yes", "accept"})
_NO = frozenset({"n", "no", "reject"})
_SCORE = re.compile(r"(.+)=(\d+)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be chosen by its number.

    Attributes:
        id: Joint or candidate id.
        note: What it is expected to do, or why it is offered; "" where nothing is known.
    """

    id: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a person, as plain data.

    Attributes:
        seat: Whose.
        kind: ``propose``, ``ballot``, ``respond`` or ``pick``.
        step: The step being decided, 1….
        round: Round of the negotiation; 0 for proposals.
        situation: Lines that say how things stand.
        options: What can be chosen by number, best known first.
        offer: Id of what is offered, where `kind` is ``respond``.
        deadline_s: Seconds to answer.
    """

    seat: str
    kind: str
    step: int
    round: int
    situation: tuple[str, ...]
    options: tuple[Option, ...]
    offer: str = ""
    deadline_s: float = 0.0

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Question:
        """The question that `as_json` wrote."""
        return Question(
            seat=data["seat"],
            kind=data["kind"],
            step=data["step"],
            round=data["round"],
            situation=tuple(data["situation"]),
            options=tuple(Option(entry["id"], entry["note"]) for entry in data["options"]),
            offer=data["offer"],
            deadline_s=data["deadline_s"],
        )

    def as_json(self) -> dict[str, Any]:
        """The question as JSON-plain data."""
        return {
            "seat": self.seat,
            "kind": self.kind,
            "step": self.step,
            "round": self.round,
            "situation": list(self.situation),
            "options": [{"id": option.id, "note": option.note} for option in self.options],
            "offer": self.offer,
            "deadline_s": self.deadline_s,
            "answers": _WORDS[self.kind],
        }


_WORDS = {
    "propose": "numbers or action ids in order of preference (a+b is done together), pass, ?, or "
    "?TEXT to look for an action; text after -- is your reason",
    "ballot": "NUMBER=SCORE with scores 0 to 10, several apart by spaces, pass, or ?",
    "respond": "y, n, or the number or id of a counter-offer, pass, or ?",
    "pick": "a number or an id, pass, or ?",
}


class BadAnswer(ValueError):
    """What was typed cannot be used; the text says why."""


def question_of(spec: PersonaSpec, request: Request, deadline_s: float) -> Question:
    """The question that a request puts to the person at its seat."""
    ask = request.ask
    offer = ask.payload.get("offer")
    return Question(
        seat=ask.seat,
        kind=ask.kind,
        step=request.step + 1,
        round=ask.round,
        situation=_situation(request.observation),
        options=_options(spec, request),
        offer=offer if isinstance(offer, str) else "",
        deadline_s=deadline_s,
    )


def question_text(question: Question, full: bool = False) -> str:
    """A question for a terminal: the situation, then the numbered options."""
    place = f"step {question.step}" + (f", round {question.round}" if question.round else "")
    lines = ["", f"-- your seat: {question.seat} · {place} · {question.kind}"]
    lines += [f"   {line}" for line in question.situation]
    if question.offer:
        lines.append(f"   offered: {_shown(question.offer)}")
    shown = question.options if full else question.options[:SHOWN]
    for number, option in enumerate(shown, start=1):
        note = f"  {option.note}" if option.note else ""
        lines.append(f"  {number:>2}  {_shown(option.id)}{note}")
    if len(question.options) > len(shown):
        lines.append(f"      … and {len(question.options) - len(shown)} more: type ?")
    lines.append(f"   type {_WORDS[question.kind]}")
    return "\n".join(lines)


def found_text(request: Request, part: str) -> str:
    """Ids of actions that can be taken now and hold a text, for a person who looks for one."""
    found = []
    for action in request.world.catalogue(request.observation):
        if part.lower() in action.id.lower():
            if request.world.check(request.observation, action) is None:
                found.append(f"      {_shown(action.id)}")
            if len(found) == _MOST_FOUND:
                found.append("      … type more of it")
                break
    return "\n".join(found) or f"   nothing that can be done now holds {_clean(part, 60)!r}"


def read_answer(question: Question, request: Request, text: str) -> Reply:
    """The reply that a typed line means.

    Raises:
        BadAnswer: It means none; the message says why and what can be typed.
    """
    body, *reason = _REASON.split(text.strip(), maxsplit=1)
    words = body.split()
    if not words:
        raise BadAnswer(f"type {_WORDS[question.kind]}")
    if [word.lower() for word in words] in [[word] for word in _PASS]:
        return Reply()
    reply = _READ[question.kind](question, request, words, reason[0].strip() if reason else "")
    try:
        return validated_reply(request, reply)
    except InvalidProposalError as error:
        raise BadAnswer(error.line()) from error


def _situation(seen: Observation) -> tuple[str, ...]:
    lines = [f"{seen.horizon - seen.step} of {seen.horizon} steps are left"]
    for name, value in seen.metrics.items():
        bound = seen.targets.get(name)
        now = "unknown" if value is None else f"{value:.5g}"
        if bound is None:
            lines.append(f"{name} {now}")
        else:
            mark = "" if value is None else ("  in" if value < bound else "  OUT")
            lines.append(f"{name} {now} (target below {bound:g}){mark}")
    lines += [f"! {_clean(line, 200)}" for line in seen.incidents[:5]]
    lines += [
        f"last step: {_shown(outcome.action.id)} {outcome.status}"
        + (f", {_clean(outcome.reason, 120)}" if outcome.reason else "")
        for outcome in seen.outcomes[:3]
    ]
    return tuple(lines)


def _options(spec: PersonaSpec, request: Request) -> tuple[Option, ...]:
    if request.ask.kind != "propose":
        offered = request.ask.payload.get("candidates")
        ids = [name for name in offered if isinstance(name, str)] if offered else []
        joints = {name: _legal_joint(request, name) for name in ids}
        notes = _consequences(request, [joint for joint in joints.values() if joint])
        found = [Option(name, notes.get(joint_id(joints[name] or ()), "")) for name in ids]
        return tuple(found[:_MOST_OPTIONS])
    said = {
        joint_id(proposal.actions): _clean(proposal.rationale, 90)
        for proposal in _rule_proposals(spec, request)
    }
    joints_by_id: dict[str, Joint] = {}
    for name in said:
        joint = _legal_joint(request, name)
        if joint:
            joints_by_id[name] = joint
    catalogue = request.world.catalogue(request.observation)
    if len(catalogue) <= _SMALL_CATALOGUE:
        for action in catalogue:
            if request.world.check(request.observation, action) is None:
                joints_by_id.setdefault(action.id, (action,))
    notes = _consequences(request, list(joints_by_id.values()))
    options = []
    for name in joints_by_id:
        parts = [notes.get(name, ""), f"rule: {said[name]}" if said.get(name) else ""]
        options.append(Option(name, " · ".join(part for part in parts if part)))
    return tuple(options[:_MOST_OPTIONS])


def _rule_proposals(spec: PersonaSpec, request: Request) -> tuple[Proposal, ...]:
    try:
        return RulePersona.by_role(spec, request.ask.seat).answer(request).proposals
    except Exception:  # a menu without the rule's advice is still a menu
        return ()


def _legal_joint(request: Request, name: str) -> Joint | None:
    try:
        joint = parse_joint(name.partition(">")[0])
    except InadmissibleActionError:
        return None
    seen, world = request.observation, request.world
    return joint if all(world.check(seen, action) is None for action in joint) else None


def _consequences(request: Request, joints: Sequence[Joint]) -> dict[str, str]:
    """Joint id → what the metrics with a target are expected to be one step later."""
    seen, world, history = request.observation, request.world, request.history
    if not joints or history.scenario.masks.get(request.ask.seat):
        return {}
    try:
        key = Key(0, request.step)  # mean noise draws nothing, so its address does not matter
        belief = world.believe(history, 0, key)
        projected = world.project(belief, [(joint,) for joint in joints], 1, None, key)
    except Exception:  # consequences are a courtesy; without them the person still decides
        return {}
    after = projected[0, :, 0, 0, :]
    # Only what the options differ in is worth reading.
    shown = [
        (place, metric.name)
        for place, metric in enumerate(world.metrics)
        if (bound := seen.targets.get(metric.name)) is not None
        and (len(joints) == 1 or float(np.ptp(after[:, place])) > _TELLING * abs(bound))
    ]
    return {
        joint_id(joint): "→ "
        + ", ".join(f"{name} {after[row, place]:.4g}" for place, name in shown)
        for row, joint in enumerate(joints)
        if shown
    }


def _named(question: Question, word: str) -> str:
    """The id that a number or an id means."""
    if word.isascii() and word.isdigit():
        number = int(word[:9])
        if not 1 <= number <= len(question.options):
            raise BadAnswer(f"there is no option {word[:9]}; there are {len(question.options)}")
        return question.options[number - 1].id
    return word


def _propose(question: Question, request: Request, words: list[str], reason: str) -> Reply:
    if len(words) > MAX_PROPOSALS:
        raise BadAnswer(f"{len(words)} proposals, at most {MAX_PROPOSALS}")
    proposals = []
    for word in words:
        text = _named(question, word)
        try:
            joint = parse_joint(text)
        except InadmissibleActionError as error:
            raise BadAnswer(f"{error.what} ({error.why})") from error
        # Numbers in an id may be meant as text: the template knows.
        joint = tuple(_with_declared_types(request, action) for action in joint)
        for action in joint:
            why = request.world.check(request.observation, action)
            if why is not None:
                raise BadAnswer(f"{_shown(action.id)} cannot be taken now: {_clean(why, 200)}")
        proposals.append(Proposal(joint, reason or "chosen by the person at this seat"))
    return Reply(proposals=tuple(proposals))


def _with_declared_types(request: Request, action: Action) -> Action:
    for template in request.world.templates:
        if template.kind == action.kind:
            declared = {param.name: param.choices for param in template.params}
            params = tuple(
                (name, str(value) if all(isinstance(c, str) for c in declared[name]) else value)
                if declared.get(name)
                else (name, value)
                for name, value in action.params
            )
            return replace(action, params=params)
    return action


def _ballot(question: Question, request: Request, words: list[str], reason: str) -> Reply:
    del request
    scores: dict[str, int] = {}
    for word in words:
        found = _SCORE.match(word)
        if not found or len(found[2]) > 2 or int(found[2]) > 10:
            raise BadAnswer(f"{_clean(word, 60)!r} is no score: write NUMBER=SCORE, as in 1=8")
        scores[_named(question, found[1])] = int(found[2])
    return Reply(scores=scores, message=reason)


def _respond(question: Question, request: Request, words: list[str], reason: str) -> Reply:
    del request
    word = _only(words)
    if word.lower() in _YES:
        return Reply(accept=True, message=reason)
    if word.lower() in _NO:
        return Reply(accept=False, message=reason)
    counter = _named(question, word)
    return Reply(accept=counter == question.offer, counter=counter, message=reason)


def _pick(question: Question, request: Request, words: list[str], reason: str) -> Reply:
    del request
    return Reply(choice=_named(question, _only(words)), message=reason)


def _only(words: list[str]) -> str:
    if len(words) != 1:
        raise BadAnswer("one word is enough; a reason goes behind --")
    return words[0]


_READ = {"propose": _propose, "ballot": _ballot, "respond": _respond, "pick": _pick}


def _clean(text: str, limit: int) -> str:
    return " ".join(cleaned_text(text, limit).split())


def _shown(name: str) -> str:
    return _clean(name, 100)
