"""What the room may imagine: states sampled from what was observed, never from the truth.

`believe` runs the filter over the history (every step once: what it found stays with the view that
it was found from) and draws full states from it. Public columns are taken as they are; hidden ones
come from their posterior. A measurement that is late speaks of an earlier step, and the belief is
carried from there to now without it.
"""

from __future__ import annotations

import numpy as np

from world.errors import InadmissibleActionError
from world.model import Belief, History, Key
from world.worlds.cloud import schema as names
from world.worlds.cloud.filter import Filter, first, passed, weights
from world.worlds.cloud.posterior import HIDDEN, Suspect, variants
from world.worlds.cloud.sample import draw
from world.worlds.cloud.sensing import measured
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import State
from world.worlds.cloud.view import CloudInventory


def believe(history: History, settings: Settings, samples: int, key: Key) -> Belief[State]:
    """See `World.believe`.

    Raises:
        InadmissibleActionError: A negative number of samples, or observations of another world.
    """
    if samples < 0:
        raise InadmissibleActionError(
            f"{samples} belief samples were asked for",
            "there is no such number",
            "Ask for 0 or more",
        )
    now = tracked(history, settings)
    states = draw(now, samples, key)
    return Belief(states, batch=1, samples=max(samples, 1), mean_noise=samples == 0)


def tracked(history: History, settings: Settings) -> Filter:
    """The filter after everything that was observed, carried to the latest observation.

    Raises:
        InadmissibleActionError: Nothing was observed, or another world was.
    """
    views = _views(history)
    last = len(views) - 1
    lag = min(settings.params.lag_steps, 2)
    known = _begun(views[: lag + 1])
    for at in range(1, last + 1):
        if at + lag > last:
            known = _moved(known, history, views, at)
        else:
            known = _filtered(known, history, views, at, views[at + lag])
    return known


def _begun(views: list[CloudInventory]) -> Filter:
    """The first step: every measurement that is late speaks of it until later ones arrive."""
    last = views[-1]
    kept = last.kept.get("filter.first")
    if isinstance(kept, tuple) and list(map(id, kept[0])) == list(map(id, views)):
        found: Filter = kept[1]
        return found
    found = first(views[0])
    for view in views:
        found = measured(found, view.measured)
    last.kept["filter.first"] = (tuple(views), found)
    return found


def _filtered(
    before: Filter, history: History, views: list[CloudInventory], at: int, told: CloudInventory
) -> Filter:
    """One step with its measurements; kept with the view that brought them."""
    kept = told.kept.get("filter")
    decision = history.decisions[at - 1] if at <= len(history.decisions) else ()
    if isinstance(kept, tuple) and kept[0] is before and kept[1] == decision:
        found: Filter = kept[2]
        return found
    found = measured(_moved(before, history, views, at), told.measured)
    told.kept["filter"] = (before, decision, found)
    return found


def _moved(before: Filter, history: History, views: list[CloudInventory], at: int) -> Filter:
    decision = history.decisions[at - 1] if at <= len(history.decisions) else ()
    return passed(before, views[at], decision, history.observations[at].outcomes)


def _views(history: History) -> list[CloudInventory]:
    views = [seen.inventory for seen in history.observations]
    found = [view for view in views if isinstance(view, CloudInventory)]
    if not found or len(found) != len(views):
        raise InadmissibleActionError(
            "the history does not hold observations of this world",
            "a belief is made from what was observed",
            "Observe the world first",
        )
    return found


def root_causes(history: History, settings: Settings) -> tuple[Suspect, ...]:
    """What may be wrong now, with probabilities; likeliest first.

    For every alert that is not explained yet the probabilities of all its causes at all its
    possible roots sum to 1. Incidents of the home region and miners stand beside them, each with
    the probability that it runs.

    Raises:
        InadmissibleActionError: Nothing was observed, or another world was.
    """
    now = tracked(history, settings)
    cause = variants().cause
    found: list[Suspect] = []
    for alert in now.alerts:
        for service, weight in weights(now, alert).items():
            for code in np.unique(cause[1:]).tolist():
                odds = float(np.add.reduce(weight[cause == code]))
                found.append(Suspect(code, service, alert.onset, odds))
    found += [Suspect(code, -1, -1, now.spells[code].probability) for code in HIDDEN]
    found += [Suspect(names.BREACH, -1, onset, 1.0) for onset in now.miners.values()]
    if now.dark_since >= 0:
        found.append(Suspect(names.BLIND, -1, now.dark_since, 1.0))
    return tuple(sorted(found, key=lambda one: (-one.probability, one.cause, one.service)))
