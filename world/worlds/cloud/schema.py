"""Names: kinds, words and columns of a cloud world.

Column names carry their owner: plain names belong to resource rows, ``s.`` to services, ``g.``
to region slots, ``w.`` to the world; ``h.`` in front hides a column from every seat.
"""

from __future__ import annotations

KINDS = (
    "compute", "db", "cache", "lb", "nat", "ip", "volume", "snapshot", "bucket", "gpu",
)  # fmt: skip
"""What a resource is."""
COMPUTE, DB, CACHE, LB, NAT, IP, VOLUME, SNAPSHOT, BUCKET, GPU = range(len(KINDS))
EXAMINED_KINDS = (COMPUTE, GPU, DB)
"""Kinds that can be compromised, fall under suspicion and be examined."""

STATES = ("running", "stopped", "terminated", "detached", "isolated", "empty")
"""``empty`` is a place in a region that a service may move to; nothing runs or costs there."""
RUNNING, STOPPED, TERMINATED, DETACHED, ISOLATED, EMPTY = range(len(STATES))

PRICINGS = ("on_demand", "reserved", "spot")
ESSENTIAL = ("unknown", "no", "yes")
UNKNOWN, NO, YES = range(len(ESSENTIAL))
TAG_STATUS = ("known", "unknown")
ENVIRONMENTS = ("", "prod", "staging", "dev", "temp")
OWNERS = ("", "web-team", "data-team", "platform", "ml-team", "finance")
MANAGERS = ("none", "autoscaler", "iac")

CAUSES = (
    "traffic_spike", "memory_leak", "cpu_overload", "db_saturation", "network_latency",
    "service_failure", "disk_full", "data_corruption", "security_breach", "spot_reclaim",
    "region_outage", "price_hike", "grid_ci_spike", "metrics_outage", "autoscaler_fight",
)  # fmt: skip
"""Root causes of incidents."""
(
    SPIKE, LEAK, BAD_DEPLOY, DB_SATURATION, NETWORK, FAILURE, DISK_FULL, CORRUPTION, BREACH,
    RECLAIM, OUTAGE, PRICE_HIKE, CI_SPIKE, BLIND, FIGHT,
) = range(len(CAUSES))  # fmt: skip
HEALTHY = len(CAUSES)
"""Evidence code for "nothing is wrong here"."""

ROW_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("ordinal", "<u4", "permanent entity number, the address of its noise"),
    ("kind", "|i1", "coded: KINDS"),
    ("size", "<i4", "coded machine size; empty for none"),
    ("region", "|i1", "coded region"),
    ("slot", "|i1", "region slot of this world"),
    ("service", "|i1", "coded service; empty for none"),
    ("count", "<f8", "instances ready"),
    ("pending_1", "<f8", "instances that become ready in the next step"),
    ("pending_2", "<f8", "… in two steps"),
    ("pending_3", "<f8", "… in three steps"),
    ("draining", "<f8", "instances that leave in the next step; no traffic, still billed"),
    ("prior_count", "<f8", "instances before the first cut that was not made good; 0: none"),
    ("reserved", "<f8", "instances under a running reservation"),
    ("reserve_ordered", "<f8", "instances whose reservation begins at the next full hour"),
    ("weight", "<f8", "share of the service's traffic before normalisation"),
    ("quota_vcpu", "<f8", "most vCPU that the provider allows here"),
    ("size_gb", "<f8", "stored data, GB"),
    ("attached_to", "<i4", "row that it hangs on; -1 is none"),
    ("needed_by", "<i4", "row that needs it; -1 is none"),
    ("state", "|i1", "coded: STATES"),
    ("age_hours", "<f8", "since creation; NaN is unknown"),
    ("idle_hours", "<f8", "since last use; NaN is unknown"),
    ("cpu_percent", "<f8", "mean CPU over two weeks for what is no service tier; NaN is unknown"),
    ("peak_cpu_percent", "<f8", "highest hour of 30 days; NaN is unknown"),
    ("memory_percent", "<f8", "NaN is unknown"),
    ("pricing", "|i1", "coded: PRICINGS"),
    ("essential", "|i1", "coded: unknown, no, yes"),
    ("environment", "|i1", "coded tag"),
    ("tag_status", "|i1", "coded: known, unknown"),
    ("owner", "|i1", "coded tag"),
    ("protected", "|u1", "1: may never be removed"),
    ("managed_by", "|i1", "coded: MANAGERS"),
    ("marked_at_step", "<i4", "step at which it was marked for removal; -1 is not marked"),
    ("snapshot_taken", "|u1", "1: its data was copied in this episode"),
    ("suspicion", "<f8", "confidence that it is compromised or corrupt, 0–1"),
    ("metrics_wait_steps", "|i1", "steps until its use is known; 0 is none under way"),
    ("owner_wait_steps", "|i1", "steps until the owner answers; 0 is none under way"),
    ("resize_to", "<i4", "coded size that a rolling change leads to"),
    ("resize_wait_steps", "|i1", "steps with an instance in n away, this one included"),
    ("restart_wait_steps", "|i1", "steps with an instance in n away, this one included"),
    ("down_at_step", "<i4", "step of the last scale-down; -1000 is never"),
    ("resized_at_step", "<i4", "step of the last change of size; -1000 is never"),
    ("up_at_step", "<i4", "step of the last scale-up; -1000 is never"),
)
"""``(name, dtype, meaning)`` of the resource columns that a seat sees."""

HIDDEN_ROW_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("h.essential", "|u1", "1: something needs it"),
    ("h.compromised", "|u1", "1: a miner runs on it"),
    ("h.idle_hours", "<f8", "true time since last use"),
    ("h.cpu_percent", "<f8", "true mean CPU"),
    ("h.peak_cpu_percent", "<f8", "true peak CPU"),
    ("h.memory_percent", "<f8", "true memory"),
    ("h.archetype", "|i1", "what it was generated as"),
    ("h.objects", "|u1", "1: its owner objects when it is marked"),
    ("h.harmed", "|u1", "1: its loss was counted"),
)

SERVICE_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("s.eco_level", "|i1", "0–2"),
    ("s.autoscale", "|u1", "1: an autoscaler acts"),
    ("s.autoscale_target", "<f8", "utilisation it aims at, 0–1"),
    ("s.low_steps", "|i1", "steps below its lower bound"),
    ("s.move_to", "|i1", "region slot of a migration under way; -1 is none"),
    ("s.move_from", "|i1", "region slot that it leaves"),
    ("s.move_wait_steps", "|i1", "steps until the cut-over"),
    ("s.move_count", "<f8", "instances that move"),
    ("s.move_data", "|u1", "1: the database moves along"),
    ("s.cold_steps", "|i1", "steps with cold caches, this one included"),
    ("s.failover_steps", "|i1", "steps of database failover, this one included"),
    ("s.restore_wait_steps", "|i1", "steps until a backup is restored"),
    ("s.rollback_wait_steps", "|i1", "steps until a rollback is done"),
    ("s.db_isolated", "|u1", "1: a corrupt database instance is off the network"),
    ("s.alert_step", "<i4", "step of its latest alert; -1 is none"),
    ("s.backlog_hours", "<f8", "batch work waiting, in hours of its mean arrivals"),
    ("s.due_hours", "<f8", "age at which the latest waiting batch work will be done, h"),
    ("s.disk_room", "<f8", "disk of its database over that of the start"),
    ("s.clean_wait_steps", "|i1", "steps until its database's disk is cleaned"),
    ("s.lost_writes", "<f8", "writes that restored backups lost, millions"),
    ("s.anomaly", "<f8", "evidence that something is wrong with it, 0–1; NaN: never looked"),
    ("s.own_fault", "<f8", "evidence that the root is its own, 0–1; NaN: never looked"),
)
"""Service columns that a seat sees; [S] each."""

EVIDENCE_COLUMN = "s.evidence"
"""float64 [S·(causes + 1)]: log-likelihood of each cause per service, by analysis."""

HIDDEN_SERVICE_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("h.s.base_rps", "<f8", "mean demand"),
    ("h.s.phase_h", "<f8", "hour at which the daily sine rises through its mean"),
    ("h.s.ar1", "<f8", "state of the demand noise, in standard deviations"),
    ("h.s.burst", "<f8", "height of the burst under way, as a fraction of demand"),
    ("h.s.error", "<f8", "errors of the last step, for retries"),
    ("h.s.spike", "<f8", "factor of a traffic spike"),
    ("h.s.slow", "<f8", "factor on the CPU time of a request"),
    ("h.s.db_slow", "<f8", "factor on the CPU time of a database call"),
    ("h.s.fault", "<f8", "fraction of requests that fail at the root"),
    ("h.s.corrupt", "<f8", "fraction of requests that hit corrupt data"),
    ("h.s.corrupt_step", "<i4", "step at which its data became corrupt; -1 is never"),
    ("h.s.write_fail", "<f8", "fraction of requests that fail while its disk is full"),
    ("h.s.disk_base", "<f8", "data on its disk, over the disk of the start"),
    ("h.s.disk_junk", "<f8", "logs and temporary files on it, over the disk of the start"),
    ("h.s.leak_per_h", "<f8", "memory leak, fraction of memory per hour"),
    ("h.s.memory_age_h", "<f8", "hours since the processes started"),
    ("h.s.memory_base", "<f8", "memory of fresh processes, fraction"),
    ("h.s.fight", "|u1", "1: another controller fights the autoscaler"),
    ("h.s.cut_at_step", "<i4", "step of the last action that took capacity away; -1000 is none"),
)

REGION_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("g.region", "|i1", "coded region of each slot"),
    ("g.spot", "<f8", "price of spot machines over on demand"),
)
HIDDEN_REGION_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("h.g.price", "<f8", "factor of a price hike"),
    ("h.g.ci", "<f8", "factor of a dirty grid"),
    ("h.g.rtt_ms", "<f8", "extra round trip of a bad network"),
    ("h.g.up", "|u1", "0: the region is out"),
    ("h.g.stockout", "<f8", "odds that capacity is not to be had"),
)

INCIDENT_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("h.i.cause", "|i1", "coded: CAUSES"),
    ("h.i.onset", "<i4", "step at which it begins"),
    ("h.i.end", "<i4", "step at which it ends by itself; beyond the horizon is never"),
    ("h.i.service", "|i1", "root service; -1 is none"),
    ("h.i.victim", "|i1", "service on which the alert is raised; -1 is none"),
    ("h.i.row", "<i4", "resource; -1 is none"),
    ("h.i.slot", "|i1", "region slot; -1 is none"),
    ("h.i.severity", "<f8", "0–1"),
    ("h.i.status", "|i1", "0 ahead, 1 active, 2 cured, 3 over, 4 moot"),
    ("h.i.known_step", "<i4", "step of the first right analysis; -1 is none"),
    ("h.i.cured_step", "<i4", "step of the cure; -1 is none"),
)
AHEAD, ACTIVE, CURED, OVER, MOOT = range(5)

WORLD_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("w.start_hour_utc", "<f8", "hour of the day at step 0"),
    ("w.one_off_usd", "<f8", "one-off charges so far"),
    ("w.reserved_bought", "<f8", "instances reserved in this episode, of all pools"),
    ("w.harms", "<i4", "harm done so far"),
    ("w.last_kinds", "<i4", "kinds of the last step's first action; -1 is none"),
)
HIDDEN_WORLD_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("h.w.blind_until", "<i4", "measurements are out before this step"),
    ("h.w.day", "<i4", "day of the week at step 0, 0 is Monday"),
    ("h.w.unavailable", "<i4", "essential rows that do not do their work"),
    ("h.w.breach_usd", "<f8", "what a miner sends out, $/h"),
    ("h.w.spent_usd", "<f8", "cost so far without one-offs"),
    ("h.w.emitted_kg", "<f8", "carbon so far"),
    ("h.w.over_latency", "<f8", "sum over steps of the worst p95 above its objective, ms"),
    ("h.w.over_cost", "<f8", "sum over steps of cost above target, $/h"),
    ("h.w.over_carbon", "<f8", "sum over steps of carbon above target, kg/day"),
    ("h.w.slo_minutes", "<f8", "minutes in which a service missed an objective, summed"),
)

CAPACITY_COLUMNS = ("count", "pending_1", "pending_2", "pending_3", "draining")
"""Instances in any state; their sum changes by actions only."""
