"""What a billed thing is, and how large: kind and machine size from the words on its bill lines.

One resource has many lines: an instance also pays for traffic, a database for storage. So every
line gives evidence of some strength, and the strongest evidence of all lines decides: the resource
type first, then the form of the id, then what the line charges for, then the service category.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from world.importers.tables import column_key, is_missing
from world.worlds.finops.sizes import canonical_size


class Evidence(NamedTuple):
    """A kind and how sure the bill is about it.

    Attributes:
        strength: 5 a resource type that we know, 4 the form of the id, 3 another resource type, 2
            what the line charges for, 1 the service alone, 0 nothing. The larger wins.
        kind: One of the inventory's kinds.
    """

    strength: int
    kind: str


NOTHING: Final = Evidence(0, "other")

_TYPES: Final = (
    ("snapshot", re.compile(r"snapshot|machine image|\bami\b")),
    ("loadbalancer", re.compile(r"load ?balancer|application gateway|\b[an]lb\b|\belb\b")),
    (
        "gateway",
        re.compile(r"nat ?gateway|internet gateway|transit ?gateway|vpn ?gateway|firewall"),
    ),
    ("address", re.compile(r"public ?ip|ip address|elastic-?ip|\beip\b")),
    ("cache", re.compile(r"\bredis\b|memcached|\bcache\b|elasticache|memorystore|valkey")),
    (
        "database",
        re.compile(
            r"database|\brds\b|sql|postgres|aurora|mongo|cosmos|spanner|bigtable|dynamo|\bdb\b"
            r"|redshift|\bcluster:db"
        ),
    ),
    (
        "storage",
        re.compile(r"volume|disk|bucket|storage account|file ?system|file share|\bblob\b"),
    ),
    (
        "compute",
        re.compile(r"\binstance\b|virtual ?machine|\bvm\b|scale ?set|\bnode\b|compute engine"),
    ),
)
"""Kind → words of a ResourceType."""

_IDS: Final = (
    ("snapshot", re.compile(r"(?:^|[:/])snap-[0-9a-f]|/snapshots/|:snapshot[:/]")),
    ("address", re.compile(r"eipalloc-|/publicipaddresses/|/addresses/|:elastic-ip/")),
    ("gateway", re.compile(r"natgateway|/natgateways/|(?:^|[:/])(?:nat|tgw|igw|vgw)-[0-9a-f]")),
    (
        "loadbalancer",
        re.compile(r":loadbalancer/|/loadbalancers/|/applicationgateways/|/forwardingrules/"),
    ),
    ("cache", re.compile(r":elasticache:|/microsoft\.cache/|\.memorydb[:.]|/redis/")),
    (
        "database",
        re.compile(
            r":rds:|:dynamodb:|:redshift:|/microsoft\.(?:sql|documentdb|dbfor[a-z]+)/|\.autonomousdat"
            r"|\.dbsystem\."
        ),
    ),
    (
        "storage",
        re.compile(
            r"(?:^|[:/])vol-[0-9a-f]|/disks/|/storageaccounts/|:file-system/|:s3:|\.volume\.|"
            r"\.bootvolume\."
        ),
    ),
    (
        "compute",
        re.compile(
            r"(?:^|[:/])i-[0-9a-f]|/virtualmachines/|/virtualmachinescalesets/|/instances/"
            r"|\.instance\."
        ),
    ),
)
"""Kind → forms of a resource id, in lower case."""

_CHARGES: Final = (
    ("snapshot", re.compile(r"snapshot")),
    ("gateway", re.compile(r"nat gateway|transit gateway|vpn connection|natgateway")),
    (
        "loadbalancer",
        re.compile(r"load ?balancer(?:-hour| capacity| - )|loadbalancerusage|lcuusage|lcu-hour"),
    ),
    (
        "address",
        re.compile(r"public ipv?4? ?address|static public ip|idleaddress|elastic ip(?!s or)"),
    ),
    ("cache", re.compile(r"\bcache\.[a-z0-9]+\.|redis|memcached|valkey")),
    ("database", re.compile(r"\bdb\.[a-z0-9]+\.|\brds\b|aurora|database|\bsql\b")),
    (
        "storage",
        re.compile(
            r"provisioned storage|managed disk|volumeusage|data stored|block volume"
            r"|gb-mo(?:nth)? of"
        ),
    ),
    (
        "compute",
        re.compile(
            r"instance[ -]hour|boxusage|spotusage|\bocpu\b|dedicated ?usage|vcpu.hour|instance core"
            r"|virtual machines? [a-z]"
        ),
    ),
)
"""Kind → words of a meter or of a charge's description."""

_SERVICES: Final = (
    ("cache", re.compile(r"cache|redis|valkey|memcached|memorydb")),
    ("loadbalancer", re.compile(r"load balanc")),
)
"""Kind → words of a service's name, where its category says less."""

_CATEGORIES: Final = {
    "compute": "compute",
    "databases": "database",
    "database": "database",
    "storage": "storage",
}

_DETAIL_KEYS: Final = (
    "finstancetype",
    "instancetype",
    "machinetype",
    "vmsize",
    "armskuname",
    "instanceclass",
    "shape",
)
_SIZE_TEXT: Final = re.compile(
    r"(?<![A-Za-z0-9.-])(?:"
    r"(?:db|cache)\.[a-z][a-z0-9-]{1,15}\.[a-z0-9]{1,12}"
    r"|[a-z]{1,3}[0-9][a-z0-9-]{0,12}\.(?:nano|micro|small|medium|large|[0-9]{0,3}xlarge|metal"
    r"(?:-[0-9]{1,3}xl)?)"
    r"|(?:Standard|Basic)_[A-Z]{1,4}[0-9][A-Za-z0-9_-]{0,24}"
    r"|[A-Z]{1,2}[0-9]{1,3}[a-z]{0,4} v[0-9]"
    r"|[a-z][0-9][a-z]?-(?:standard|highmem|highcpu|ultramem|megamem|micro|small|medium)"
    r"(?:-[0-9]{1,3})?"
    r")(?![A-Za-z0-9])"
)
_MAX_CHARS: Final = 4_096


@lru_cache(maxsize=1 << 11)
def kind_of_type(resource_type: str, category: str, service: str) -> Evidence:
    """Evidence from a ResourceType; from the service, where the type is none that we know.

    >>> kind_of_type("MySQL server", "Databases", "Azure DB for MySQL")
    Evidence(strength=5, kind='database')
    """
    if is_missing(resource_type):
        return NOTHING
    known = _first(_TYPES, resource_type, 5)
    return known if known.strength else Evidence(3, kind_of_service(category, service).kind)


def kind_of_id(resource_id: str) -> Evidence:
    """Evidence from the form of a resource id.

    >>> kind_of_id("arn:aws:ec2:us-east-1:1:volume/vol-0a1").kind
    'storage'
    """
    return _first(_IDS, resource_id, 4)


@lru_cache(maxsize=1 << 11)
def kind_of_charge(text: str) -> Evidence:
    """Evidence from a meter or a charge's description.

    >>> kind_of_charge("$0.045 per NAT Gateway Hour").kind
    'gateway'
    """
    return _first(_CHARGES, text, 2)


@lru_cache(maxsize=1 << 10)
def kind_of_service(category: str, service: str) -> Evidence:
    """Evidence from the service's category and name, the weakest there is."""
    lowered = service[:_MAX_CHARS].casefold()
    for kind, pattern in _SERVICES:
        if pattern.search(lowered):
            return Evidence(1, kind)
    return Evidence(1, _CATEGORIES.get(category.strip().casefold(), "other"))


def _first(rules: tuple[tuple[str, re.Pattern[str]], ...], text: str, strength: int) -> Evidence:
    lowered = text[:_MAX_CHARS].casefold()
    for kind, pattern in rules:
        if pattern.search(lowered):
            return Evidence(strength, kind)
    return NOTHING


@lru_cache(maxsize=1 << 11)
def size_in_details(text: str) -> str | None:
    """The size that a SkuPriceDetails field names, in the ladder's spelling where it stands there.

    Source: FOCUS specification 1.1, SKU Price Details (``InstanceType``, in drafts
    ``F_InstanceType``).

    >>> size_in_details('{"InstanceType": "standard_d4s_v5"}')
    'Standard_D4s_v5'
    """
    if is_missing(text) or len(text) > 65_536:
        return None
    try:
        details = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(details, dict):
        return None
    named: dict[str, Any] = {column_key(key): value for key, value in details.items()}
    for key in _DETAIL_KEYS:
        value = named.get(key)
        if isinstance(value, str) and not is_missing(value) and len(value) <= 60:
            return canonical_size(value) or value.strip()
    return None


@lru_cache(maxsize=1 << 11)
def size_in_text(text: str) -> str | None:
    """The one size that a description or meter names, or None where it names none or several.

    >>> size_in_text("$0.34 per On Demand Linux c5.2xlarge Instance Hour")
    'c5.2xlarge'
    >>> size_in_text("Virtual Machines Dv2/DSv2 Series - D11 v2/DS11 v2 - US East 2") is None
    True
    """
    found = {match.group() for match in _SIZE_TEXT.finditer(text[:_MAX_CHARS])}
    named = {canonical_size(size) or size for size in found}
    return named.pop() if len(named) == 1 else None
