"""What a service is before anything runs: its work per request, its callees, its users.

The figures are of the usual size for such services; they are assumptions, not measurements.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One kind of service.

    Attributes:
        name: Its id.
        batch: Whether it has no users, only a deadline.
        tau_ms: CPU time of a request on one vCPU of speed 1, ms.
        cv2: Squared coefficient of variation of it.
        db_calls: Database calls per request, before the cache.
        tau_db_ms: CPU time of a database call, ms.
        cache_hit_fraction: Calls that the cache answers.
        kilobytes: Response size, kB.
        fleet: Relative number of instances.
        load: Relative utilisation at the start.
        europe_fraction: Users in Europe; the others are in North America and, for
            `asia_fraction`, in Asia.
        asia_fraction: Users in Asia.
        data_gb: Data that a move with its database must copy, GB.
        deadline_h: Oldest age that batch work may reach, h.
        calls: (service, share of requests that call it).
        resident: Whether it holds personal data, which may not leave the home's jurisdiction.
        size: Machine size of the pool.
        db_size: Machine size of the database.
    """

    name: str
    batch: bool = False
    tau_ms: float = 20.0
    cv2: float = 1.0
    db_calls: float = 1.0
    tau_db_ms: float = 2.0
    cache_hit_fraction: float = 0.0
    kilobytes: float = 1.0
    fleet: float = 1.0
    load: float = 1.0
    europe_fraction: float = 0.3
    asia_fraction: float = 0.0
    data_gb: float = 400.0
    deadline_h: float = 1.5
    calls: tuple[tuple[str, float], ...] = ()
    resident: bool = False
    size: str = "m5.4xlarge"
    db_size: str = "db.r5.4xlarge"


_ALL = (
    ServiceSpec("web", tau_ms=18, db_calls=1, tau_db_ms=1.5, kilobytes=0.6, fleet=0.82, load=0.97,
                cache_hit_fraction=0.4, calls=(("api", 0.6),)),
    ServiceSpec("api", tau_ms=34, db_calls=2, tau_db_ms=2.5, kilobytes=0.6, fleet=1.0, load=1.0,
                cache_hit_fraction=0.3, calls=(("auth", 0.3), ("profile", 0.2))),
    ServiceSpec("search", tau_ms=26, cv2=1.5, db_calls=1, tau_db_ms=3, kilobytes=0.6,
                fleet=0.6, load=0.97, cache_hit_fraction=0.2, size="c5.4xlarge"),
    ServiceSpec("checkout", tau_ms=30, db_calls=3, tau_db_ms=2, kilobytes=0.6, fleet=0.3, load=0.96,
                calls=(("auth", 0.5),), resident=True),
    ServiceSpec("feed", tau_ms=22, db_calls=2, tau_db_ms=1.5, kilobytes=1, fleet=0.5, load=0.98,
                cache_hit_fraction=0.5, calls=(("profile", 0.5),)),
    ServiceSpec("media", tau_ms=16, cv2=2.0, db_calls=1, tau_db_ms=1, kilobytes=2, fleet=0.5,
                load=0.95, cache_hit_fraction=0.5, size="c5.4xlarge"),
    ServiceSpec("auth", tau_ms=12, db_calls=1, tau_db_ms=1, kilobytes=0.3, fleet=0.25, load=0.95,
                cache_hit_fraction=0.3, resident=True),
    ServiceSpec("profile", tau_ms=20, db_calls=2, tau_db_ms=1.5, kilobytes=0.5, fleet=0.35,
                load=0.97, cache_hit_fraction=0.4, resident=True),
    ServiceSpec("batch", batch=True, tau_ms=1000, db_calls=5, tau_db_ms=9, kilobytes=0, fleet=1.3,
                load=0.86, cache_hit_fraction=0.2, data_gb=1200, deadline_h=1.5,
                db_size="db.r5.8xlarge"),
    ServiceSpec("analytics", batch=True, tau_ms=2000, db_calls=10, tau_db_ms=9, kilobytes=0,
                fleet=0.8, load=0.55, cache_hit_fraction=0.2, data_gb=2000, deadline_h=2,
                db_size="db.r5.8xlarge"),
)  # fmt: skip

CATALOGUE: dict[str, ServiceSpec] = {service.name: service for service in _ALL}
"""Service name → what it is."""
