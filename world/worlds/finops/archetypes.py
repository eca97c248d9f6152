"""What generated inventories are made of: zombies, decoys, workers, and what tells them apart.

A *zombie* is unused and nothing needs it. A *decoy* looks like one in some way and is essential;
it differs from every zombie in at least one observable that the room can obtain (`tell`), so that
care is always enough. The patterns are those that operators of clean-up tools report: month-end
and nightly batch machines, standby replicas, snapshots behind images, volumes detached an hour
ago, "temporary" resources that something depends on.

The kinds and thresholds are ours; AWS Trusted Advisor and Compute Optimizer (2025) flag the same
kinds as idle (low CPU for 14 days, unattached volumes, unassociated addresses, idle balancers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["zombie", "decoy", "worker"]
Range = tuple[float, float]

ENVIRONMENTS = ("", "production", "staging", "development", "temporary")
"""Words of the environment tag; empty is untagged."""

_LIVED_IN = (0.10, 0.75, 0.10, 0.05, 0.0)
_MIXED = (0.25, 0.20, 0.20, 0.35, 0.0)
_TEMPORARY = (0.0, 0.0, 0.0, 0.0, 1.0)

_SMALL = ("m5.large", "m5.xlarge", "t3.large", "c5.xlarge", "m5.2xlarge")
_LARGE = ("m5.2xlarge", "m5.4xlarge", "c5.4xlarge", "r5.2xlarge", "r5.4xlarge")
_DB_SMALL = ("db.m5.large", "db.m5.xlarge", "db.r5.large")
_DB_LARGE = ("db.m5.2xlarge", "db.m5.4xlarge", "db.r5.2xlarge")

_BUSY: Range = (0.0, 0.5)
_LONG_IDLE: Range = (336.0, 2500.0)
_NEVER: Range = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Archetype:
    """One pattern of resource.

    Attributes:
        name: Its name in a scenario's ``layout``.
        role: Zombie, decoy or worker.
        kind: Kind of resource.
        cpu_percent: Range of the mean CPU; (0, 0) for kinds without a CPU.
        memory_percent: Range of the mean memory; (0, 0) for kinds without memory.
        idle_hours: Range of the hours since the last use.
        essential: Probability that something needs it.
        sizes: Machine sizes, equally likely; () where the kind has none.
        usd_per_hour: Range of the cost where there is no machine size.
        environments: Probability of each of `ENVIRONMENTS`.
        needed_by: Archetype of the resource that depends on it; "" for none.
        tell: For decoys: the observable that no zombie shares, and its side.
        protected: Whether nobody may touch it.
        managed_by: Who else changes it.
    """

    name: str
    role: Role
    kind: str
    idle_hours: Range
    essential: float
    cpu_percent: Range = _NEVER
    memory_percent: Range = _NEVER
    sizes: tuple[str, ...] = ()
    usd_per_hour: Range = _NEVER
    environments: tuple[float, ...] = _MIXED
    needed_by: str = ""
    tell: str = ""
    protected: bool = False
    managed_by: str = "none"


ARCHETYPES: tuple[Archetype, ...] = (
    # Zombies: below 2 % CPU and at most 15 % memory, or unused, for at least 14 days.
    Archetype("idle_vm", "zombie", "compute", _LONG_IDLE, 0.0, (0.1, 1.9), (2.0, 15.0), _SMALL),
    Archetype(
        "forgotten_gpu",
        "zombie",
        "compute",
        _LONG_IDLE,
        0.0,
        (0.1, 1.0),
        (2.0, 10.0),
        ("g4dn.xlarge",),
    ),
    Archetype(
        "abandoned_db", "zombie", "database", _LONG_IDLE, 0.0, (0.1, 1.9), (4.0, 15.0), _DB_SMALL
    ),
    Archetype(
        "unattached_volume", "zombie", "storage", _LONG_IDLE, 0.0, usd_per_hour=(0.011, 0.11)
    ),
    Archetype(
        "orphan_snapshot", "zombie", "snapshot", _LONG_IDLE, 0.0, usd_per_hour=(0.014, 0.137)
    ),
    Archetype(
        "idle_loadbalancer",
        "zombie",
        "loadbalancer",
        _LONG_IDLE,
        0.0,
        usd_per_hour=(0.0225, 0.0305),
    ),
    Archetype("idle_gateway", "zombie", "gateway", _LONG_IDLE, 0.0, usd_per_hour=(0.045, 0.045)),
    Archetype("unused_address", "zombie", "address", _LONG_IDLE, 0.0, usd_per_hour=(0.005, 0.005)),
    Archetype(
        "attached_volume",
        "zombie",
        "storage",
        _LONG_IDLE,
        0.0,
        usd_per_hour=(0.02, 0.11),
        needed_by="idle_vm",
    ),
    # Decoys: essential, however idle they look.
    Archetype(
        "nightly_batch",
        "decoy",
        "compute",
        (2.0, 20.0),
        1.0,
        (0.5, 4.5),
        (5.0, 40.0),
        _SMALL,
        tell="idle_hours below 24",
    ),
    Archetype(
        "standby_replica",
        "decoy",
        "database",
        _LONG_IDLE,
        1.0,
        (0.2, 1.9),
        (50.0, 75.0),
        ("db.m5.xlarge", "db.m5.2xlarge"),
        environments=_LIVED_IN,
        tell="memory_percent above 15",
    ),
    Archetype(
        "recovery_site",
        "decoy",
        "compute",
        _LONG_IDLE,
        1.0,
        (0.1, 1.9),
        (2.0, 15.0),
        _SMALL,
        tell="essential answered yes",
    ),
    Archetype(
        "detached_volume",
        "decoy",
        "storage",
        (0.5, 8.0),
        1.0,
        usd_per_hour=(0.03, 0.11),
        tell="idle_hours below 24",
    ),
    Archetype(
        "image_snapshot",
        "decoy",
        "snapshot",
        _LONG_IDLE,
        1.0,
        usd_per_hour=(0.03, 0.137),
        needed_by="web_vm",
        tell="live_dependants in use",
    ),
    Archetype(
        "temporary_volume",
        "decoy",
        "storage",
        _LONG_IDLE,
        1.0,
        usd_per_hour=(0.03, 0.11),
        environments=_TEMPORARY,
        needed_by="web_vm",
        tell="live_dependants in use",
    ),
    # Workers: in use. The oversized ones would fit a smaller size; the tight ones would not.
    Archetype(
        "web_vm",
        "worker",
        "compute",
        _BUSY,
        0.95,
        (35.0, 70.0),
        (45.0, 75.0),
        ("m5.large", "m5.xlarge", "c5.xlarge", "r5.xlarge"),
        environments=_LIVED_IN,
    ),
    Archetype(
        "busy_db",
        "worker",
        "database",
        _BUSY,
        1.0,
        (25.0, 60.0),
        (50.0, 78.0),
        _DB_SMALL,
        environments=_LIVED_IN,
    ),
    Archetype(
        "tight_vm",
        "worker",
        "compute",
        _BUSY,
        1.0,
        (68.0, 81.0),
        (60.0, 80.0),
        ("m5.xlarge", "m5.2xlarge", "r5.xlarge"),
        environments=_LIVED_IN,
    ),
    Archetype(
        "oversized_vm",
        "worker",
        "compute",
        _BUSY,
        0.9,
        (5.5, 14.0),
        (5.0, 18.0),
        _LARGE,
        environments=_LIVED_IN,
    ),
    Archetype(
        "oversized_db",
        "worker",
        "database",
        _BUSY,
        1.0,
        (5.5, 15.0),
        (8.0, 24.0),
        _DB_LARGE,
        environments=_LIVED_IN,
    ),
    Archetype(
        "autoscaled_node",
        "worker",
        "compute",
        (1.0, 12.0),
        0.5,
        (0.5, 4.0),
        (5.0, 30.0),
        ("m5.large",),
        environments=(1.0, 0.0, 0.0, 0.0, 0.0),
        managed_by="autoscaler",
    ),
    Archetype(
        "control_plane",
        "worker",
        "database",
        _BUSY,
        1.0,
        (2.0, 4.5),
        (30.0, 60.0),
        ("db.t3.small",),
        environments=(0.0, 1.0, 0.0, 0.0, 0.0),
        protected=True,
    ),
)
"""Every archetype, in the order of their codes."""

FILLER = "web_vm"
"""What stands in the place of an archetype whose coin fell the other way."""
