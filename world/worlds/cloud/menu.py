"""The actions of the cloud: templates, aliases of older names, and what they cost and risk.

Failure odds are scaled by the preset. Delays are in steps; one-off costs are in dollars and are
charged whether the action works or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from world.actions import ActionTemplate, ParamSpec
from world.worlds.cloud.tables import regions
from world.worlds.finops.sizes import machine_types

Target = Literal["none", "row", "service"]

FRACTIONS: Final = (0.1, 0.25, 0.5)
RESERVE_FRACTIONS: Final = (0.1, 0.2)
MOVE_FRACTIONS: Final = (0.5, 1.0)
LEVELS: Final = (0, 1, 2)
WEIGHTS: Final = (0.0, 0.5, 1.0, 2.0)
SIZES: Final = tuple(machine.name for machine in machine_types())

PARAMS = 3
"""Parameters that an encoded action carries."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of action.

    Attributes:
        name: Its kind.
        target: What it is aimed at.
        template: What the room is told.
        fail: Odds of failure at scale 1.
        usd: One-off cost.
    """

    name: str
    target: Target
    template: ActionTemplate
    fail: float = 0.0
    usd: float = 0.0


def _kind(
    name: str,
    target: Target,
    title: str,
    effect: str,
    params: tuple[ParamSpec, ...] = (),
    delay: int = 0,
    fail: float = 0.0,
    usd: float = 0.0,
    destructive: bool = False,
) -> Kind:
    template = ActionTemplate(name, title, params, target != "none", destructive, delay, effect)
    return Kind(name, target, template, fail, usd)


_FRACTION = ParamSpec("fraction", FRACTIONS, 0.25, 0.01, 0.5)

KINDS: Final[tuple[Kind, ...]] = (
    _kind("nop", "none", "Do nothing", "none"),
    _kind("scale_up", "row", "Order instances for a pool or database",
          "adds a fraction of its instances; billed at once, serving after 2 steps",
          (_FRACTION,), 2, 0.02),
    _kind("scale_down", "row", "Drain instances of a pool or database",
          "removes a fraction of its instances; no traffic at once, billed one step more; the "
          "count before is remembered", (_FRACTION,), 1, 0.01, destructive=True),
    _kind("resize", "row", "Change the machine size",
          "rolling change within the size's ladder: one instance in n is away for 2 steps; a "
          "database fails over once", (ParamSpec("new_size", SIZES),), 2, 0.03, destructive=True),
    _kind("optimize_energy", "service", "Set a service's energy level",
          "each level: 12 % fewer watts, requests take 11 % longer or more; batch work waits for "
          "a cleaner grid", (ParamSpec("level", LEVELS, 1, 0, 2),), 1, 0.02),
    _kind("migrate_region", "service", "Move a service to another region",
          "orders the moving instances there (billed twice until the cut-over), copies the data "
          "at 1 GB/s for $0.02/GB where it moves along; cold caches for 2 steps",
          (ParamSpec("region", regions().names),
           ParamSpec("fraction", MOVE_FRACTIONS, 1.0, 0.05, 1),
           ParamSpec("with_data", (False, True), False)), 3, 0.05, destructive=True),
    _kind("terminate", "row", "Remove a resource for good", "its cost and watts end; its data are "
          "gone unless a snapshot was taken", (), 1, 0.02, destructive=True),
    _kind("mark", "row", "Mark a resource for removal", "tells the owner, who may object, which "
          "protects it; else the grace period runs"),
    _kind("unmark", "row", "Take a mark back", "the grace period ends"),
    _kind("stop", "row", "Stop a machine", "no machine cost, no watts; disks stay", (), 1, 0.01,
          destructive=True),
    _kind("start", "row", "Start a stopped or isolated machine", "it runs and costs again", (), 1,
          0.01),
    _kind("snapshot", "row", "Copy a resource's data", "data and evidence survive its removal",
          (), 1, 0.01, 2.0),
    _kind("detach", "row", "Detach a volume", "what needs it loses it", (), 1, 0.01,
          destructive=True),
    _kind("attach", "row", "Attach a detached volume", "it is in use again", (), 1, 0.01),
    _kind("restart", "service", "Restart a service's processes",
          "memory as after the start, wedged processes cleared; one instance in n away for a step",
          (), 1, 0.02),
    _kind("rollback", "service", "Return to the last good version",
          "undoes a bad deploy and ends its leak after 2 steps", (), 2, 0.05),
    _kind("rebalance", "row", "Set a pool's traffic weight",
          "shares traffic anew among a service's pools", (ParamSpec("weight", WEIGHTS, 1.0, 0, 4),),
          0, 0.01, destructive=True),
    _kind("isolate", "row", "Take a resource off the network",
          "stops harm that spreads from it; one machine, or one instance of a database", (), 0, 0.0,
          destructive=True),
    _kind("restore_backup", "row", "Restore a database from its backup",
          "clean data after 6 steps if the corrupt instance is isolated; the writes since the "
          "last full hour with clean data are lost, at $1 per million", (), 6, 0.05, 20.0,
          destructive=True),
    _kind("failover_db", "row", "Fail a database over", "clears a failing primary; half of its "
          "capacity and 5 % errors for a step", (), 1, 0.02, destructive=True),
    _kind("buy_reserved", "row", "Reserve instances for a year",
          "37 % off for a fraction of the instances from the next full hour; at most 20 % of a "
          "pool per episode; the unused term is charged at the end",
          (ParamSpec("fraction", RESERVE_FRACTIONS, 0.1, 0.01, 0.2),), 12),
    _kind("set_autoscaler", "service", "Switch a service's autoscaler",
          "adds 10 % above 72 % utilisation, removes 10 % after 6 steps below 46 %",
          (ParamSpec("enabled", (True, False), True),)),
    _kind("detect", "none", "Look for anomalies", "says of each service, with false alarms, "
          "whether something is wrong", (), 0, 0.0, 0.5),
    _kind("analyse", "service", "Look for the cause at one service",
          "adds evidence on the cause, right three times in four", (), 0, 0.0, 0.5),
    _kind("evaluate", "row", "Examine one resource for compromise or corruption",
          "sets its suspicion, with errors", (), 0, 0.0, 0.5),
    _kind("crisis_response", "service", "Do what the diagnosis calls for",
          "takes the remedy of the likeliest cause; costs and risks what that remedy does"),
    _kind("request_metrics", "row", "Ask for a resource's use", "known after 1 step", (), 1),
    _kind("flag_for_owner", "row", "Ask the owner whether it is needed", "known after 2 steps", (),
          2),
    _kind("free_disk", "row", "Clean a database's disk", "deletes its logs and temporary files; "
          "a full disk takes writes again after 2 steps", (), 2, 0.02, 1.0),
)  # fmt: skip

(
    NOP, SCALE_UP, SCALE_DOWN, RESIZE, OPTIMIZE_ENERGY, MIGRATE, TERMINATE, MARK, UNMARK, STOP,
    START, SNAPSHOT, DETACH, ATTACH, RESTART, ROLLBACK, REBALANCE, ISOLATE, RESTORE, FAILOVER,
    RESERVE, AUTOSCALE, DETECT, ANALYSE, EVALUATE, CRISIS, REQUEST_METRICS, FLAG,
    FREE_DISK,
) = range(len(KINDS))  # fmt: skip

ERRANDS: Final = MappingProxyType({
    "analyse": 0.05, "detect": 0.05, "evaluate": 0.05,
    "request_metrics": 0.02, "flag_for_owner": 0.01, "mark": 0.002, "snapshot": 0.002,
})  # fmt: skip
"""Kinds that find out or prepare, of which a projection shows little or nothing, and what each is
worth to who asks: a step of an outage is worth about 0.3, a question about waste breaks ties."""

TEMPLATES: Final = tuple(kind.template for kind in KINDS)
CODES: Final = {kind.name: code for code, kind in enumerate(KINDS)}

ALIASES: Final = {
    "analyze_system_state": "detect", "detect_system_anomaly": "detect",
    "detect_memory_leak": "detect", "detect_high_cpu": "detect",
    "detect_service_failure": "detect", "detect_data_corruption": "detect",
    "detect_security_breach": "detect", "detect_traffic_spike": "detect",
    "verify_system_recovery": "detect",
    "classify_leak_severity": "analyse", "classify_failure_type": "analyse",
    "classify_corruption_scope": "analyse", "classify_threat_level": "analyse",
    "select_optimal_strategy": "analyse", "select_recovery_strategy": "analyse",
    "select_security_strategy": "analyse", "select_balancing_strategy": "analyse",
    "select_response_strategy": "analyse",
    "evaluate_cleanup_options": "evaluate", "evaluate_scaling": "evaluate",
    "evaluate_recovery_options": "evaluate", "evaluate_containment_options": "evaluate",
    "free_memory_resources": "restart", "restart_service": "restart",
    "scale_resources": "scale_up", "recover_corrupted_data": "restore_backup",
    "isolate_affected_systems": "isolate", "redistribute_traffic": "rebalance",
    "apply_mitigation": "rollback", "stabilize_system": "crisis_response",
    "analyze": "analyse", "right_size": "resize", "noop": "nop",
}  # fmt: skip
"""Names of the earlier environments, and today's kind that means the same."""
