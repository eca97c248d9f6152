"""What a step reports in words and points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from world.actions import Action
from world.model import ActionOutcome, Status
from world.worlds.cloud import menu
from world.worlds.cloud import schema as names
from world.worlds.cloud.effects import Taken
from world.worlds.cloud.reading import Reading
from world.worlds.cloud.reward import USD_PER_POINT, charge_at_end
from world.worlds.cloud.rules import TEXTS, Refusal
from world.worlds.cloud.state import State
from world.worlds.cloud.view import ids_of

_LIFECYCLE = frozenset(
    {
        menu.TERMINATE, menu.STOP, menu.START, menu.SNAPSHOT, menu.DETACH, menu.ATTACH,
        menu.MIGRATE,
    }
)  # fmt: skip
"""Kinds whose failure shows only in that the object stays as it was."""


def with_end_charge(after: State) -> None:
    """In the last step, charge what was put off; in place."""
    if after.done:
        charge = charge_at_end(after)
        after.flags["put_off"] = charge
        after.flags["reward"] = after.flags["reward"] + charge


def terms_of(after: State) -> dict[str, float]:
    """Reward terms of a single world; they sum to the reward."""
    flags = after.flags
    terms = {
        "latency": float(flags["latency"][0]),
        "cost": float(flags["cost"][0]),
        "carbon": float(flags["carbon"][0]),
        "all": 2.0 * float(flags["all"][0]),
        "one_offs": -float(flags["one_off_usd"][0]) / USD_PER_POINT,
    }
    if "put_off" in flags:
        terms["put_off"] = float(flags["put_off"][0])
    return terms


def outcomes_of(
    before: State, after: State, taken: Taken, pairs: Sequence[tuple[Action, Reading]]
) -> dict[int, ActionOutcome]:
    """What became of each action, by the identity of the action."""
    found: dict[int, ActionOutcome] = {}
    for slot, (action, reading) in enumerate(pairs):
        if reading.fault:
            found[id(action)] = ActionOutcome(action, "refused", reason=reading.fault)
            continue
        code = Refusal(int(taken.codes[0, slot]))
        delay = menu.TEMPLATES[reading.kind].delay_steps
        if code:
            status: Status = "already_gone" if code == Refusal.GONE else "refused"
            text = _reason(before, code, reading)
            found[id(action)] = ActionOutcome(action, status, reason=text)
        elif taken.failed[0, slot]:
            # An interface that says yes and leaves the object as it was: nothing is gained.
            word: Status = "accepted_not_effective" if reading.kind in _LIFECYCLE else "failed"
            found[id(action)] = ActionOutcome(
                action, word, reason="it was accepted and did not work; nothing changed"
            )
        elif _ineffective(before, reading):
            found[id(action)] = ActionOutcome(
                action,
                "accepted_not_effective",
                effect="restoring while the corrupt instance is on the network",
                delay_steps=delay,
            )
        else:
            effect = _effect(before, after, reading)
            found[id(action)] = ActionOutcome(action, "applied", effect=effect, delay_steps=delay)
    return found


def _ineffective(before: State, reading: Reading) -> bool:
    if reading.kind != menu.RESTORE:
        return False
    service = reading.target - before.settings.pools
    return not before.columns["s.db_isolated"][0, service]


def _reason(before: State, code: Refusal, reading: Reading) -> str:
    if code == Refusal.DEPENDANTS:
        needed = int(before.columns["needed_by"][0, reading.target])
        return f"{ids_of(before, 0)[needed]} needs it"
    return TEXTS[code]


def _effect(before: State, after: State, reading: Reading) -> str:
    """One line with the numbers that an action moved."""
    kind, target = reading.kind, reading.target
    old, new = before.columns, after.columns
    if kind == menu.SCALE_UP:
        ordered = new["pending_1"][0, target] + new["pending_2"][0, target]
        return f"{old['count'][0, target]:.0f} ready, {ordered:.0f} ordered"
    if kind == menu.SCALE_DOWN:
        return f"{old['count'][0, target]:.0f} → {new['count'][0, target]:.0f} instances"
    if kind == menu.RESIZE:
        table = menu.SIZES
        was, becomes = int(old["size"][0, target]) - 1, int(reading.params[0]) - 1
        return f"{table[was]} → {table[becomes]}, rolling"
    if kind == menu.MIGRATE:
        moving = new["s.move_count"][0, target]
        return f"{moving:.0f} instances move in {new['s.move_wait_steps'][0, target]} steps"
    if kind == menu.MARK and new["protected"][0, target]:
        return "its owner objects: it is protected from now on"
    if kind == menu.EVALUATE:
        return f"suspicion {new['suspicion'][0, target]:.2f}"
    if kind in (menu.DETECT, menu.ANALYSE, menu.CRISIS):
        return "evidence is in the next observation" if kind != menu.CRISIS else "remedy under way"
    return menu.TEMPLATES[kind].effect


def events_of(before: State, after: State) -> tuple[str, ...]:
    """What happened by itself and can be seen: alerts, lost measurements."""
    new, old = after.columns["s.alert_step"][0], before.columns["s.alert_step"][0]
    services = after.settings.params.services
    lines = [f"alert: {services[at]} misbehaves" for at in np.flatnonzero(new != old).tolist()]
    if after.step < after.columns["h.w.blind_until"][0, 0]:
        lines.append("no measurements arrive")
    return tuple(lines)


def violations_of(after: State) -> tuple[str, ...]:
    """Harm that this step did to a single world, one line each."""
    lines = []
    rows = after.flags.get("harmed_rows")
    if rows is not None:
        ids = ids_of(after, 0)
        for row in np.flatnonzero(rows[0]).tolist():
            state = names.STATES[after.columns["state"][0, row]]
            word = "needed and overloaded" if state == "running" else f"needed and {state}"
            if after.columns["h.compromised"][0, row]:
                word = "evidence lost: terminated before its disk was copied"
            lines.append(f"{ids[row]}: {word}")
    starved = after.flags.get("starved")
    if starved is not None:
        lines += [
            f"{after.settings.params.services[at]}: starved by our own cut"
            for at in np.flatnonzero(starved[0]).tolist()
        ]
    return tuple(lines)
