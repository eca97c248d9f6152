"""What a seat says from its numbers alone: its ballot, its answer to an offer, its pick.

Rule personas, and scripted ones where their script says nothing, speak from the engine's own
utility of projected consequences. They are honest without trying: what they state is what the
engine works out for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.persona_schema import PersonaSpec
from policies.concession import Concession, Offer, answer, own_range
from policies.records import Reply, Request, Stakes

SAME = 1e-9
_MOST_OFFERS = 1024


def stance(request: Request, spec: PersonaSpec) -> Reply | None:
    """The answer to ``ballot``, ``respond`` or ``pick`` from what the seat has at stake.

    A seat without objectives of its own has no stake: it speaks for the room as a whole. Asked
    to pick, it takes what leaves the worst-off seat with most, where it is shown the ballots.

    Returns:
        None where the request says nothing of what lies on the table.
    """
    stakes = request.stakes
    if stakes is None or not stakes.welfare:
        return None
    kind, payload = request.ask.kind, request.ask.payload
    own = stakes.utilities or stakes.welfare
    if kind == "ballot":
        return Reply(scores=_scores(own, _listed(payload, own)))
    if kind == "pick":
        return Reply(choice=_pick(payload, stakes))
    if kind == "respond":
        mine = stakes if stakes.utilities else Stakes(own, own, min(own.values()))
        return _respond(request.ask.seat, payload, manner_of(spec), mine)
    return None


def manner_of(spec: PersonaSpec) -> Concession:
    """How a persona gives way, from its file."""
    table = spec.concession
    return Concession(table.kind, table.beta, table.accept, table.bid, table.min_utility)


def _scores(own: Mapping[str, float], names: Sequence[str]) -> dict[str, int]:
    """Tenths of the seat's own range, rounded; 10 throughout for a seat that is indifferent."""
    if not names:
        return {}
    low, high = min(own.values()), max(own.values())
    if high - low <= SAME:
        return dict.fromkeys(names, 10)
    return {name: round(10.0 * (own[name] - low) / (high - low)) for name in names}


def _pick(payload: Mapping[str, Any], stakes: Stakes) -> str:
    names = _listed(payload, stakes.welfare)
    if not names:
        return ""
    if stakes.utilities:
        return _first_of(names, {n: (stakes.utilities[n], stakes.welfare[n]) for n in names})
    floors = _floors(payload, names)
    return _first_of(names, {n: (floors.get(n, 0.0), stakes.welfare[n]) for n in names})


def _floors(payload: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Candidate → what the worst-off seat gets of it, where ballots are shown."""
    ballots = payload.get("ballots")
    rows = list(ballots.values()) if isinstance(ballots, Mapping) else []
    rows = [row for row in rows if isinstance(row, list | tuple) and len(row) == len(names)]
    return (
        {name: min(row[place] for row in rows) for place, name in enumerate(names)} if rows else {}
    )


def _first_of(names: Sequence[str], worth: Mapping[str, tuple[float, float]]) -> str:
    """The best in order of worth; of equals, the smaller id."""
    return min(names, key=lambda name: (-worth[name][0], -worth[name][1], name))


def _respond(seat: str, payload: Mapping[str, Any], manner: Concession, stakes: Stakes) -> Reply:
    offer, against = _text(payload, "offer"), _text(payload, "against")
    value = stakes.utilities.get(offer)
    if against in stakes.utilities and value is not None:
        return Reply(accept=value >= stakes.utilities[against] - SAME)
    last = "deadline" in payload
    deadline = max(_whole(payload, "deadline", 1), 1)
    number = min(max(_whole(payload, "round", deadline), 0), deadline)
    if "against" in payload:  # the last word on a text: it, or no deal
        reservation, _ = own_range(manner, stakes)
        return Reply(accept=value is not None and value >= reservation - SAME)
    offers = _offers(payload) if manner.listens else []
    said = answer(manner, stakes, offer, number, deadline, offers, seat)
    if offer and last and number >= deadline:
        return Reply(accept=said.accept)  # there is no next round to offer anything in
    return Reply(accept=said.accept, counter=said.bid)


def _offers(payload: Mapping[str, Any]) -> list[Offer]:
    made = payload.get("offers")
    if not isinstance(made, list | tuple):
        return []
    return [
        Offer(entry[0], entry[1])
        for entry in made[:_MOST_OFFERS]
        if isinstance(entry, list | tuple)
        and len(entry) == 2
        and all(isinstance(part, str) for part in entry)
    ]


def _listed(payload: Mapping[str, Any], known: Mapping[str, float]) -> list[str]:
    """The candidates that the question names, in its order; all of them where it names none."""
    offered = payload.get("candidates")
    if not isinstance(offered, list | tuple):
        return list(known)
    return [name for name in offered if isinstance(name, str) and name in known]


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _whole(payload: Mapping[str, Any], name: str, default: int) -> int:
    value = payload.get(name)
    return value if type(value) is int else default
