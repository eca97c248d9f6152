"""What the tags of a resource say: is it essential, who owns it, where does it run, who manages it.

Tags are JSON written by strangers: keys repeat, differ in case, carry spaces. Every value of a key
counts; nothing is evaluated. The careful reading wins: what the tags do not say stays unknown, and
an unknown resource is never terminated.

Rules for `essential`:

* ``yes``: a key of `ESSENTIAL_KEYS` says yes (true, 1, critical …), or a key of `CRITICALITY_KEYS`
  names a critical grade (critical, high, tier0, p1, gold …).
* ``no``: such a key says no (false, 0, low, non-critical …) and none says yes.
* Anything else, the environment alone included: unknown.
* `settle` adds the last word: a tag's ``no`` on a production-like resource contradicts itself and
  becomes unknown; a ``no`` in the metrics file, written for this import, stands; a ``yes`` from
  either side stands whatever the other says.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from world.importers.tables import is_missing, visible

Essential = Literal["yes", "no"]
Manager = Literal["autoscaler", "iac"]

ESSENTIAL_KEYS: Final = frozenset(
    {
        "essential",
        "isessential",
        "critical",
        "iscritical",
        "missioncritical",
        "businesscritical",
    }
)
"""Keys whose value answers the question itself. Case, spaces and punctuation do not matter."""

CRITICALITY_KEYS: Final = frozenset(
    {
        "criticality",
        "businesscriticality",
        "servicecriticality",
        "criticalitylevel",
        "importance",
        "tier",
        "servicetier",
        "sla",
    }
)
"""Keys whose value is a grade."""

OWNER_KEYS: Final = (
    "owner",
    "ownedby",
    "resourceowner",
    "serviceowner",
    "technicalowner",
    "owneremail",
    "ownerid",
    "contact",
    "team",
    "squad",
)
"""Keys that name an owner, best first."""

ENVIRONMENT_KEYS: Final = ("environment", "env", "environmentname", "environmenttype", "stage")
"""Keys that name an environment, best first."""

PROTECT_KEYS: Final = frozenset({"protected", "donotdelete", "donotterminate", "keep", "legalhold"})
"""Keys by which people ask that nobody touches a resource."""

_YES: Final = frozenset({"yes", "y", "true", "t", "1", "on"})
_NO: Final = frozenset({"no", "n", "false", "f", "0", "off"})
_CRITICAL: Final = frozenset(
    {
        "essential",
        "critical",
        "missioncritical",
        "businesscritical",
        "veryhigh",
        "highest",
        "high",
        "vital",
        "extreme",
        "platinum",
        "gold",
        "tier0",
        "tier1",
        "t0",
        "t1",
        "p0",
        "p1",
        "sev1",
    }
)
_UNCRITICAL: Final = frozenset(
    {
        "none",
        "low",
        "lowest",
        "verylow",
        "notcritical",
        "noncritical",
        "notessential",
        "nonessential",
        "uncritical",
        "unimportant",
        "disposable",
        "expendable",
        "bronze",
        "tier4",
        "t4",
        "p4",
        "p5",
    }
)
_PRODUCTION: Final = re.compile(r"prod|prd|(?:^|[^a-z])live(?:[^a-z]|$)")
_NOT_PRODUCTION: Final = re.compile(r"(?:^|[^a-z])(?:pre|non|not)[^a-z]?(?:prod|prd|live)")
_AUTOSCALERS: Final = (
    "aws:autoscaling:",
    "aws:ec2:fleet-id",
    "aws:ec2spot:",
    "aws:eks:",
    "eks:",
    "karpenter.",
    "karpenter",
    "kubernetes.io/",
    "k8s.io/",
    "aks-managed-",
    "goog-gke-",
    "goog-k8s-",
    "aws:elasticmapreduce:",
    "elasticbeanstalk:",
    "databricks",
    "hidden-managedby",
)
_CODE: Final = ("aws:cloudformation:", "terraform", "pulumi", "iac", "managedbyterraform")
_CODE_TOOLS: Final = re.compile(r"terraform|pulumi|cloudformation|\bcdk\b|bicep|ansible|opentofu")
_SCALER_TOOLS: Final = re.compile(r"autoscal|karpenter|kubernetes|\bk8s\b|\baks\b|\beks\b|\bgke\b")
_MAX_CHARS: Final = 65_536
_MAX_WORD: Final = 200


@dataclass(frozen=True, slots=True)
class Tags:
    """What one set of tags says.

    Attributes:
        readable: False where there was text that is no JSON object.
        essential: ``yes``, ``no`` or None (unknown), by the rules above, before `settle`.
        owner: Who owns it, or None.
        environment: The environment as written, or None.
        managed_by: ``autoscaler`` (it would bring the resource back), ``iac``, or None.
        protected: Whether a tag asks that nobody touches it.
        name: The value of a Name tag, or None.
    """

    readable: bool = True
    essential: Essential | None = None
    owner: str | None = None
    environment: str | None = None
    managed_by: Manager | None = None
    protected: bool = False
    name: str | None = None


NO_TAGS: Final = Tags()
UNREADABLE: Final = Tags(readable=False)


def word(text: str) -> str:
    """Letters and digits of a key or value, in lower case.

    >>> word(" Mission-Critical ")
    'missioncritical'
    """
    return "".join(character for character in text.casefold() if character.isalnum())


def parse_essential(text: str) -> Essential | None:
    """An answer to "is it essential?", or None where the text gives none.

    >>> parse_essential("TRUE"), parse_essential("non-critical"), parse_essential("perhaps")
    ('yes', 'no', None)
    """
    said = word(text[:_MAX_WORD])
    if said in _YES or said in _CRITICAL:
        return "yes"
    if said in _NO or said in _UNCRITICAL:
        return "no"
    return None


def is_production(environment: str) -> bool:
    """Whether an environment's name looks like production.

    >>> is_production("eu-prod-2"), is_production("non-prod"), is_production("dev")
    (True, False, False)
    """
    text = environment.casefold()
    return bool(_PRODUCTION.search(text)) and not _NOT_PRODUCTION.search(text)


@lru_cache(maxsize=1 << 11)
def read_tags(text: str) -> Tags:
    """What the text of a Tags field says. Text that is no JSON object is not readable."""
    if is_missing(text):
        return NO_TAGS
    if len(text) > _MAX_CHARS:
        return UNREADABLE
    try:
        pairs = json.loads(
            text,
            object_pairs_hook=lambda found: found,
            parse_int=str,
            parse_float=str,
            parse_constant=str,
        )
    except (ValueError, RecursionError):
        return UNREADABLE
    if not text.lstrip().startswith("{"):
        return UNREADABLE
    flat = [(key, _scalar(value)) for key, value in pairs]
    return _judge([(key, value) for key, value in flat if value is not None and value.strip()])


def _scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _judge(pairs: list[tuple[str, str]]) -> Tags:
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(word(key[:_MAX_WORD]), []).append(value)
    said = {
        answer
        for key, texts in values.items()
        for text in texts
        if (answer := _answer(key, text)) is not None
    }
    environments = [text for key in ENVIRONMENT_KEYS for text in values.get(key, ())]
    environments.sort(key=is_production, reverse=True)
    names = values.get("name", ())
    owners = [text for key in OWNER_KEYS for text in values.get(key, ())]
    return Tags(
        essential="yes" if "yes" in said else "no" if "no" in said else None,
        owner=visible(owners[0], 120) if owners else None,
        environment=visible(environments[0], 60) if environments else None,
        managed_by=_manager(pairs),
        name=visible(names[0], 256) if names else None,
        protected=any(word(text) in _YES for key in PROTECT_KEYS for text in values.get(key, ())),
    )


def settle(
    by_tags: Essential | None, environment: str | None, by_file: Essential | None
) -> Essential | None:
    """Whether a resource is essential, when everybody has spoken; None is unknown.

    Args:
        by_tags: What the tags say.
        environment: Its environment, or None.
        by_file: What the metrics file says.

    >>> settle("no", "prod", None), settle("no", "prod", "no"), settle("yes", "dev", "no")
    (None, 'no', 'yes')
    """
    if "yes" in (by_tags, by_file):
        return "yes"
    if by_file == "no":
        return "no"
    if by_tags == "no" and not (environment and is_production(environment)):
        return "no"
    return None


def _answer(key: str, text: str) -> Essential | None:
    said = word(text[:_MAX_WORD])
    if key in ESSENTIAL_KEYS:
        return parse_essential(text)
    if key not in CRITICALITY_KEYS:
        return None
    if key.endswith("tier") and said in {"0", "1"}:
        return "yes"
    if said in _CRITICAL:
        return "yes"
    return "no" if said in _UNCRITICAL else None


def _manager(pairs: list[tuple[str, str]]) -> Manager | None:
    found: Manager | None = None
    for key, value in pairs:
        lowered = key.strip().casefold()
        tool = value.casefold() if word(key) in {"managedby", "createdby", "provisionedby"} else ""
        if lowered.startswith(_AUTOSCALERS) or _SCALER_TOOLS.search(tool):
            return "autoscaler"
        if lowered.startswith(_CODE) or _CODE_TOOLS.search(tool):
            found = "iac"
    return found
