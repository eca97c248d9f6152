"""From observations to a belief, one step after the other: what all services and regions may hide.

A filter is a pure function of what was observed and decided: `passed` takes it over one step, with
the measurements of that step where they have arrived and without where they have not. Public
columns are exact; measurements are noisy, late or missing; what is missing tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from world.model import ActionOutcome, Joint
from world.worlds.cloud import evidence, incidents, menu, reading, rules
from world.worlds.cloud import schema as names
from world.worlds.cloud.frame import Frame, frame
from world.worlds.cloud.needs import needs
from world.worlds.cloud.posterior import (
    HIDDEN,
    Spell,
    hazard,
    lasts_steps,
    no_spell,
    roots_of,
    variants,
)
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import Array, Floats
from world.worlds.cloud.tracks import (
    Process,
    Track,
    closed,
    cured,
    moved,
    new_track,
    opened,
    process,
)
from world.worlds.cloud.view import CloudInventory

_MAX_SURPRISE = 30.0


class Alert(NamedTuple):
    """An incident that an alert told of and that is not explained yet.

    Attributes:
        onset: Step of the alert.
        roots: (service, odds) of where its root may be.
    """

    onset: int
    roots: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """What is believed after one step.

    Attributes:
        at: The physics of the step.
        how: Moments of the demand model.
        tracks: One per service.
        alerts: Incidents whose causes are being weighed.
        announced: Onsets of all incidents that were told or seen.
        spells: Cause → belief that it runs in the home region.
        busy: Utilisation of every queue as measured or expected, float64 [Q].
        miners: Row → step at which its miner was first seen.
        dark_since: First step without any measurement, −1 where they arrive.
    """

    at: Frame
    how: Process
    tracks: tuple[Track, ...]
    alerts: tuple[Alert, ...]
    announced: tuple[int, ...]
    spells: Mapping[int, Spell]
    busy: Floats
    miners: Mapping[int, int]
    dark_since: int = -1

    @property
    def step(self) -> int:
        """Steps done."""
        return self.at.view.step


def first(view: CloudInventory) -> Filter:
    """What is believed of a view before anything was measured."""
    settings = view.settings
    return Filter(
        at=_framed(view, None),
        how=process(settings),
        tracks=tuple(new_track(settings) for _ in range(settings.s)),
        alerts=(),
        announced=(),
        spells={cause: no_spell(settings, cause) for cause in HIDDEN},
        busy=np.full(settings.queues, np.nan),
        miners={},
    )


def passed(
    before: Filter, view: CloudInventory, decision: Joint, outcomes: Sequence[ActionOutcome]
) -> Filter:
    """The belief one step later, before that step's measurements.

    Args:
        before: The belief in the step before.
        view: What was seen after the step.
        decision: What was done in between.
        outcomes: What became of it; without any, everything is taken to have worked.
    """
    settings = view.settings
    hour = float(view.public["w.start_hour_utc"][0, 0])
    midnight = np.floor((hour + view.step * settings.dt_h) / 24.0) != np.floor(
        (hour + (view.step - 1) * settings.dt_h) / 24.0
    )
    tracks = [moved(track, before.how, bool(midnight)) for track in before.tracks]
    tracks = _looked(settings, tracks, before.at.view, view)
    tracks = _repaired(settings, tracks, before.at.view, view)
    tracks = _ended(settings, tracks, view.step)
    tracks = _done(tracks, before.at.view, decision, outcomes)
    now = replace(before, at=_framed(view, before.at), tracks=tuple(tracks))
    now = _alerted(now, view)
    tracks = _counted(settings, list(now.tracks), before.at.view, view)
    now = replace(now, tracks=tuple(tracks))
    miners = {int(row): before.miners.get(int(row), view.step) for row in now.at.miners}
    seen = tuple(step for row, step in miners.items() if row not in before.miners)
    announced = now.announced + seen
    spells = {
        cause: spell.passed(hazard(settings, cause, view.step, announced))
        for cause, spell in now.spells.items()
    }
    return replace(now, announced=announced, miners=miners, spells=spells)


def _framed(view: CloudInventory, before: Frame | None) -> Frame:
    """The physics of a view, worked out once."""
    kept = view.kept.get("frame")
    if not isinstance(kept, Frame):
        known = None if before is None else before.needs
        kept = frame(view, needs(view.settings, view.public, known), before)
        view.kept["frame"] = kept
    return kept


def _looked(
    settings: Settings, tracks: list[Track], old: CloudInventory, new: CloudInventory
) -> list[Track]:
    """What analyses and detections told."""
    width = len(names.CAUSES) + 1
    gained = (
        new.public[names.EVIDENCE_COLUMN][0]
        - evidence.FADES_PER_STEP * old.public[names.EVIDENCE_COLUMN][0]
    ).reshape(settings.s, width)
    table = variants()
    for service in np.flatnonzero(gained.max(axis=-1) > 0.5).tolist():
        track = tracks[service]
        if not track.open:
            continue
        told = int(np.argmax(gained[service]))
        truth = np.where(track.on, table.cause, names.HEALTHY)
        other = (1.0 - evidence.RIGHT) / len(names.CAUSES)
        odds = np.where(truth == told, evidence.RIGHT, other)
        own = float(new.public["s.own_fault"][0, service]) > 0.5
        root = np.where(truth == names.HEALTHY, 1.0 - evidence.HIT, evidence.HIT)
        odds = odds * (root if own else 1.0 - root)
        tracks[service] = replace(track, other_log=track.other_log + np.log(odds))
    return tracks


def _repaired(
    settings: Settings, tracks: list[Track], old: CloudInventory, new: CloudInventory
) -> list[Track]:
    """Rollbacks, restored backups and more room on a disk that became effective."""
    cleaned = old.public["s.clean_wait_steps"][0] == 1
    roomier = new.public["s.disk_room"][0] > old.public["s.disk_room"][0]
    rolled = old.public["s.rollback_wait_steps"][0] == 1
    restored = (old.public["s.restore_wait_steps"][0] == 1) & (old.public["s.db_isolated"][0] > 0)
    for service in range(settings.s):
        if rolled[service]:
            causes = (names.LEAK, names.BAD_DEPLOY)
            tracks[service] = cured(tracks[service], causes, new.step - 1)
        if restored[service]:
            tracks[service] = cured(tracks[service], (names.CORRUPTION,))
        if cleaned[service] or roomier[service]:
            tracks[service] = cured(tracks[service], (names.DISK_FULL,))
    return tracks


def _ended(settings: Settings, tracks: list[Track], step: int) -> list[Track]:
    """Spikes that are over by themselves."""
    lasts = lasts_steps(settings, names.SPIKE)
    return [
        cured(track, (names.SPIKE,)) if track.open and step >= track.onset + lasts else track
        for track in tracks
    ]


def _done(
    tracks: list[Track], old: CloudInventory, decision: Joint, outcomes: Sequence[ActionOutcome]
) -> list[Track]:
    """Repairs that work at once."""
    failed = {id(one.action) for one in outcomes if one.status in ("failed", "refused")}
    failed_ids = {one.action.id for one in outcomes if one.status not in ("applied",)}
    for action in decision:
        if id(action) in failed or action.id in failed_ids:
            continue
        found = reading.read(action, old)
        if found.fault or reading.refusal(found, old):
            continue
        kind, target = found.kind, found.target
        if kind == menu.CRISIS:
            sheet = old.sheet(np.array([target]), np.array([found.params]))
            kinds, parts = rules.crisis_parts(sheet, rules.diagnosis(sheet)[0])
            kind, target = int(kinds[0]), int(parts.target[0])
        step = old.step
        if kind == menu.RESTART:
            tracks[target] = cured(tracks[target], (names.FAILURE,), step)
        elif kind == menu.AUTOSCALE:
            tracks[target] = cured(tracks[target], (names.FIGHT,))
        elif kind == menu.FAILOVER:
            service = target - old.settings.pools
            tracks[service] = cured(tracks[service], (names.FAILURE,))
    return tracks


def _counted(
    settings: Settings, tracks: list[Track], old: CloudInventory, new: CloudInventory
) -> list[Track]:
    """Instances of the home pools that went away without anybody's doing."""
    table = variants()
    for service, track in enumerate(tracks):
        if not track.open or track.lasting.fight:
            continue
        drop = _unexplained(settings, service, old, new)
        if drop is None:
            continue
        held = float(old.public["count"][0, service * settings.regions])
        tracks[service] = _dropped(track, table.cause, drop, held, new.step)
    return tracks


def _unexplained(
    settings: Settings, service: int, old: CloudInventory, new: CloudInventory
) -> tuple[float, bool] | None:
    """Instances gone and whether they drain; None where our own doing may be the reason."""
    row = service * settings.regions
    before, after = old.public, new.public
    ours = (
        after["down_at_step"][0, row] >= old.step
        or before["s.move_to"][0, service] != after["s.move_to"][0, service]
        or before["s.autoscale"][0, service] > 0
    )
    if ours:
        return None
    expected = float(before["count"][0, row] + before["pending_1"][0, row])
    return expected - float(after["count"][0, row]), bool(after["draining"][0, row] > 0)


def _dropped(track: Track, cause: Array, drop: tuple[float, bool], held: float, step: int) -> Track:
    gone, drains = drop
    fights = step % incidents.FIGHT_EVERY_STEPS == 0
    log = np.zeros(len(cause))
    surprise = -_MAX_SURPRISE
    if gone > 0:
        right = names.FIGHT if drains else names.RECLAIM
        log = np.where(cause == right, 0.0, surprise)
    else:
        if fights and np.floor(held * incidents.FIGHT_FRACTION) >= 1 and held >= 4:
            log = np.where((cause == names.FIGHT) & track.on, surprise, log)
        if step == track.onset and np.floor(held * 0.1) >= 1:
            log = np.where(cause == names.RECLAIM, surprise, log)
    return replace(track, other_log=track.other_log + log)


def _alerted(now: Filter, view: CloudInventory) -> Filter:
    """Open hypotheses where an alert was raised in this step."""
    settings = view.settings
    struck = np.flatnonzero(view.public["s.alert_step"][0] == view.step).tolist()
    for service in struck:
        roots = roots_of(settings, service)
        for alert in now.alerts:
            if {one for one, _ in alert.roots} & {one for one, _ in roots}:
                now = _explained(now, alert)
        tracks = list(now.tracks)
        for root, _ in roots:
            tracks[root] = opened(tracks[root], view.step)
        now = replace(
            now, tracks=tuple(tracks), alerts=(*now.alerts, Alert(view.step, roots)),
            announced=(*now.announced, view.step),
        )  # fmt: skip
    return now


def _explained(now: Filter, alert: Alert) -> Filter:
    """Close an alert: every service goes on with the mixture of its hypotheses."""
    tracks = list(now.tracks)
    for service, weight in weights(now, alert).items():
        tracks[service] = closed(tracks[service], weight)
    return replace(
        now, tracks=tuple(tracks), alerts=tuple(one for one in now.alerts if one is not alert)
    )


def weights(now: Filter, alert: Alert) -> dict[int, Floats]:
    """Posterior of the hypotheses of every possible root, float64 [V] each.

    The first is that the root is elsewhere; all others of all roots sum to 1.
    """
    prior = variants().prior
    logs = {}
    for service, odds in alert.roots:
        found = now.tracks[service].evidence
        with np.errstate(divide="ignore"):
            logs[service] = np.log(odds * prior[1:]) + found[1:] - found[0]
    top = max(float(log.max()) for log in logs.values())
    raw = {service: np.exp(log - top) for service, log in logs.items()}
    total = sum(float(np.add.reduce(one)) for one in raw.values())
    return {
        service: np.concatenate([[1.0 - float(np.add.reduce(one)) / total], one / total])
        for service, one in raw.items()
    }


def posterior_of(now: Filter, service: int) -> Floats:
    """Probabilities of a service's hypotheses, float64 [V]."""
    for alert in now.alerts:
        found = weights(now, alert).get(service)
        if found is not None:
            return found
    return np.ones(1)
