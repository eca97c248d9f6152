"""What actions do: one function per kind, over many worlds at once, on a new state.

Whether an action may be taken is decided by `rules` on the state before the step; whether it works
is drawn by (step, target, kind), so that no other action can shift the draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world import noise
from world.errors import InadmissibleActionError
from world.model import Encoded
from world.worlds.cloud import evidence, menu, rules
from world.worlds.cloud import schema as names
from world.worlds.cloud.rules import Refusal, Sheet
from world.worlds.cloud.state import Array, Floats, State
from world.worlds.cloud.tables import machines, prices

CHURN_STEPS = 12
"""Undoing an action within so many steps is churn. Source: an hour, as oscillation detectors of
node autoscalers look back."""
TRANSITION_USD = 0.05
"""Image pulls and warm-up per instance that is ordered or replaced, $; assumed."""
COPY_GB_PER_S = 1.0
"""Speed at which data move between regions; assumed."""
MOST_MOVE_STEPS, LEAST_MOVE_STEPS = 12, 2

_SERVICE_ENTITY = 1 << 20  # services are addressed above all rows
_CHANNELS = tuple(noise.channel(f"cloud.action.{kind.name}") for kind in menu.KINDS)
_FAIL = np.array([kind.fail for kind in menu.KINDS])
_USD = np.array([kind.usd for kind in menu.KINDS])
_BY_SERVICE = np.array([kind.target == "service" for kind in menu.KINDS])
_BY_ROW = np.array([kind.target == "row" for kind in menu.KINDS])
_ORDERS = np.isin(np.arange(len(menu.KINDS)), (menu.SCALE_UP, menu.MIGRATE))


class Taken(NamedTuple):
    """What became of the actions of one step.

    Attributes:
        codes: int8 [B, slots], `Refusal`; 0 where there was no action or none was refused.
        failed: bool [B, slots], taken but without effect.
        repeat: float64 [B], share of the actions that failed, were refused or undo another.
        acted: bool [B, slots], there was an action other than nop.
    """

    codes: NDArray[np.int8]
    failed: NDArray[np.bool_]
    repeat: Floats
    acted: NDArray[np.bool_]


def take(before: State, after: State, actions: Encoded) -> Taken:
    """Check, draw and apply the actions of one step.

    Args:
        before: The state in which they were decided.
        after: The new state, to which they are applied.
        actions: At most three a world, in canonical order.

    Raises:
        InadmissibleActionError: A kind or target code that does not exist.
    """
    shape = actions.kinds.shape
    codes = np.zeros(shape, dtype=np.int8)
    failed = np.zeros(shape, dtype=np.bool_)
    acted = actions.kinds > menu.NOP
    world, slot = np.nonzero(acted)
    if not world.size:
        return Taken(codes, failed, np.zeros(shape[0]), acted)
    kinds = actions.kinds[world, slot].astype(np.int64)
    params = np.zeros((len(world), menu.PARAMS))
    params[:, : actions.params.shape[-1]] = actions.params[world, slot]
    sheet = Sheet(
        before.settings,
        before.columns,
        before.step,
        world,
        actions.targets[world, slot].astype(np.intp),
        params,
    )
    _check_codes(sheet, kinds)
    verdict = np.zeros(len(world), dtype=np.int8)
    for kind in np.unique(kinds):
        at = np.flatnonzero(kinds == kind)
        verdict[at] = rules.refusals(int(kind), sheet.at(at))
    kinds, sheet = _spell_out(kinds, sheet, verdict)
    if shape[1] > 1 and (world[1:] == world[:-1]).any():
        _clashes(kinds, sheet, verdict)
    bad = (verdict == 0) & (_draws(after, kinds, sheet) < _odds(before, kinds, sheet))
    works = (verdict == 0) & ~bad
    churn = _churn(kinds, sheet) | bad | (verdict != 0)
    _charge(after, kinds, sheet, verdict == 0)
    for kind in np.unique(kinds[works]):
        at = np.flatnonzero(works & (kinds == kind))
        _EFFECTS[int(kind)](after, sheet.at(at))
    codes[world, slot], failed[world, slot] = verdict, bad
    count = np.maximum(np.add.reduce(acted, axis=-1), 1)
    repeat = np.bincount(world, weights=churn, minlength=shape[0]) / count
    return Taken(codes, failed, repeat, acted)


def _check_codes(sheet: Sheet, kinds: NDArray[np.int64]) -> None:
    settings = sheet.settings
    known = (kinds >= 0) & (kinds < len(menu.KINDS))
    limit = np.where(_BY_SERVICE[np.where(known, kinds, 0)], settings.s, settings.rows)
    aimed = (_BY_SERVICE | _BY_ROW)[np.where(known, kinds, 0)]
    inside = ~aimed | ((sheet.target >= 0) & (sheet.target < limit))
    if not (known & inside).all():
        at = int(np.flatnonzero(~(known & inside))[0])
        raise InadmissibleActionError(
            f"world {sheet.world[at]} of the batch has the action code {kinds[at]} on target "
            f"{sheet.target[at]}",
            "there is no such kind or target",
            "Encode actions with World.encode",
        )
    sheet.target[~aimed] = 0


def _spell_out(
    kinds: NDArray[np.int64], sheet: Sheet, verdict: NDArray[np.int8]
) -> tuple[NDArray[np.int64], Sheet]:
    """Crisis responses become what they stand for, so that they cost and risk the same."""
    at = np.flatnonzero((kinds == menu.CRISIS) & (verdict == 0))
    if not at.size:
        return kinds, sheet
    asked = sheet.at(at)
    cause, _ = rules.diagnosis(asked)
    parts, aimed = rules.crisis_parts(asked, cause)
    kinds = kinds.copy()
    kinds[at] = parts
    sheet.target[at] = aimed.target
    sheet.params[at] = aimed.params
    return kinds, sheet


def _clashes(kinds: NDArray[np.int64], sheet: Sheet, verdict: NDArray[np.int8]) -> None:
    """Refuse an action that touches what an earlier one of the same step touches."""
    settings = sheet.settings
    by_service, by_row = _BY_SERVICE[kinds], _BY_ROW[kinds]
    row = np.where(by_row, sheet.target, 0)
    touch = np.stack(
        [
            np.where(by_row, row, -1),
            np.where(by_row, sheet.columns["attached_to"][sheet.world, row], -1),
            np.where(by_row, sheet.columns["needed_by"][sheet.world, row], -1),
        ],
        axis=1,
    )
    tier = (touch >= 0) & (touch < settings.queues)
    service_of = np.where(tier, settings.queue_service[np.where(tier, touch, 0)], -2)
    service = np.where(by_service, sheet.target, -1)
    first = np.searchsorted(sheet.world, sheet.world)
    for back in (1, 2):
        other = np.arange(len(kinds)) - back
        same = (other >= first) & (verdict == 0)
        other = np.maximum(other, 0)
        same &= verdict[other] == 0
        rows = (touch[:, :, None] == touch[other][:, None, :]) & (touch[:, :, None] >= 0)
        meets = rows.any(axis=(1, 2))
        meets |= (service >= 0) & (service == service[other])
        meets |= (service[:, None] == service_of[other]).any(axis=1)
        meets |= (service[other][:, None] == service_of).any(axis=1)
        verdict[same & meets] = Refusal.CLASH


def _draws(after: State, kinds: NDArray[np.int64], sheet: Sheet) -> Floats:
    if after.mean_noise or after.settings.params.fail_scale == 0:
        return np.ones(len(kinds))
    # A row's permanent number, so that worlds which hold fewer rows draw the same.
    ordinal = sheet.columns["ordinal"][sheet.world, np.where(_BY_ROW[kinds], sheet.target, 0)]
    entity = np.where(_BY_SERVICE[kinds], _SERVICE_ENTITY + sheet.target, ordinal)
    u: Floats = noise.uniforms(
        after.seeds[sheet.world],
        entity,
        np.array(_CHANNELS, dtype=np.uint64)[kinds],
        after.step,
        after.replica[sheet.world],
    )[0]
    return u


def _odds(before: State, kinds: NDArray[np.int64], sheet: Sheet) -> Floats:
    """Odds that an action fails; orders can also meet a region without capacity."""
    odds: Floats = _FAIL[kinds] * before.settings.params.fail_scale
    order = _ORDERS[kinds]
    if order.any():
        slot = np.where(
            kinds == menu.MIGRATE, sheet.params[:, 0], before.columns["slot"][
                sheet.world, np.where(order & (kinds == menu.SCALE_UP), sheet.target, 0)
            ],
        ).astype(np.intp)  # fmt: skip
        slot = np.clip(slot, 0, before.settings.regions - 1)
        odds = odds + np.where(order, before.columns["h.g.stockout"][sheet.world, slot], 0.0)
    return odds


def _churn(kinds: NDArray[np.int64], sheet: Sheet) -> Array:
    row = np.where(_BY_ROW[kinds], sheet.target, 0)
    down = sheet.step - sheet.columns["down_at_step"][sheet.world, row] < CHURN_STEPS
    up = sheet.step - sheet.columns["up_at_step"][sheet.world, row] < CHURN_STEPS
    again = sheet.step - sheet.columns["resized_at_step"][sheet.world, row] < CHURN_STEPS
    undone: Array = ((kinds == menu.SCALE_UP) & down) | ((kinds == menu.SCALE_DOWN) & up)
    undone |= (kinds == menu.RESIZE) & again
    return undone


def _charge(after: State, kinds: NDArray[np.int64], sheet: Sheet, taken: Array) -> None:
    """One-off costs of everything that was tried."""
    usd = _USD[kinds] * taken
    settings = after.settings
    row = np.where(_BY_ROW[kinds], sheet.target, 0)
    count = sheet.columns["count"][sheet.world, row]
    ordered = np.where(kinds == menu.SCALE_UP, rules.changed_count(count, sheet.params[:, 0]), 0.0)
    ordered = np.where(kinds == menu.RESIZE, count, ordered)
    move = kinds == menu.MIGRATE
    if move.any():
        service = np.where(move, sheet.target, 0)
        moved = Sheet(settings, sheet.columns, sheet.step, sheet.world, service, sheet.params)
        leaving = moved.pools("count", service).max(axis=-1) * sheet.params[:, 1]
        ordered = np.where(move, leaving, ordered)
        data = settings.per_service("data_gb")[service] * prices()["egress_region"]
        usd = usd + np.where(move & taken & (sheet.params[:, 2] > 0), data, 0.0)
    usd = usd + ordered * TRANSITION_USD * taken
    if usd.any():
        total = after.own("w.one_off_usd")
        total[:, 0] += np.bincount(sheet.world, weights=usd, minlength=after.batch)


def _cut(after: State, world: NDArray[np.intp], service: NDArray[np.intp]) -> None:
    """Remember that an action took capacity from a service."""
    known = service >= 0
    after.own("h.s.cut_at_step")[world[known], service[known]] = after.step


def _scale_up(after: State, sheet: Sheet) -> None:
    more = rules.changed_count(sheet.row("count"), sheet.params[:, 0])
    after.own("pending_2")[sheet.world, sheet.target] += more
    after.own("up_at_step")[sheet.world, sheet.target] = sheet.step
    known, coming = sheet.row("prior_count"), sheet.row("count") + more
    after.own("prior_count")[sheet.world, sheet.target] = np.where(coming >= known, 0.0, known)


def _scale_down(after: State, sheet: Sheet) -> None:
    count = sheet.row("count")
    less = np.minimum(rules.changed_count(count, sheet.params[:, 0]), count)
    # Two cuts in a row must not forget where the first began.
    known = sheet.row("prior_count")
    after.own("prior_count")[sheet.world, sheet.target] = np.maximum(known, count)
    after.own("count")[sheet.world, sheet.target] -= less
    after.own("draining")[sheet.world, sheet.target] += less
    after.own("down_at_step")[sheet.world, sheet.target] = sheet.step
    _cut(after, sheet.world, sheet.row("service").astype(np.intp))


def _resize(after: State, sheet: Sheet) -> None:
    new = sheet.params[:, 0].astype(np.int32)
    after.own("resize_to")[sheet.world, sheet.target] = new
    after.own("resize_wait_steps")[sheet.world, sheet.target] = 2
    after.own("resized_at_step")[sheet.world, sheet.target] = sheet.step
    table = machines(after.settings.params.power_model)
    old = sheet.row("size")
    database = (sheet.target >= after.settings.pools) & (sheet.target < after.settings.queues)
    if database.any():
        world, service = sheet.world[database], sheet.target[database] - after.settings.pools
        after.own("s.failover_steps")[world, service] = 1
    smaller = table.vcpu[new] < table.vcpu[old]
    queue = sheet.target < after.settings.queues
    cut = smaller & queue
    if cut.any():
        _cut(after, sheet.world[cut], sheet.row("service")[cut].astype(np.intp))
    extra = sheet.target >= after.settings.pools
    if extra.any():
        _squeeze(after, sheet.at(extra), table.vcpu[old][extra] / table.vcpu[new][extra],
                 table.memory_gib[old][extra] / table.memory_gib[new][extra])  # fmt: skip


def _squeeze(after: State, sheet: Sheet, cpu: Floats, memory: Floats) -> None:
    """A resize preserves the work of a single machine; work that no longer fits is an outage."""
    for name, ratio in (("h.cpu_percent", cpu), ("h.peak_cpu_percent", cpu),
                        ("h.memory_percent", memory)):  # fmt: skip
        column = after.own(name)
        column[sheet.world, sheet.target] = column[sheet.world, sheet.target] * ratio
        shown = after.own(name.removeprefix("h."))
        shown[sheet.world, sheet.target] = shown[sheet.world, sheet.target] * ratio
    after.extras = object()


def _energy(after: State, sheet: Sheet) -> None:
    after.own("s.eco_level")[sheet.world, sheet.target] = sheet.params[:, 0]


def _migrate(after: State, sheet: Sheet) -> None:
    settings = after.settings
    source, target = rules.move_source(sheet), sheet.params[:, 0].astype(np.intp)
    old = sheet.target * settings.regions + source
    new = sheet.target * settings.regions + target
    count = sheet.columns["count"][sheet.world, old]
    moving = np.minimum(np.maximum(np.floor(count * sheet.params[:, 1] + 1e-9), 1.0), count)
    along = sheet.params[:, 2] > 0
    copy = settings.per_service("data_gb")[sheet.target] / COPY_GB_PER_S / settings.dt_s
    steps = np.where(along, np.ceil(copy) + LEAST_MOVE_STEPS, LEAST_MOVE_STEPS + 1)
    steps = np.clip(steps, LEAST_MOVE_STEPS, MOST_MOVE_STEPS)
    # The machines are there before the cut-over: billed on both sides until then.
    after.own("pending_2")[sheet.world, new] += moving
    after.own("size")[sheet.world, new] = sheet.columns["size"][sheet.world, old]
    for name, value in (("s.move_to", target), ("s.move_from", source), ("s.move_data", along),
                        ("s.move_count", moving), ("s.move_wait_steps", steps)):  # fmt: skip
        after.own(name)[sheet.world, sheet.target] = value


def _set(name: str, value: float) -> Callable[[State, Sheet], None]:
    def effect(after: State, sheet: Sheet) -> None:
        after.own(name)[sheet.world, sheet.target] = value
        after.extras = object()

    return effect


def _set_state(value: int) -> Callable[[State, Sheet], None]:
    return _set("state", value)


def _terminate(after: State, sheet: Sheet) -> None:
    _set("state", names.TERMINATED)(after, sheet)
    after.own("needed_by")[sheet.world, sheet.target] = -1


def _mark(after: State, sheet: Sheet) -> None:
    """Tell the owner, who may object: then the row is protected from then on."""
    objects = after.columns["h.objects"][sheet.world, sheet.target] > 0
    marked = np.where(objects, -1, sheet.step)
    after.own("marked_at_step")[sheet.world, sheet.target] = marked
    if objects.any():
        after.own("protected")[sheet.world[objects], sheet.target[objects]] = 1


def _isolate(after: State, sheet: Sheet) -> None:
    database = sheet.target < after.settings.queues
    if database.any():
        service = sheet.target[database] - after.settings.pools
        after.own("s.db_isolated")[sheet.world[database], service] = 1
    machine = ~database
    if machine.any():
        after.own("state")[sheet.world[machine], sheet.target[machine]] = names.ISOLATED
        after.extras = object()


def _restart(after: State, sheet: Sheet) -> None:
    after.own("h.s.memory_age_h")[sheet.world, sheet.target] = 0.0
    after.own("h.s.fault")[sheet.world, sheet.target] = 0.0
    wait = after.own("restart_wait_steps")
    for slot in range(after.settings.regions):
        wait[sheet.world, sheet.target * after.settings.regions + slot] = 1


def _rollback(after: State, sheet: Sheet) -> None:
    after.own("s.rollback_wait_steps")[sheet.world, sheet.target] = 2


def _rebalance(after: State, sheet: Sheet) -> None:
    after.own("weight")[sheet.world, sheet.target] = sheet.params[:, 0]
    # Traffic that leaves one pool loads another: either way capacity is cut somewhere.
    _cut(after, sheet.world, sheet.row("service").astype(np.intp))


def _restore(after: State, sheet: Sheet) -> None:
    service = sheet.target - after.settings.pools
    after.own("s.restore_wait_steps")[sheet.world, service] = 6


def _free_disk(after: State, sheet: Sheet) -> None:
    after.own("s.clean_wait_steps")[sheet.world, sheet.target - after.settings.pools] = 2


def _failover(after: State, sheet: Sheet) -> None:
    service = sheet.target - after.settings.pools
    after.own("s.failover_steps")[sheet.world, service] = 1
    after.own("h.s.fault")[sheet.world, service] = 0.0


def _reserve(after: State, sheet: Sheet) -> None:
    more = rules.changed_count(sheet.row("count"), sheet.params[:, 0])
    after.own("reserve_ordered")[sheet.world, sheet.target] += more


def _autoscale(after: State, sheet: Sheet) -> None:
    after.own("s.autoscale")[sheet.world, sheet.target] = sheet.params[:, 0] > 0
    # Whoever sets it takes it out of other hands.
    after.own("h.s.fight")[sheet.world, sheet.target] = 0


def _ask_metrics(after: State, sheet: Sheet) -> None:
    after.own("metrics_wait_steps")[sheet.world, sheet.target] = 1


def _ask_owner(after: State, sheet: Sheet) -> None:
    after.own("owner_wait_steps")[sheet.world, sheet.target] = 2


_EFFECTS: dict[int, Callable[[State, Sheet], None]] = {
    menu.SCALE_UP: _scale_up, menu.SCALE_DOWN: _scale_down, menu.RESIZE: _resize,
    menu.OPTIMIZE_ENERGY: _energy, menu.MIGRATE: _migrate, menu.TERMINATE: _terminate,
    menu.MARK: _mark, menu.UNMARK: _set("marked_at_step", -1),
    menu.STOP: _set_state(names.STOPPED), menu.START: _set_state(names.RUNNING),
    menu.SNAPSHOT: _set("snapshot_taken", 1), menu.DETACH: _set_state(names.DETACHED),
    menu.ATTACH: _set_state(names.RUNNING), menu.RESTART: _restart, menu.ROLLBACK: _rollback,
    menu.REBALANCE: _rebalance, menu.ISOLATE: _isolate, menu.RESTORE: _restore,
    menu.FAILOVER: _failover, menu.RESERVE: _reserve, menu.AUTOSCALE: _autoscale,
    menu.DETECT: evidence.detect, menu.ANALYSE: evidence.analyse,
    menu.EVALUATE: evidence.evaluate, menu.REQUEST_METRICS: _ask_metrics, menu.FLAG: _ask_owner,
    menu.FREE_DISK: _free_disk,
}  # fmt: skip
