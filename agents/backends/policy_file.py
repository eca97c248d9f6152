"""Learned policies as data: ``policy/1``, from JSON, TOML or .npz. Nothing in them is executed.

Two kinds. ``q_table`` maps a state, spelt as words joined by ``|``, to one value per action; the
words come from `features`, each of which cuts a metric or a public fact into ranges. ``linear``
gives each action a bias and a weight per metric, where a metric counts as its share of the target.
An .npz file holds the same: a member ``policy`` with the document as JSON text, and, for a large
table, ``keys`` (text, [n]) and ``q`` (float64, [n, n_actions]) instead of ``table``.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from world.actions import parse_joint
from world.errors import ConfigError, InadmissibleActionError, UnknownNameError
from world.model import Observation
from world.toml_text import parse_toml, read_regular

SCHEMA = "policy/1"
_MAX_BYTES = 2**26
_MEMBERS = frozenset({"policy.npy", "keys.npy", "q.npy"})
UNKNOWN = "unknown"
"""Word of a feature whose value is not known."""

Value = Annotated[float, Field(ge=-1e12, le=1e12)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Feature(_Part):
    """One word of a state.

    Attributes:
        metric: Metric that is cut into ranges; or
        fact: public fact that is (true counts as 1, false as 0).
        above: Edges, rising: the word is chosen by how many of them the value is above.
        words: One word more than there are edges.
    """

    metric: str = Field(default="", max_length=64)
    fact: str = Field(default="", max_length=64)
    above: tuple[Value, ...] = Field(max_length=64)
    words: tuple[Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")], ...] = Field(max_length=65)

    @model_validator(mode="after")
    def _fits(self) -> Feature:
        if bool(self.metric) == bool(self.fact):
            raise ValueError("a feature names a metric or a fact")
        if len(self.words) != len(self.above) + 1 or list(self.above) != sorted(set(self.above)):
            raise ValueError("above must rise, and words must be one more")
        return self

    def word(self, seen: Observation) -> str:
        """The word for what is observed."""
        value = seen.metrics.get(self.metric) if self.metric else seen.facts.get(self.fact)
        if not isinstance(value, bool | int | float) or value != value:
            return UNKNOWN
        return self.words[sum(float(value) > edge for edge in self.above)]


class Policy(_Part):
    """A learned policy.

    Attributes:
        schema_: ``policy/1``.
        kind: ``q_table`` or ``linear``.
        title: One line.
        world: World that it was learned in.
        actions: Action ids (``kind[:target][:k=v]``), or kinds of which any target may be taken.
        features: Words of a state, in order; for q_table.
        table: State → one value per action; for q_table.
        default: One value per action for a state that is not in the table; empty is none.
        weights: Action → {``bias`` or metric: weight}; for linear.
        proposals: Most actions that are proposed.
    """

    schema_: Literal["policy/1"] = Field(alias="schema")
    kind: Literal["q_table", "linear"]
    title: str = Field(default="", max_length=200)
    world: Name
    actions: tuple[Name, ...] = Field(min_length=1, max_length=4096)
    features: tuple[Feature, ...] = Field(default=(), max_length=32)
    table: dict[str, tuple[Value, ...]] = {}
    default: tuple[Value, ...] = ()
    weights: dict[str, dict[str, Value]] = {}
    proposals: int = Field(default=3, ge=1, le=8)

    @model_validator(mode="after")
    def _fits(self) -> Policy:
        for action in self.actions:
            try:
                parse_joint(action)
            except InadmissibleActionError as error:
                raise ValueError(error.what) from error
        if len(set(self.actions)) < len(self.actions):
            raise ValueError("an action stands twice")
        rows = [*self.table.values(), *([self.default] if self.default else [])]
        if any(len(row) != len(self.actions) for row in rows):
            raise ValueError(
                f"every row of the table has one value per action, {len(self.actions)}"
            )
        if self.kind == "q_table" and not self.features:
            raise ValueError("a q_table needs features")
        stray = sorted(set(self.weights) - set(self.actions))
        if stray:
            raise ValueError(f"weights of {stray[0]!r}, which is no action of this policy")
        return self

    def state(self, seen: Observation) -> str:
        """The words of what is observed, joined by ``|``."""
        return "|".join(feature.word(seen) for feature in self.features)

    def scores(self, seen: Observation) -> tuple[float, ...]:
        """One value per action; empty where the policy has nothing to say."""
        if self.kind == "q_table":
            return self.table.get(self.state(seen), self.default)
        return tuple(self._linear(self.weights.get(action, {}), seen) for action in self.actions)

    def _linear(self, weights: Mapping[str, float], seen: Observation) -> float:
        total = weights.get("bias", 0.0)
        for name, weight in weights.items():
            value, target = seen.metrics.get(name), seen.targets.get(name)
            if value is not None and target:
                total += weight * (value / target)
        return total


@lru_cache(maxsize=32)
def load_policy(path: Path) -> tuple[Policy, str]:
    """A policy and the SHA-256 of its file.

    Raises:
        UnknownNameError: There is no such file.
        ConfigError: It cannot be read as a policy; says which field.
    """
    try:
        content = read_regular(path, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnknownNameError(
            f"there is no policy file {path}", "backend.ref names it", "Give the path of a file"
        ) from error
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{path} cannot be read", detail, "Name another file") from error
    try:
        policy = Policy.model_validate(_document(path, content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the policy"
        why = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{path}: {where}: {why}"[:400], f"schema {SCHEMA!r}", "") from error
    except (ValueError, KeyError, OSError, EOFError, RecursionError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{path} holds no policy",
            f"{type(error).__name__}: {error}"[:200],
            "JSON, TOML or .npz",
        ) from error
    return policy, hashlib.sha256(content).hexdigest()


def _document(path: Path, content: bytes) -> Any:
    if path.suffix == ".npz":
        return _from_arrays(content)
    text = content.decode("utf-8-sig")
    return parse_toml(text) if path.suffix == ".toml" else json.loads(text)


def _from_arrays(content: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: info.file_size for info in archive.infolist()}
    stray = sorted(set(members) - _MEMBERS)
    if stray or "policy.npy" not in members:
        raise ValueError(f"members must be among {', '.join(sorted(_MEMBERS))}")
    if sum(members.values()) > _MAX_BYTES:
        raise ValueError("it is too large when unpacked")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        document = json.loads(str(arrays["policy"][()]))
        if "q" in arrays.files:
            keys, q = arrays["keys"], np.asarray(arrays["q"], dtype=np.float64)
            if keys.ndim != 1 or q.ndim != 2 or len(keys) != len(q):
                raise ValueError("keys is [n] and q is [n, n_actions]")
            rows = zip(keys.tolist(), q.tolist(), strict=True)
            document["table"] = {str(key): tuple(row) for key, row in rows}
    return document
