"""Find a protocol by name. Modules are imported when they are asked for."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import re
import sys
from typing import Any

from policies.records import NegotiationProtocol
from world.errors import ConfigError, UnknownNameError

COMMANDER = "commander"
"""The protocol in which a commander's seat decides, and the no-deal rule of that name."""

_BUILT_IN = {
    "alternating_offers": "policies.protocols.offers:AlternatingOffers",
    "approval": "policies.protocols.voting:Approval",
    "borda": "policies.protocols.voting:Borda",
    "cloudedge_boardroom": "policies.protocols.boardroom:CloudEdgeBoardroom",
    COMMANDER: "policies.protocols.hierarchy:Commander",
    "copeland": "policies.protocols.condorcet:Copeland",
    "debate": "policies.protocols.debate:Debate",
    "incident_commander": "policies.protocols.command:IncidentCommander",
    "kalai_smorodinsky": "policies.protocols.bargaining:KalaiSmorodinsky",
    "leximin": "policies.protocols.welfare:Leximin",
    "mediator": "policies.protocols.mediation:Mediator",
    "nash": "policies.protocols.bargaining:Nash",
    "plurality": "policies.protocols.voting:Plurality",
    "ranked_pairs": "policies.protocols.condorcet:RankedPairs",
    "schulze": "policies.protocols.condorcet:Schulze",
    "single_text": "policies.protocols.single_text:SingleText",
    "vcg": "policies.protocols.auction:VCG",
    "weighted_score": "policies.protocols.welfare:WeightedScore",
}
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_ATTRIBUTES = ("name", "title", "description", "max_rounds", "worlds", "decide")
_LIST_THEM = "List them: python run_warroom.py protocols"


def protocol_names() -> tuple[str, ...]:
    """Names of the protocols that are built in, sorted."""
    return tuple(sorted(_BUILT_IN))


def protocol(name: str) -> NegotiationProtocol:
    """A protocol by its name, or your own by ``package.module:name``.

    Your own is an instance, or a class that is called without arguments, with everything that
    `policies.records.NegotiationProtocol` lists.

    Raises:
        UnknownNameError: There is no such protocol, or it cannot be imported.
        ConfigError: What the reference names is not a protocol.
    """
    if ":" in name:
        return _load(name)
    reference = _BUILT_IN.get(name)
    if reference is None:
        close = difflib.get_close_matches(name, _BUILT_IN, n=2, cutoff=0.5)
        hint = f"Did you mean {' or '.join(close)}? " if close else ""
        raise UnknownNameError(
            f"there is no protocol {name!r}",
            f"built in are {', '.join(protocol_names())}",
            f"{hint}{_LIST_THEM}",
        )
    return _load(reference)


def _load(reference: str) -> NegotiationProtocol:
    if not _REFERENCE.fullmatch(reference):
        raise UnknownNameError(
            f"{reference!r} names no protocol",
            "a reference is package.module:name",
            _LIST_THEM,
        )
    module_name, _, name = reference.partition(":")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it prints is no answer of ours
            found: Any = getattr(importlib.import_module(module_name), name)
            made = found() if isinstance(found, type) else found
    except (Exception, SystemExit) as error:  # whatever somebody's module does must stay one line
        raise UnknownNameError(
            f"protocol {reference!r} cannot be loaded",
            f"{type(error).__name__}: {error}",
            "Check the module's path and name, and that its class needs no arguments",
        ) from error
    missing = [attribute for attribute in _ATTRIBUTES if not hasattr(made, attribute)]
    if missing:
        raise ConfigError(
            f"{reference!r} is not a protocol",
            f"it has no {missing[0]}",
            f"A protocol has {', '.join(_ATTRIBUTES)}",
        )
    loaded: NegotiationProtocol = made
    return loaded


def require_world(chosen: NegotiationProtocol, world: str) -> None:
    """Refuse a protocol on a world that it was not made for.

    Raises:
        ConfigError: The protocol names its worlds, and this one is not among them.
    """
    if chosen.worlds and world not in chosen.worlds:
        raise ConfigError(
            f"protocol {chosen.name!r} does not run on the world {world!r}",
            f"it is defined for {', '.join(chosen.worlds)} only",
            f"Choose another. {_LIST_THEM}",
        )


def no_deal_rule(name: str) -> str:
    """Check what is to decide when there is no deal: ``nop``, ``commander`` or a protocol's name.

    Raises:
        UnknownNameError: None of them.
    """
    if name not in {"nop", COMMANDER}:
        protocol(name)
    return name
