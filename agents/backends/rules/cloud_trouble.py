"""Incidents as a rule sees them: symptoms, the causes they speak for, evidence, remedies.

No rule knows a cause. Each weighs the evidence that analyses left in the observation with what the
measurements show, asks while it is not sure, and takes the remedy of the likeliest cause when it
is. Trouble is treated at its root: a service whose callee fails is not treated itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from agents.backends.rules.agenda import Option
from agents.backends.rules.cloud_estate import Estate
from world.actions import Action
from world.worlds.cloud import schema as names
from world.worlds.cloud.memory import slowdown
from world.worlds.cloud.rules import ISOLATE_ABOVE
from world.worlds.cloud.state import Measured

SHARP = 0.6
"""From this probability on a cause is treated; below, it is looked into. Of two equally likely
causes neither is sharp."""
JUMP = 1.15
"""Demand over its recent median from which it counts as a spike; assumed."""
SLOWER = 1.2
"""CPU per request over its recent median from which a deploy is suspected; assumed."""
FULL_MEMORY = 0.8
"""Memory, as a fraction, from which a leak is suspected: the slowdown begins at 85 %."""
MEMORY_SLOPE = 0.008
"""Growth of memory a step from which a leak is suspected; assumed."""
FAR = 1.3
"""Latency over its recent median, at the usual CPU, from which the network is suspected."""
LOSS_STEPS = 3
"""Steps for which instances that went away are a symptom."""
_TAKES = ("scale_down", "migrate_region", "crisis_response")
OVERLOADED = 0.98
"""CPU, as a fraction, from which dropped requests explain errors."""
IDLING = 0.88
"""CPU, as a fraction, below which no queue explains a missed latency objective."""
FULL_DISK = 0.9
"""Disk of a database, as a fraction, from which it is suspected to be full."""
HOT_DATABASE = 0.85
"""Utilisation of a database from which it is suspected."""
MINER_PERCENT = 90.0
"""CPU from which a machine that is no service tier is examined."""
UNTOLD = 0.017
"""Probability taken for a cause that the published diagnosis leaves out: one in sixty."""
_SPEAKS_FOR, _SPEAKS_AGAINST = 12.0, 0.2
"""Likelihood ratios of a symptom that fits a cause, and of one that is missing; assumed."""

_SYMPTOM_OF = {
    "jump": (names.SPIKE,),
    "slow": (names.BAD_DEPLOY,),
    "memory": (names.LEAK,),
    "database": (names.DB_SATURATION,),
    "errors": (names.FAILURE, names.CORRUPTION, names.DISK_FULL),
    "disk": (names.DISK_FULL,),
    "capacity": (names.RECLAIM,),
    "fight": (names.FIGHT,),
    "far": (names.NETWORK,),
}
_PRIOR = np.ones(len(names.CAUSES) + 1)
for _code in (
    names.NETWORK, names.BREACH, names.OUTAGE, names.PRICE_HIKE, names.CI_SPIKE, names.BLIND,
):  # fmt: skip
    _PRIOR[_code] = 0.1  # these have no service as their root
_PRIOR[names.HEALTHY] = 2.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """A service that misbehaves.

    Attributes:
        service: Its number.
        name: Its id.
        symptoms: Names of what it shows.
        text: The symptoms in words, with numbers.
        belief: Cause → probability, ``healthy`` included, highest first.
        failing: Whether its error objective is missed.
        very_slow: Whether it takes half as long again as its latency objective allows.
    """

    service: int
    name: str
    symptoms: frozenset[str]
    text: str
    belief: Mapping[str, float]
    failing: bool
    very_slow: bool

    @property
    def cause(self) -> str:
        """The likeliest cause."""
        return next(iter(self.belief))

    @property
    def sharp(self) -> bool:
        """Whether one cause is likely enough to be treated."""
        return self.cause != "healthy" and self.belief[self.cause] >= SHARP

    @property
    def suspects(self) -> str:
        """The likeliest causes in words."""
        return ", ".join(f"{name} {odds:.2f}" for name, odds in list(self.belief.items())[:2])


def troubles(estate: Estate) -> list[Trouble]:
    """Services in trouble by a fault of their own, the most failing first."""
    settings = estate.settings
    found = [_trouble(estate, at) for at, spec in enumerate(settings.services) if not spec.batch]
    known = {one.service: one for one in found if one is not None}
    for caller, callee, _ in settings.calls:
        # Errors travel to the callers: whoever calls a failing service is its victim.
        victim = caller in known and callee in known and known[callee].failing
        if victim and known[caller].symptoms <= {"errors", "drops", "alert", "latency"}:
            known.pop(caller)
    return sorted(known.values(), key=lambda one: (not one.failing, one.service))


def _history(estate: Estate, service: int, name: str) -> list[float]:
    """Known measurements of a service, oldest first."""
    at = Measured(estate.settings).service(name).start + service
    seen = [float(view.measured[at]) for view in estate.views]
    return [value for value in seen if value == value]


def _over_usual(values: list[float]) -> float:
    """The latest value over the median of those before it; 1 where too little is known."""
    usual = float(np.median(values[:-1])) if len(values) > 3 else 0.0
    return values[-1] / usual if usual > 0 else 1.0


def _last(values: list[float]) -> float:
    return values[-1] if values else float("nan")


def _trouble(estate: Estate, service: int) -> Trouble | None:
    params = estate.settings.params
    name = params.services[service]
    p95 = _last(_history(estate, service, "p95_ms"))
    errors = _last(_history(estate, service, "error_fraction"))
    shown: dict[str, str] = {}
    rates = _history(estate, service, "rps")
    if _over_usual(rates) > JUMP:
        shown["jump"] = f"demand {rates[-1]:,.0f}/s, {_over_usual(rates):.2f} x usual"
    memory = _history(estate, service, "memory_fraction")
    work = _work_per_request(estate, service)
    # Full memory slows every request by itself; only what it does not explain is a symptom.
    explained = float(slowdown(np.array(memory[-1:] or [0.0]))[0])
    if _over_usual(work) > SLOWER * explained:
        shown["slow"] = f"{_over_usual(work):.2f} x the usual CPU per request"
    rising = len(memory) > 3 and (memory[-1] - memory[0]) / (len(memory) - 1) > MEMORY_SLOPE
    if memory and (memory[-1] > FULL_MEMORY or rising):
        shown["memory"] = f"memory {100 * memory[-1]:.0f} %{' and rising' if rising else ''}"
    busy = estate.busy(estate.database(service))
    if busy > HOT_DATABASE:
        shown["database"] = f"database at {100 * busy:.0f} %"
    disk = _last(_history(estate, service, "disk_fraction"))
    if disk >= FULL_DISK:
        shown["disk"] = f"database disk at {100 * min(disk, 1.0):.0f} %"
    # An overloaded queue drops requests too: that is no sign of a failing process or of bad data.
    cpu = _last(_history(estate, service, "cpu_fraction"))
    if errors >= params.slo_error_fraction:
        name_of = "drops" if cpu >= OVERLOADED or busy >= 1.0 else "errors"
        shown[name_of] = f"errors {100 * errors:.2g} % over {100 * params.slo_error_fraction:g} %"
    lost = _lost_instances(estate, service)
    if any(lost[-LOSS_STEPS:]):
        again = sum(part > 0 for part in lost) > 1
        shown["fight" if again else "capacity"] = (
            f"{sum(lost):.0f} instances went away by themselves" + again * ", repeatedly"
        )
    far = _history(estate, service, "p95_ms")
    cpus = _history(estate, service, "cpu_fraction")
    calm = len(cpus) > 1 and cpus[-1] < min(float(np.median(cpus[:-1])) + 0.03, OVERLOADED)
    if calm and _over_usual(far) > FAR:
        shown["far"] = f"p95 {_over_usual(far):.1f} x usual at the usual CPU"
    elif cpu < IDLING and not busy >= HOT_DATABASE and p95 > FAR * params.slo_p95_ms:
        # It has lasted so long that it looks usual; no queue explains it.
        shown["far"] = f"p95 {p95:.0f} ms at {100 * cpu:.0f} % CPU"
    facts = estate.services[name]
    alert = any(f": {name} misbehaves" in line for line in estate.request.observation.incidents)
    if alert or (facts["anomaly"] or 0.0) >= 0.5:
        shown["alert"] = "an alert names it" if alert else "it looks anomalous"
    failing = errors >= params.slo_error_fraction
    slow = p95 >= params.slo_p95_ms
    leaking = rising or bool(memory and memory[-1] > 0.95)
    if not (shown and (slow or failing or leaking or "alert" in shown)):
        return None
    if slow:
        shown["latency"] = f"p95 {p95:.0f} ms over {params.slo_p95_ms:.0f}"
    belief = _belief(estate, name, frozenset(shown))
    return Trouble(
        service, name, frozenset(shown), ", ".join(shown.values()), belief, failing,
        p95 > 1.5 * params.slo_p95_ms,
    )  # fmt: skip


def _work_per_request(estate: Estate, service: int) -> list[float]:
    """Busy vCPU per request/s of a service in one pool, per step; without incidents, constant."""
    rows = estate.pools(service)
    if len(rows) != 1:
        return []
    at = Measured(estate.settings).service("rps").start + service
    rates = [float(view.measured[at]) for view in estate.views]
    pairs = zip(estate.loads(rows[0]), rates, strict=True)
    return [load / rate for load, rate in pairs if rate > 0 and load == load]


def _lost_instances(estate: Estate, service: int) -> list[float]:
    """Instances that left a service though nobody removed any, per step, oldest first."""
    settings = estate.settings
    name = settings.params.services[service]
    first = service * settings.regions
    rows = slice(first, first + settings.regions)
    owned = {estate.name(row) for row in range(rows.start, rows.stop)} | {name}
    decided = estate.request.history.decisions[-(len(estate.views) - 1) :]
    found = []
    for before, now, joint in zip(estate.views, estate.views[1:], decided, strict=False):
        taken = any(a.target in owned and a.kind in _TAKES for a in joint)
        moving = int(before.public["s.move_to"][0, service]) >= 0
        expected = before.columns["count"][rows] + before.columns["pending_1"][rows]
        lost = float(np.add.reduce(expected) - np.add.reduce(now.columns["count"][rows]))
        found.append(0.0 if taken or moving else max(lost, 0.0))
    return found


def _belief(estate: Estate, name: str, symptoms: frozenset[str]) -> Mapping[str, float]:
    """Causes by probability: analyses, times what the symptoms say, under a flat prior."""
    odds = _PRIOR.copy()
    told = estate.request.observation.facts["diagnosis"].get(name)
    words = (*names.CAUSES, "healthy")
    if told:
        odds = odds * np.array([told.get(word, UNTOLD) for word in words])
        if "far" in symptoms:
            # Healthy itself and yet far away: what is slow lies between the user and the service.
            odds[names.NETWORK] = max(odds[names.NETWORK], odds[names.HEALTHY])
    for symptom, causes in _SYMPTOM_OF.items():
        there = symptom in symptoms
        for cause in causes:
            odds[cause] *= _SPEAKS_FOR if there else _SPEAKS_AGAINST
    if symptoms & (_SYMPTOM_OF.keys() | {"latency"}):
        odds[names.HEALTHY] *= 0.3
    odds = odds / np.add.reduce(odds)
    order = np.argsort(-odds, kind="stable")
    return {words[code]: float(odds[code]) for code in order.tolist()}


def evidence(estate: Estate, found: list[Trouble]) -> list[Option]:
    """Questions worth asking: at the services whose cause is not sharp, then everywhere."""
    options = []
    for one in found:
        quiet = not (one.failing or "latency" in one.symptoms)
        if one.sharp or (quiet and _tried(estate, "analyse", one.name)):
            continue
        options.append(
            Option(
                Action.of("analyse", one.name),
                f"{one.name}: {one.text}; {one.suspects}, below {SHARP:g}: look before acting",
            )
        )
    vague = [one for one in found if not one.sharp and one.symptoms <= {"alert", "latency"}]
    if vague and not _tried(estate, "detect", ""):
        options.append(
            Option(
                Action.of("detect"),
                f"{vague[0].name} misbehaves and shows nothing else: the root may be elsewhere",
            )
        )
    return options


def remedies(estate: Estate, found: list[Trouble]) -> list[Option]:
    """What the sharp causes call for, most failing service first."""
    options: list[Option] = []
    for one in found:
        if one.sharp:
            options += _remedy(estate, one)
        elif one.failing:
            options += _errors(estate, one)
    return options


def _remedy(estate: Estate, one: Trouble) -> list[Option]:
    cause = names.CAUSES.index(one.cause)
    why = f"{one.name}: {one.text}; {one.cause} {one.belief[one.cause]:.2f}"
    if cause == names.LEAK:
        back = Option(Action.of("rollback", one.name), f"{why}: roll back ends the leak")
        again = Option(Action.of("restart", one.name), f"{why}: restart frees the memory")
        full = _last(_history(estate, one.service, "memory_fraction")) > 0.92
        return [again, back] if full else [back, again]
    if cause == names.BAD_DEPLOY:
        return [Option(Action.of("rollback", one.name), f"{why}: return to the last good version")]
    if cause == names.DB_SATURATION:
        return _more(estate, estate.database(one.service), why)
    if cause in (names.SPIKE, names.RECLAIM):
        return [
            option for row in estate.pools(one.service)[:1] for option in _more(estate, row, why)
        ]
    if cause == names.FIGHT:
        on = not estate.services[one.name]["autoscaler"]
        return [
            Option(
                Action.of("set_autoscaler", one.name, enabled=on),
                f"{why}: take the autoscaler out of other hands",
            )
        ]
    if cause == names.DISK_FULL:
        return _room(estate, one, why)
    if cause in (names.FAILURE, names.CORRUPTION):
        return _errors(estate, one)
    if cause in (names.OUTAGE, names.NETWORK):
        return _away(estate, one, why)
    return []


def _more(estate: Estate, row: int, why: str) -> list[Option]:
    """Capacity for a tier that a spike or a slow database overloads."""
    busy = estate.busy(row)
    short = busy / 0.8 - 1.0 if busy == busy else 0.25
    fraction = float(np.clip(np.ceil(100 * short) / 100, 0.1, 0.5))
    return [
        Option(
            Action.of("scale_up", estate.name(row), fraction=fraction),
            f"{why}: {100 * fraction:.0f} % more at {estate.name(row)}",
        )
    ]


def _away(estate: Estate, one: Trouble, why: str) -> list[Option]:
    facts = estate.request.observation.facts["regions"]
    here = {estate.word("region", row) for row in estate.pools(one.service)}
    home = estate.settings.params.home_region
    return [
        Option(
            Action.of("migrate_region", one.name, region=region, fraction=1.0, with_data=True),
            f"{why}: move to {region}",
        )
        for region in sorted(facts, key=lambda name: estate.farther_ms(name, home))
        if region not in here
    ][:1]


def _room(estate: Estate, one: Trouble, why: str) -> list[Option]:
    """Room on the disk of a database that takes no writes."""
    database = estate.name(estate.database(one.service))
    return [Option(Action.of("free_disk", database), f"{why}: clean the disk of {database}")]


def _errors(estate: Estate, one: Trouble) -> list[Option]:
    """Failing requests with the CPU normal: a wedged process, or bad data.

    A restart is cheap and clears the first; data are restored only once an examined database is
    off the network.
    """
    row = estate.database(one.service)
    database = estate.name(row)
    suspicion = float(estate.cells["suspicion"][row])
    isolated = bool(estate.inventory.public["s.db_isolated"][0, one.service])
    why = f"{one.name}: {one.text}; {one.suspects}"
    if isolated:
        return [
            Option(
                Action.of("restore_backup", database),
                f"{why}: {database} is isolated, bring its data back",
            )
        ]
    options = []
    if "disk" in one.symptoms and not _tried(estate, "free_disk", database, 2):
        options += _room(estate, one, why)
    count = float(estate.cells["count"][row])
    if count > 1 and estate.busy(row) * count / (count - 1.0) > HOT_DATABASE:
        share = float(np.clip(np.ceil(100.0 / count) / 100.0, 0.1, 0.5))
        options.append(
            Option(
                Action.of("scale_up", database, fraction=share),
                f"{why}: {database} must spare an instance that may be corrupt",
            )
        )
    if suspicion > ISOLATE_ABOVE:
        options.append(
            Option(
                Action.of("isolate", database),
                f"{why}: {database} is corrupt with {suspicion:.2f}, take that instance off",
            )
        )
    failed = _tried(estate, "restart", one.name)
    if not failed and one.belief.get("service_failure", 0.0) >= 0.2:
        options.append(
            Option(Action.of("restart", one.name), f"{why}: restart clears wedged processes")
        )
    if suspicion == 0.0 or (failed and suspicion <= ISOLATE_ABOVE):
        options.append(
            Option(Action.of("evaluate", database), f"{why}: is the data of {database} corrupt?")
        )
    if failed and suspicion <= ISOLATE_ABOVE and not _tried(estate, "failover_db", database):
        options.append(
            Option(Action.of("failover_db", database), f"{why}: a restart did not help: fail over")
        )
    return options


def _tried(estate: Estate, kind: str, target: str, steps: int = 6) -> bool:
    """Whether the room took an action in the last steps."""
    wanted = (kind, target)
    recent = estate.request.history.decisions[-steps:]
    return any((action.kind, action.target) == wanted for joint in recent for action in joint)


def intruders(estate: Estate) -> list[Option]:
    """Machines that may be compromised: examine, keep the evidence, isolate, then remove."""
    cells, settings = estate.cells, estate.settings
    kinds = np.isin(cells["kind"], (names.COMPUTE, names.GPU, names.DB))
    live = (cells["state"] == names.RUNNING) | (cells["state"] == names.ISOLATED)
    with np.errstate(invalid="ignore"):
        hot = cells["cpu_percent"] >= MINER_PERCENT
    odd = kinds & live & (hot | (cells["suspicion"] >= 0.5))
    odd[: settings.tiers] = False
    options: list[Option] = []
    for row in np.flatnonzero(odd)[:8].tolist():
        options += _intruder(estate, row)
    return options


def _intruder(estate: Estate, row: int) -> list[Option]:
    cells, name = estate.cells, estate.name(row)
    suspicion, cpu = float(cells["suspicion"][row]), float(cells["cpu_percent"][row])
    why = f"{name} at {cpu:.0f} % CPU, suspicion {suspicion:.2f}"
    if suspicion <= ISOLATE_ABOVE:
        if 0.0 < suspicion < 0.5:  # examined, and found clean
            return []
        return [Option(Action.of("evaluate", name), f"{why}: examine it before anybody touches it")]
    if not cells["snapshot_taken"][row]:
        keep = Option(Action.of("snapshot", name), f"{why}: keep the evidence first")
    else:
        keep = None
    options = [keep] if keep else []
    needed = int(cells["essential"][row]) == names.YES
    if cells["state"][row] == names.RUNNING and (cpu >= MINER_PERCENT or not needed):
        options.insert(0, Option(Action.of("isolate", name), f"{why}: take it off the network"))
    if cells["state"][row] == names.ISOLATED and keep is None and not needed:
        options.append(
            Option(Action.of("terminate", name), f"{why}, isolated, its disk copied: remove it")
        )
    return options
