"""One settings object: defaults < ``warroom.toml`` < environment ``WARROOM_*`` < options.

Every layer is read raw, merged, and checked once, so that an option, a variable and a key in the
file are refused in the same words, each under the name by which it was given. Repeatable settings
add up over the layers (the later layer is applied last); all others replace.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings.exceptions import SettingsError

from orchestrator.console.text import close_matches, plain, without_secrets
from orchestrator.later import LATER_OPTIONS, LATER_SETTINGS, refusal
from orchestrator.room_numbers import NAMES, RoomNumber, room_numbers
from orchestrator.spec import ROLES, EpisodeSpec
from world.errors import ConfigError, WarRoomError
from world.store.base import StoreSettings
from world.toml_text import TomlError, parse_toml, read_regular

CONFIG_FILE = "warroom.toml"
PREFIX = "WARROOM_"
_MAX_FILE_BYTES = 2**20
LOG_MODES = ("auto", "live", "lines", "json", "quiet")
_OF_RUN = ("WARROOM_JSON", "WARROOM_RESUME", "WARROOM_PRINT_CONFIG")
_NOT_SETTINGS = frozenset({"WARROOM_DEBUG", "WARROOM_TEST_REDIS", *_OF_RUN})
_NEARLY = 0.75
"""Likeness (`difflib`) from which a role counts as a misspelt one."""
_ROLE = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")
_PERSONA_SPLIT = re.compile(r"[;,\s]+(?=[a-z][a-z0-9_-]*=)")
_WORD_SPLIT = re.compile(r"[;,\s]+")
_SET_SPLIT = re.compile(r"[;,\s]+(?=[a-z][a-z0-9_-]*\.[\w.-]+=)")


def _default(name: str) -> Any:
    """The one default of a field that an episode spec has too."""
    return EpisodeSpec.model_fields[name].default


class Settings(BaseSettings):
    """Every setting of a run, checked.

    Attributes:
        scenario: Scenario name, or the path of a scenario file.
        seed: Episode seed, 0 or more.
        steps: Replaces the scenario's horizon.
        persona: Role → persona name or path.
        set: ``ROLE.field=value`` in order.
        protocol: Protocol name.
        no_deal: What decides where there is no deal: ``nop`` or a protocol name.
        disagreement: Value of no deal to a seat.
        lookahead_steps: Steps that a candidate is projected; None is the scenario's.
        samples: Belief samples; 0 is mean noise; None is the scenario's.
        plan_steps: Longest plan on the table; None is the scenario's.
        driver: ``graph`` or ``loop``.
        store: ``embedded``, ``:memory:``, ``inprocess`` or a URL.
        redis_url: Server used where `store` is not given.
        checkpointer: Graph checkpointer, for human interrupts only.
        out: Parent folder of the runs.
        log: How progress is shown.
        personas: Further folders in which persona files are looked up.
        state_dir: Folder of the embedded store.
        timeout_s: Seconds before a store counts as not answering.
        retention_s: Seconds that a closed episode stays in the store; 0 keeps it.
        human: Seats at which a person sits.
        approve: What a person must approve before it is done.
        freeze: Windows without changes, beside the scenario's.
        blast_radius: Most distinct targets touched in one step; 0 is the scenario's.
        blast_share: Largest share of a service's tier or of the fleet touched in one step.
        model: Model that every persona speaks through.
        base_url: Endpoint of the models.
        usd_per_mtok: Price of the models, ``IN/OUT`` in dollars per million tokens.
        budget_usd: Most that all seats may spend on models.
        record: Folder that model answers are written to.
        playback: Folder that model answers are read from.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
    )

    scenario: str = Field(default=_default("scenario"), min_length=1, max_length=4096)
    seed: int = Field(default=_default("seed"), ge=0, lt=2**63)
    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    persona: Annotated[dict[str, str], NoDecode] = {}
    set: Annotated[tuple[str, ...], NoDecode] = ()
    protocol: str = Field(default=_default("protocol"), min_length=1, max_length=200)
    no_deal: str = Field(default=_default("no_deal"), min_length=1, max_length=200)
    disagreement: Literal["mean_legal", "projected_nop", "current"] = _default("disagreement")
    lookahead_steps: int | None = Field(default=None, ge=1, le=64)
    samples: int | None = Field(default=None, ge=0, le=256)
    plan_steps: int | None = Field(default=None, ge=1, le=2)
    driver: Literal["graph", "loop"] = _default("driver")
    store: str | None = Field(default=None, min_length=1, max_length=4096)
    redis_url: str | None = Field(default=None, min_length=1, max_length=4096)
    checkpointer: Literal["none", "sqlite", "redis"] = _default("checkpointer")
    out: str = Field(default=_default("out"), max_length=4096)
    log: Literal["auto", "live", "lines", "json", "quiet"] = "auto"
    personas: Annotated[tuple[str, ...], NoDecode] = ()
    state_dir: str | None = Field(default=None, min_length=1, max_length=4096)
    timeout_s: float = Field(default=5.0, gt=0, le=3600, allow_inf_nan=False)
    retention_s: float = Field(default=7 * 86400.0, ge=0, le=1e9, allow_inf_nan=False)
    human: Annotated[tuple[str, ...], NoDecode] = ()
    approve: Literal["none", "destructive", "all"] = _default("approve")
    freeze: Annotated[tuple[str, ...], NoDecode] = ()
    blast_radius: int = Field(default=_default("blast_radius"), ge=0, le=1_000_000)
    blast_share: float = Field(default=_default("blast_share"), ge=0, le=1, allow_inf_nan=False)
    model: str = Field(default=_default("model"), max_length=200)
    base_url: str = Field(default=_default("base_url"), max_length=2048)
    usd_per_mtok: str = Field(default=_default("usd_per_mtok"), max_length=80)
    budget_usd: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    record: str = Field(default=_default("record"), max_length=4096)
    playback: str = Field(default=_default("playback"), max_length=4096)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` merged: it reads the layers itself."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


_EXAMPLES = {
    "scenario": "List them: python run_warroom.py scenarios",
    "seed": "For example --seed 2",
    "steps": "For example --steps 30",
    "persona": "For example --persona cost=cost_hawk",
    "set": "For example --set cost.powers.weight=2",
    "protocol": "List them: python run_warroom.py protocols",
    "lookahead_steps": "For example --lookahead-steps 2",
    "samples": "For example --samples 8",
    "plan_steps": "For example --plan-steps 1",
    "store": "For example --store redis://127.0.0.1:6379/0",
    "personas": 'For example personas = ["my_personas"]',
    "timeout_s": "For example WARROOM_TIMEOUT_S=5",
    "human": "For example --human cost",
    "freeze": "For example --freeze 10:20, or --freeze 22:00-06:00",
    "blast_radius": "For example --blast-radius 2",
    "blast_share": "For example --blast-share 0.25",
    "budget_usd": "For example --budget-usd 0.50",
    "usd_per_mtok": "For example --usd-per-mtok 0.15/0.60",
}


@dataclass(frozen=True)
class Resolved:
    """Settings, and where each came from.

    Attributes:
        settings: The checked settings.
        origins: Setting → ``default``, ``warroom.toml``, ``WARROOM_…`` or ``--option``.
        store: The store that will be used.
        store_origin: What chose it.
    """

    settings: Settings
    origins: Mapping[str, str]
    store: str
    store_origin: str

    def episode_spec(self, **changes: Any) -> EpisodeSpec:
        """The episode that these settings ask for, some fields replaced."""
        settings = self.settings
        fields: dict[str, Any] = {
            "scenario": settings.scenario,
            "seed": settings.seed,
            "steps": settings.steps,
            "personas": dict(settings.persona),
            "overrides": settings.set,
            "protocol": settings.protocol,
            "no_deal": settings.no_deal,
            "disagreement": settings.disagreement,
            "lookahead_steps": settings.lookahead_steps,
            "samples": settings.samples,
            "plan_steps": settings.plan_steps,
            "driver": settings.driver,
            "store": self.store,
            "checkpointer": settings.checkpointer,
            "out": settings.out,
            "persona_path": settings.personas,
            "human": settings.human,
            "approve": settings.approve,
            "freeze": settings.freeze,
            "blast_radius": settings.blast_radius,
            "blast_share": settings.blast_share,
            "model": settings.model,
            "default_model": os.environ.get("MODEL_NAME", ""),
            "base_url": settings.base_url,
            "usd_per_mtok": settings.usd_per_mtok,
            "budget_usd": settings.budget_usd,
            "record": settings.record,
            "playback": settings.playback,
        }
        return EpisodeSpec.model_validate(fields | changes)

    def store_settings(self) -> StoreSettings:
        """Where to look for the store."""
        return StoreSettings(
            state_dir=self.settings.state_dir,
            timeout_s=self.settings.timeout_s,
            retention_s=self.settings.retention_s,
            environment={"chosen_by": self.store_origin},
        )

    @property
    def named_store(self) -> str | None:
        """The store, if anything but the default chose it."""
        return None if self.store_origin == "default" else self.store

    def as_json(self) -> dict[str, Any]:
        """``{settings, origins}`` without secrets."""
        values = self.settings.model_dump(mode="json") | {"store": self.store}
        del values["redis_url"]
        shown = {name: _safe(value) for name, value in values.items()}
        origins = {name: self.origins.get(name, "default") for name in shown}
        for name, number in self._room_numbers().items():
            shown[name], origins[name] = number.value, number.origin or origins[name]
        return {"settings": shown, "origins": origins | {"store": self.store_origin}}

    def _room_numbers(self) -> Mapping[str, RoomNumber]:
        """What scenario and world choose where no layer does; nothing where there is neither."""
        # Imported here so that reading settings needs no NumPy.
        from world.scenarios.loader import load_scenario
        from world.worlds.registry import make_world

        try:
            scenario = load_scenario(self.settings.scenario)
            world = make_world(scenario)
        except WarRoomError:
            return {}  # a run of it says what is wrong
        return room_numbers(self.settings.model_dump(include={*NAMES}), scenario, world)

    def as_toml(self) -> str:
        """The same as the text of a ``warroom.toml``, each line with its origin."""
        document = self.as_json()
        lines = [f"# defaults < {CONFIG_FILE} < {PREFIX}* < options; secrets removed"]
        for name, value in document["settings"].items():
            text = f"# {name} is not set" if value is None else f"{name} = {_toml(value)}"
            lines.append(f"{text:<44}  # {document['origins'][name]}")
        return "\n".join(lines)


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: _safe(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_safe(part) for part in value]
    return value


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(part) for part in value)}]"
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value).replace("\x7f", "\\u007f")


def load_settings(
    options: Mapping[str, Any] | None = None, defaults: Mapping[str, Any] | None = None
) -> Resolved:
    """Merge the layers and check them.

    Args:
        options: Setting → value as typed; what was not typed is left out.
        defaults: Other defaults than `Settings` has, for commands that say so.

    Raises:
        ConfigError: A value, key or variable cannot work; the message names where it was given.
    """
    layers = (
        ("default", dict(defaults or {})),
        (CONFIG_FILE, _file_layer()),
        (PREFIX, _environment_layer()),
        ("--", dict(options or {})),
    )
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer, values in layers:
        for name, value in values.items():
            origin = _origin(layer, name)
            merged[name] = _merge(name, merged.get(name), value, origin)
            origins[name] = origin
    try:
        settings = Settings(**merged)
    except ValidationError as error:
        raise _refuse(error, origins) from error
    check_roles(settings.persona, origins.get("persona", "persona"))
    store, chosen_by = _choose_store(settings, origins)
    return Resolved(settings, origins, store, chosen_by)


def check_roles(personas: Mapping[str, str], origin: str) -> None:
    """Refuse a role that is nearly the name of a default one.

    Another role is a further seat; a misspelt one would leave the seat that was meant as it is.

    Raises:
        ConfigError: Such a role; the message names the default one.
    """
    for role in further_roles(personas):
        close = get_close_matches(role, ROLES, n=1, cutoff=_NEARLY)
        if close:
            raise ConfigError(
                f"{origin} names the role {role!r}",
                f"there is no such seat, and it is nearly {close[0]!r}",
                f"Did you mean {close[0]}={plain(personas[role], 80)}? "
                "A further seat needs a name that is not so near",
            )


def further_roles(personas: Mapping[str, str]) -> list[str]:
    """The roles that are further seats beside the default ones."""
    return [role for role in personas if role not in ROLES]


def missing_folders(resolved: Resolved) -> list[str]:
    """One warning for each persona folder that is not there."""
    origin = resolved.origins.get("personas", "personas")
    return [
        f"{origin} names {plain(folder)!r}, which is no folder; no persona is looked up there"
        for folder in resolved.settings.personas
        if not Path(folder).is_dir()
    ]


def unknown_variables() -> list[str]:
    """One warning for each ``WARROOM_*`` variable that is no setting."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    return [
        f"{plain(name)} is not a setting. {close_matches(name, known)}".rstrip()
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and name not in known and name not in _NOT_SETTINGS
    ]


def _origin(layer: str, name: str) -> str:
    if layer == "--":
        return "--" + name.replace("_", "-")
    return PREFIX + name.upper() if layer == PREFIX else layer


def _choose_store(settings: Settings, origins: Mapping[str, str]) -> tuple[str, str]:
    """``--store``, else WARROOM_STORE, else WARROOM_REDIS_URL, else the file, else the default."""
    named, url = origins.get("store", ""), origins.get("redis_url", "")
    # A sweep's own default is a choice of this program, which an ambient server never changes.
    url_wins = named == CONFIG_FILE and url.startswith(PREFIX)
    if settings.redis_url and (not settings.store or url_wins):
        return settings.redis_url, url
    if settings.store:
        return settings.store, named
    return "embedded", "default"


def _environment_layer() -> dict[str, Any]:
    for name in LATER_SETTINGS:
        if os.environ.get(PREFIX + name.upper()):
            raise refusal(PREFIX + name.upper(), LATER_OPTIONS[name.replace("_", "-")])
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        raise ConfigError(plain(error), "", "Correct that variable") from error


def _file_layer() -> dict[str, Any]:
    path = Path(CONFIG_FILE)
    if (path.is_symlink() or path.exists()) and not path.is_file():
        raise ConfigError(
            f"{CONFIG_FILE} is no regular file",
            "its settings cannot be read",
            "Remove it, or put a TOML file there",
        )
    try:
        text = read_regular(path, _MAX_FILE_BYTES).decode("utf-8-sig")
        values = parse_toml(text)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{CONFIG_FILE} cannot be read", error.strerror or "", "") from error
    except (TomlError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML", plain(error), "Correct that line") from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot be used", plain(error), "Shorten it") from error
    known = list(Settings.model_fields)
    for name in values:
        if name in LATER_SETTINGS:
            raise refusal(f"{name} in {CONFIG_FILE}", LATER_OPTIONS[name.replace("_", "-")])
        if name not in known:
            raise ConfigError(
                f"{CONFIG_FILE} has the unknown key {plain(name)!r}",
                "a setting that is not read would be ignored in silence",
                f"{close_matches(name.replace('-', '_'), known)}Keys: {', '.join(known)}",
            )
    return dict(values)


def _merge(name: str, before: Any, value: Any, origin: str) -> Any:
    if name == "persona":
        return {**(before or {}), **_persona_pairs(value, origin)}
    if name == "set":
        return (*(before or ()), *_assignments(value, origin))
    if name == "human":
        return (*(before or ()), *_roles(value, origin))
    if name == "freeze":
        return (*(before or ()), *map(str, _entries(value, _WORD_SPLIT)))
    if name == "personas":
        folders = value.split(os.pathsep) if isinstance(value, str) else value
        if not isinstance(folders, list | tuple):
            folders = [folders]
        return (*(before or ()), *(part for part in folders if part != ""))
    return value


def _entries(value: Any, split: re.Pattern[str]) -> list[Any]:
    if isinstance(value, str):
        return [part for part in split.split(value.strip(" ;,\n\t")) if part]
    return list(value) if isinstance(value, list | tuple) else [value]


def _persona_pairs(value: Any, origin: str) -> dict[str, str]:
    """``ROLE=NAME`` entries, or a table, as a dict."""
    if isinstance(value, dict):
        entries: list[Any] = [f"{role}={name}" for role, name in value.items()]
    else:
        entries = _entries(value, _PERSONA_SPLIT)
    pairs: dict[str, str] = {}
    for entry in entries:
        role, equals, name = str(entry).partition("=")
        role, name = role.strip(), name.strip()
        if not equals or not name or not _ROLE.match(role):
            raise ConfigError(
                f"{origin} is {plain(entry, 80)!r}",
                "it must be ROLE=NAME or ROLE=PATH, the role in lower case",
                _EXAMPLES["persona"],
            )
        if role in pairs:
            raise ConfigError(
                f"{origin} names the role {role!r} twice",
                "a seat has one persona",
                f"Keep {role}={plain(pairs[role], 80)} or {role}={plain(name, 80)}",
            )
        pairs[role] = name
    return pairs


def _roles(value: Any, origin: str) -> tuple[str, ...]:
    """Names of seats; whether there are such seats is found where they are filled."""
    entries = _entries(value, _WORD_SPLIT)
    for entry in entries:
        if not _ROLE.match(str(entry)):
            raise ConfigError(
                f"{origin} is {plain(entry, 80)!r}", "it must be a seat's name", _EXAMPLES["human"]
            )
    return tuple(map(str, entries))


def _assignments(value: Any, origin: str) -> tuple[str, ...]:
    """``ROLE.field=value`` entries as text; their fields are checked where personas are read."""
    entries = _entries(value, _SET_SPLIT)
    for entry in entries:
        path, equals, _ = str(entry).partition("=")
        if not equals or not path.partition(".")[2] or not _ROLE.match(path.partition(".")[0]):
            raise ConfigError(
                f"{origin} is {plain(entry, 80)!r}",
                "it must be ROLE.field=value",
                _EXAMPLES["set"],
            )
    return tuple(str(entry) for entry in entries)


def _refuse(error: ValidationError, origins: Mapping[str, str]) -> ConfigError:
    """The first fault, under the name by which the value was given."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    value = without_secrets(plain(repr(first["input"]), 80))
    origin = origins.get(name, name)
    if origin == CONFIG_FILE:
        origin = f"{name} in {CONFIG_FILE}"
    why, fix = _why(first), _EXAMPLES.get(name, "")
    if first["type"] == "literal_error":
        choices = re.findall(r"'([^']+)'", why)
        fix = close_matches(str(first["input"]), choices).rstrip()
    return ConfigError(f"{origin} is {value}", f"it must {why}", fix)


def _why(fault: Mapping[str, Any]) -> str:
    kind = str(fault["type"])
    if kind.startswith("int_"):
        return "be a whole number"
    if kind.startswith(("float_", "finite_")):
        return "be a number"
    message = str(fault["msg"])
    return message.removeprefix("Input should ").removeprefix("String should ")
