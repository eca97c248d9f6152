"""What the rows outside the service tiers are: waste, look-alikes that are needed, and the rest.

Every look-alike differs from every kind of waste of its own kind in at least one thing that a seat
can obtain (`telling_apart`); a test checks the whole table. Kinds of use are drawn uniformly from
the ranges below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from world.worlds.cloud.schema import (
    BUCKET,
    COMPUTE,
    DB,
    GPU,
    IP,
    LB,
    NAT,
    RUNNING,
    SNAPSHOT,
    STOPPED,
    VOLUME,
)

Role = Literal["waste", "decoy", "ordinary"]
Range = tuple[float, float]

IDLE_WINDOW_HOURS = 336.0
"""Unused for so long is unused: 14 days, as in AWS Trusted Advisor's idle checks."""


@dataclass(frozen=True, slots=True)
class Archetype:
    """One sort of row.

    Attributes:
        name: Its name; never shown to a seat.
        role: ``waste``, ``decoy`` (looks unused, is needed) or ``ordinary``.
        kind: Code of `schema.KINDS`.
        share: Relative frequency within its role.
        sizes: Machine sizes to draw from; empty for none.
        count: Range of instances.
        gigabytes: Range of stored data before calibration, GB.
        cpu: Range of mean CPU over two weeks, percent; None where it has none.
        peak: Range of the highest hour of 30 days, percent.
        memory: Range of memory, percent.
        idle_hours: Range of hours since last use.
        age_hours: Range of age at the start.
        state: Code of `schema.STATES`.
        detached: Whether a volume hangs on nothing.
        hangs_on: ``pool``, ``lb``, ``stopped`` (the stopped machine) or ``""``.
        needed_by: ``pool``, ``db``, ``plane`` (the control plane) or ``""``.
        environments: Tags to draw from (codes).
        owners: Owners to draw from (codes).
        essential: Whether something needs it.
        protected: Whether it may never be removed.
        managed_by: Code of `schema.MANAGERS`.
        spot: Whether it is paid as spot.
        oversized: Whether its waste is its size, not its existence.
    """

    name: str
    role: Role
    kind: int
    share: float = 1.0
    sizes: tuple[str, ...] = ()
    count: Range = (1, 1)
    gigabytes: Range = (0, 0)
    cpu: Range | None = None
    peak: Range = (0, 0)
    memory: Range = (0, 0)
    idle_hours: Range = (0, 0.5)
    age_hours: Range = (900, 20_000)
    state: int = RUNNING
    detached: bool = False
    hangs_on: str = ""
    needed_by: str = ""
    environments: tuple[int, ...] = (1, 2, 3)
    owners: tuple[int, ...] = (1, 2, 3, 4, 5)
    essential: bool = False
    protected: bool = False
    managed_by: int = 0
    spot: bool = False
    oversized: bool = False


_LONG: Range = (IDLE_WINDOW_HOURS + 40, 5000)
_VM = ("m5.2xlarge", "r5.xlarge", "r5.2xlarge", "r5.4xlarge")
_NEEDED_VM = ("m5.large", "m5.xlarge", "m5.2xlarge", "r5.xlarge")
_BUSY_VM = ("m5.large", "m5.xlarge", "c5.2xlarge", "r5.xlarge")

ARCHETYPES: tuple[Archetype, ...] = (
    Archetype("idle_vm", "waste", COMPUTE, 2.0, _VM, (1, 2), cpu=(0.2, 1.8), peak=(2, 6),
              memory=(4, 18), idle_hours=_LONG, environments=(0, 2, 3, 4)),
    Archetype("prod_tagged_idle_vm", "waste", COMPUTE, 0.7, _VM, (1, 2), cpu=(0.2, 1.8),
              peak=(2, 6), memory=(4, 18), idle_hours=_LONG, environments=(1,)),
    Archetype("forgotten_gpu", "waste", GPU, 0.4, ("g4dn.xlarge", "p3.2xlarge"), (1, 2),
              cpu=(0.1, 1.5), peak=(1, 5), memory=(3, 12), idle_hours=_LONG,
              environments=(0, 3, 4), owners=(0, 4)),
    Archetype("unattached_volume", "waste", VOLUME, 2.2, gigabytes=(8_000, 24_000),
              idle_hours=_LONG, detached=True),
    Archetype("orphan_snapshot", "waste", SNAPSHOT, 1.8, gigabytes=(20_000, 60_000),
              idle_hours=_LONG),
    Archetype("idle_loadbalancer", "waste", LB, 0.8, idle_hours=_LONG),
    Archetype("idle_nat", "waste", NAT, 0.6, idle_hours=_LONG),
    Archetype("unused_ip", "waste", IP, 1.2, count=(1, 5), idle_hours=_LONG),
    Archetype("oversized_db", "waste", DB, 0.8, ("db.r5.4xlarge", "db.r5.8xlarge"), (1, 2),
              gigabytes=(0, 0), cpu=(5, 13), peak=(12, 22), memory=(14, 22), essential=True,
              environments=(1,), oversized=True),
    Archetype("stopped_vm", "waste", COMPUTE, 0.0, _VM, (1, 3), cpu=(0, 0), peak=(0, 0),
              memory=(0, 0), idle_hours=_LONG, state=STOPPED, environments=(0, 3, 4)),
    Archetype("disk_of_stopped_vm", "waste", VOLUME, 0.0, gigabytes=(4_000, 12_000),
              idle_hours=_LONG, hangs_on="stopped"),
    Archetype("cron_box", "decoy", COMPUTE, 1.5, _NEEDED_VM, (1, 2), cpu=(1.5, 4.5), peak=(85, 97),
              memory=(8, 20), idle_hours=(200, 700), essential=True, environments=(0, 1, 3)),
    Archetype("standby_db", "decoy", DB, 1.0, ("db.r5.xlarge",), (1, 2), cpu=(0.5, 2),
              peak=(2, 5), memory=(20, 35), idle_hours=_LONG, needed_by="db", essential=True,
              environments=(1,)),
    Archetype("image_snapshot", "decoy", SNAPSHOT, 1.0, gigabytes=(2_000, 9_000),
              idle_hours=_LONG, needed_by="plane", essential=True),
    Archetype("volume_detached_just_now", "decoy", VOLUME, 1.0, gigabytes=(4_000, 16_000),
              idle_hours=(0.3, 3), detached=True, essential=True),
    Archetype("untagged_essential", "decoy", COMPUTE, 1.0, _NEEDED_VM, (1, 2), cpu=(0.4, 1.9),
              peak=(3, 8), memory=(62, 84), idle_hours=_LONG, environments=(0,), owners=(0,),
              essential=True),
    Archetype("temp_with_dependants", "decoy", COMPUTE, 1.0, _NEEDED_VM, (1, 2), cpu=(0.5, 2.5),
              peak=(3, 9), memory=(6, 20), idle_hours=_LONG, needed_by="pool", essential=True,
              environments=(4,)),
    Archetype("attached_volume", "ordinary", VOLUME, 3.0, gigabytes=(6_000, 24_000),
              hangs_on="pool", essential=True, environments=(1,)),
    Archetype("backup_snapshot", "ordinary", SNAPSHOT, 1.6, gigabytes=(10_000, 40_000),
              idle_hours=(2, 24), needed_by="db", essential=True, environments=(1,)),
    Archetype("bucket", "ordinary", BUCKET, 1.2, gigabytes=(30_000, 160_000), essential=True,
              environments=(1,)),
    Archetype("busy_nat", "ordinary", NAT, 0.6, essential=True, environments=(1,)),
    Archetype("used_ip", "ordinary", IP, 0.8, count=(1, 4), hangs_on="lb", essential=True,
              environments=(1,)),
    Archetype("ci_runner", "ordinary", COMPUTE, 0.8, _BUSY_VM, (1, 2), cpu=(20, 45), peak=(70, 95),
              memory=(30, 60), environments=(3,), spot=True),
    Archetype("iac_vm", "ordinary", COMPUTE, 0.8, _BUSY_VM, (1, 2), cpu=(8, 30), peak=(40, 70),
              memory=(30, 60), environments=(1, 2), managed_by=2, essential=True),
    Archetype("autoscaled_node", "ordinary", COMPUTE, 0.7, _BUSY_VM, (1, 2), cpu=(1, 4),
              peak=(5, 60), memory=(10, 30), idle_hours=(1, 60), environments=(0,), owners=(0,),
              managed_by=1, essential=True),
    Archetype("staging_vm", "ordinary", COMPUTE, 0.8, _BUSY_VM, (1, 2), cpu=(10, 25), peak=(40, 60),
              memory=(30, 50), environments=(2,)),
    Archetype("control_plane", "ordinary", COMPUTE, 0.0, ("m5.2xlarge",), (1, 1), cpu=(15, 30),
              peak=(40, 60), memory=(40, 60), environments=(1,), owners=(3,), essential=True,
              protected=True),
)  # fmt: skip

BY_NAME = {archetype.name: code for code, archetype in enumerate(ARCHETYPES)}

_RANGES = ("cpu", "peak", "memory", "idle_hours")


def telling_apart(decoy: Archetype, waste: Archetype) -> tuple[str, ...]:
    """Obtainable observables in which a decoy and a sort of waste can never agree.

    Ranges count where they do not overlap; words count where they differ.
    """
    found = []
    if decoy.kind != waste.kind:
        found.append("kind")
    if bool(decoy.needed_by) != bool(waste.needed_by):
        found.append("needed_by")
    if decoy.protected != waste.protected:
        found.append("protected")
    if decoy.state != waste.state:
        found.append("state")
    for name in _RANGES:
        one, other = getattr(decoy, name), getattr(waste, name)
        if one is not None and other is not None and (one[0] > other[1] or other[0] > one[1]):
            found.append(name)
    return tuple(found)
