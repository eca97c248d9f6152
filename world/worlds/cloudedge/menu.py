"""What can be done in CloudEdge: the kinds, the catalogue of a moment, and the one validator.

Three variants. ``native``: a crisis response is legal only in an announced crisis, with 1 to 5
servers, anywhere. ``seed``: only there too, and only with 5 servers in the hydro region, which is
also what the room must do. ``open``: legal at any step, with any number of servers and any
region, as the seed shipped it.
"""

from __future__ import annotations

import difflib
from typing import Final, Literal

from world.actions import Action, ActionTemplate, ParamSpec
from world.catalogue import Catalogue
from world.worlds.cloudedge.rules import (
    EFFECTS,
    FULL_RESPONSE_SERVERS,
    HYDRO,
    KINDS,
    Effect,
    response,
)

Variant = Literal["native", "seed", "open"]

FULL_RESPONSE: Final = Action.of(
    "crisis_response", region=HYDRO, server_count=FULL_RESPONSE_SERVERS
)
"""The seed's answer to a crisis."""

_MOST_SERVERS = 2**53  # the last whole number up to which every float is exact
_PLAIN = dict(zip(KINDS, EFFECTS, strict=False))
_TITLES = {
    "scale_up": ("Add capacity", "latency −25…40 ms, cost +12…22 $/h, carbon +8…15"),
    "scale_down": ("Remove capacity", "cost −65…90 $/h, latency +8…15 ms, carbon −5…12"),
    "optimize_energy": ("Tune for energy", "carbon −25…40, cost −25…40 $/h, latency +3…8 ms"),
    "migrate_region": (
        "Move load to a cleaner region",
        "carbon −40…70, latency +10…25 ms, cost +5…20 $/h",
    ),
    "crisis_response": (
        "Answer a crisis with extra servers",
        "with n servers latency −(55…75)·n/5 ms, cost +(2…6)·n/5 $/h; in canada-hydro carbon "
        "−40…60 and cost +0…2 $/h, elsewhere carbon +(5…10)·n/5",
    ),
}


def templates(variant: Variant) -> tuple[ActionTemplate, ...]:
    """The kinds of a variant, in code order."""
    return tuple(
        ActionTemplate(
            kind,
            _TITLES[kind][0],
            _params(variant) if kind == "crisis_response" else (),
            effect=_TITLES[kind][1],
        )
        for kind in KINDS
    )


def _params(variant: Variant) -> tuple[ParamSpec, ...]:
    if variant == "native":
        return (
            ParamSpec("region", (HYDRO, ""), default=""),
            ParamSpec("server_count", (1, 2, 3, 4, 5), minimum=1, maximum=FULL_RESPONSE_SERVERS),
        )
    full = (FULL_RESPONSE_SERVERS,)
    if variant == "seed":
        return (
            ParamSpec("region", (HYDRO,)),
            ParamSpec("server_count", full, minimum=5, maximum=5),
        )
    return (
        ParamSpec("region", (HYDRO,), default=""),
        ParamSpec("server_count", full, default=0, minimum=0),
    )


def _catalogue(variant: Variant, crisis: bool) -> Catalogue:
    plain = [Action(kind) for kind in _PLAIN]
    if variant == "native" and crisis:
        plain += [
            Action.of("crisis_response", region=region, server_count=servers)
            for servers in range(1, FULL_RESPONSE_SERVERS + 1)
            for region in (HYDRO, "")
        ]
    elif variant == "open" or crisis:
        plain.append(FULL_RESPONSE)
    return Catalogue.of(plain)


CATALOGUES: Final = {
    (variant, crisis): _catalogue(variant, crisis)
    for variant in ("native", "seed", "open")
    for crisis in (False, True)
}
"""(variant, crisis announced) → every single action."""


def effect_of(variant: Variant, action: Action) -> Effect | str:
    """The effect of an action, or why it is no action of this variant in any state."""
    plain = _PLAIN.get(action.kind)
    if plain is None and action.kind != "crisis_response":
        close = difflib.get_close_matches(action.kind, KINDS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"there is no action {action.kind!r} here (actions: {', '.join(KINDS)}){hint}"
    if action.target:
        return f"{action.kind} acts on the whole fleet and takes no target ({action.target!r})"
    unknown = [name for name, _ in action.params if name not in ("region", "server_count")]
    if unknown:
        return f"{action.kind} has no parameter {unknown[0]!r}"
    servers = _servers(variant, action, required=plain is None)
    if isinstance(servers, str):
        return servers
    if plain is not None:
        # The seed reads these two fields of a response only, and lets the others carry them.
        if action.params and variant != "open":
            return f"{action.kind} takes no parameters"
        return plain
    hydro = str(action.param("region", "")) == HYDRO
    if variant == "seed" and not hydro:
        return f"here a crisis is answered in {HYDRO} alone: {FULL_RESPONSE.id}"
    return response(float(servers), hydro)


def _servers(variant: Variant, action: Action, required: bool) -> int | str:
    count = action.param("server_count")
    if count is None:
        if variant == "open" or not required:
            return 0
        return f"crisis_response needs server_count, for example {FULL_RESPONSE.id}"
    if isinstance(count, bool) or not isinstance(count, int):
        return f"server_count is {count!r}; it must be a whole number"
    if abs(count) > _MOST_SERVERS:
        return "server_count is beyond ±2**53; it must be a number of servers"
    if count < 0:
        return f"server_count is {count}; it cannot be negative"
    if variant == "open":
        return count
    if required:
        low = 1 if variant == "native" else FULL_RESPONSE_SERVERS
        if not low <= count <= FULL_RESPONSE_SERVERS:
            allowed = "1 to 5" if variant == "native" else "5"
            return f"server_count is {count}; a crisis is answered with {allowed} servers"
    return count


def not_now(variant: Variant, effect: Effect, crisis: bool) -> str | None:
    """Why an action of this variant cannot be taken in this state, or None."""
    if effect.code == len(KINDS) - 1 and not crisis and variant != "open":
        return "crisis_response is legal only in an announced crisis, and none is announced"
    return None
