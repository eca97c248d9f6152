"""The rounds of a negotiation in words: who was asked what, said what, and what came of it.

A trace keeps every question and answer; a decision keeps the protocol's own account of its
rounds. The account is what a reader wants first; the exchanges are for a closer look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.trace.events import Event
from orchestrator.trace.ids import shown_id
from orchestrator.trace.steps import StepRecord, mapping, numbers, sequence
from orchestrator.trace.untrusted import printable

_DEEPEST = 4
_BEST = 3
_NAME_LIMIT = 80
_ASKED = ("offer", "response")


class Said(NamedTuple):
    """One line of talk.

    Attributes:
        who: Seat that speaks; "" for the room.
        round: Its round.
        text: What it comes to. Holds text of others: data, never markup.
    """

    who: str
    round: int
    text: str


def told(record: StepRecord, seats: Sequence[str], *, full: bool, limit: int) -> list[Said]:
    """What a story tells of the rounds of a step.

    Args:
        record: The step.
        seats: Whose lines; those of the room always.
        full: Every exchange, then the account; else the account and what was said in words, and
            the exchanges only where there is no account.
        limit: Most characters of an id; 0 shows all.
    """
    talk = [entry for entry in record.talk if entry.agent in seats or not entry.agent]
    lines = [said for said in account(record.decision, limit) if said.who in seats or not said.who]
    if lines and not full:
        return [*lines, *exchanges([e for e in talk if e.type not in _ASKED], limit)]
    return [*exchanges(talk, limit), *lines]


def account(decision: Mapping[str, Any], limit: int = _NAME_LIMIT) -> list[Said]:
    """A protocol's own account of its rounds, one line per entry.

    Args:
        decision: Data of a decision event.
        limit: Most characters of an id; 0 shows all.
    """
    lines = []
    for item in sequence(decision.get("account")):
        entry = mapping(item)
        tell = _ACCOUNTS.get(str(entry.get("kind")), _anything)
        number = entry.get("round")
        who = str(entry.get("seat", ""))
        lines.append(Said(who, number if isinstance(number, int) else 0, tell(entry, limit)))
    return lines


def exchanges(talk: Sequence[Event], limit: int = _NAME_LIMIT) -> Iterator[Said]:
    """Questions and answers, one line per seat and round; messages on lines of their own.

    Args:
        talk: Offers, responses, messages and inputs of one step, in order.
        limit: Most characters of an id; 0 shows all.
    """
    asked: dict[tuple[int, str], Mapping[str, Any]] = {}
    for entry in talk:
        data = mapping(entry.data)
        if entry.type == "offer":
            asked[entry.round, entry.agent] = data
        elif entry.type == "response":
            question = asked.pop((entry.round, entry.agent), {})
            yield Said(entry.agent, entry.round, _answer(question, data, limit))
        elif entry.type == "message":
            yield Said(entry.agent, entry.round, f"“{data.get('text', '')}”")
        else:
            yield Said(entry.agent, entry.round, f"{entry.type}: {members(data)}")
    for (number, seat), question in asked.items():
        yield Said(seat, number, f"is asked to {question.get('kind', '?')}; no answer is recorded")


def members(value: object, depth: int = 0) -> str:
    """The members of anything as ``name value``; text as itself."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        shown = []
        for name, item in value.items():
            if item in ("", None, [], {}):
                continue
            text = members(item, depth + 1)
            shown.append(text if name in {"text", "payload", "kind"} else f"{name} {text}")
        return ", ".join(shown)
    if isinstance(value, list | tuple):
        return " | ".join(members(item, depth + 1) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _answer(question: Mapping[str, Any], said: Mapping[str, Any], limit: int) -> str:
    payload = mapping(question.get("payload"))
    if "accept" in said:
        return _response(payload, said, limit)
    if "choice" in said:
        of = len(sequence(payload.get("candidates")))
        return f"picks {_id(said['choice'], limit)}{f' of {of}' if of else ''}"
    if "scores" in said:
        scores = numbers(said["scores"])
        best = sorted(scores, key=lambda name: (-scores[name], name))
        top = " · ".join(f"{_id(name, limit)} {scores[name]:g}" for name in best[:_BEST])
        more = f" · {len(best) - _BEST} more" if len(best) > _BEST else ""
        return f"scores {top}{more}" if best else "states no scores"
    return members(said)


def _response(payload: Mapping[str, Any], said: Mapping[str, Any], limit: int) -> str:
    offer, by, against = (payload.get(name) for name in ("offer", "by", "against"))
    counter = said.get("counter")
    if not offer:
        return f"offers {_id(counter, limit)}" if counter else "offers nothing"
    verb = "accepts" if said["accept"] else "declines"
    text = f"{verb} {_id(offer, limit)}"
    if by:
        text += f" of {_name(by)}"
    if against:
        text += f" instead of {_id(against, limit)}"
    if counter and counter != offer:
        text += f"; would offer {_id(counter, limit)}"
    return text


def _offer(entry: Mapping[str, Any], limit: int) -> str:
    text = f"offers {_id(entry.get('candidate'), limit)}"
    accepted, declined = _names(entry.get("accepted")), _names(entry.get("declined"))
    if accepted:
        text += f"; accepted by {accepted}"
    return text + (f"; declined by {declined}" if declined else "; agreed")


def _pass(entry: Mapping[str, Any], limit: int) -> str:
    del entry, limit
    return "has nothing to offer"


def _text(entry: Mapping[str, Any], limit: int) -> str:
    against, kept = entry.get("against"), entry.get("kept")
    name = _id(entry.get("candidate"), limit)
    opposed = entry.get("opposed")
    share = f"{100 * opposed:.0f} % against" if isinstance(opposed, int | float) else ""
    if against:
        result = "becomes the text" if kept else "is dropped"
        return f"{name} instead of {_id(against, limit)}: {share}, {result}"
    return f"last text {name}: {share}, {'decided' if kept else 'no majority'}"


def _ballots(entry: Mapping[str, Any], limit: int) -> str:
    del limit
    if entry.get("secret"):
        return f"secret ballots of {_names(entry.get('stated')) or 'nobody'}"
    changed = _names(entry.get("changed"))
    return f"ballots in sight of the others': {changed or 'nobody'} changed"


def _command(entry: Mapping[str, Any], limit: int) -> str:
    return f"commands {_id(entry.get('candidate'), limit)}"


def _without(entry: Mapping[str, Any], limit: int) -> str:
    name = _id(entry.get("candidate"), limit)
    return f"without a commander: {name}, by {_name(entry.get('protocol'))}"


def _objection(entry: Mapping[str, Any], limit: int) -> str:
    text = f"objects: prefers {_id(entry.get('prefers'), limit)}"
    loss = entry.get("loses")
    if isinstance(loss, int | float):
        text += f", loses {loss:.3g}"
    return text + (", worse off than without a deal" if entry.get("below_no_deal") else "")


def _mediation(entry: Mapping[str, Any], limit: int) -> str:
    return f"mediates: {_id(entry.get('candidate'), limit)}"


def _anything(entry: Mapping[str, Any], limit: int) -> str:
    del limit
    return members({name: item for name, item in entry.items() if name not in {"round", "seat"}})


_ACCOUNTS: dict[str, Callable[[Mapping[str, Any], int], str]] = {
    "offer": _offer,
    "pass": _pass,
    "text": _text,
    "ballots": _ballots,
    "command": _command,
    "without_commander": _without,
    "objection": _objection,
    "mediation": _mediation,
}


def _id(value: object, limit: int) -> str:
    return shown_id(value or "nothing", limit)


def _name(value: object) -> str:
    return printable(str(value), _NAME_LIMIT)


def _names(value: object) -> str:
    return ", ".join(_name(item) for item in sequence(value))
