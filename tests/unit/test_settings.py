from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

from orchestrator.room_numbers import NAMES
from orchestrator.settings import (
    Settings,
    further_roles,
    load_settings,
    missing_folders,
    unknown_variables,
)
from orchestrator.spec import EpisodeSpec
from world.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("WARROOM_"):
            monkeypatch.delenv(name)
    return tmp_path


def write_config(text: str) -> None:
    Path("warroom.toml").write_text(text, encoding="utf-8")


def test_defaults_are_those_of_an_episode_spec() -> None:
    assert load_settings().episode_spec() == EpisodeSpec()


def test_an_option_beats_a_variable_which_beats_the_file_which_beats_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load_settings().origins.get("seed") is None
    write_config("seed = 2\nsteps = 9\n")
    assert load_settings().settings.seed == 2
    assert load_settings().origins["seed"] == "warroom.toml"
    monkeypatch.setenv("WARROOM_SEED", "3")
    assert load_settings().settings.seed == 3
    assert load_settings().origins["seed"] == "WARROOM_SEED"
    resolved = load_settings({"seed": "4"})
    assert resolved.settings.seed == 4
    assert resolved.origins["seed"] == "--seed"
    assert resolved.settings.steps == 9


def test_a_commands_own_default_loses_to_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {"driver": "loop", "store": "inprocess"}
    assert load_settings(defaults=defaults).episode_spec().driver == "loop"
    write_config('driver = "graph"\n')
    assert load_settings(defaults=defaults).episode_spec().driver == "graph"
    assert load_settings({"driver": "loop"}, defaults).episode_spec().driver == "loop"
    monkeypatch.setenv("WARROOM_REDIS_URL", "redis://elsewhere:6379/0")
    assert load_settings(defaults=defaults).store == "inprocess"
    monkeypatch.setenv("WARROOM_STORE", ":memory:")
    assert load_settings(defaults=defaults).store == ":memory:"


@pytest.mark.parametrize(
    ("option", "store_variable", "url_variable", "file", "expected", "chosen_by"),
    [
        (None, None, None, "", "embedded", "default"),
        (None, None, "redis://url", "", "redis://url", "WARROOM_REDIS_URL"),
        (None, "inprocess", "redis://url", "", "inprocess", "WARROOM_STORE"),
        (":memory:", "inprocess", "redis://url", "", ":memory:", "--store"),
        (None, None, None, 'store = "inprocess"', "inprocess", "warroom.toml"),
        (None, None, "redis://url", 'store = "inprocess"', "redis://url", "WARROOM_REDIS_URL"),
        (None, None, None, 'redis_url = "redis://file"', "redis://file", "warroom.toml"),
        (None, ":memory:", None, 'store = "inprocess"', ":memory:", "WARROOM_STORE"),
    ],
)
def test_the_store_is_the_option_else_warroom_store_else_warroom_redis_url_else_embedded(
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    store_variable: str | None,
    url_variable: str | None,
    file: str,
    expected: str,
    chosen_by: str,
) -> None:
    write_config(file)
    for name, value in (("STORE", store_variable), ("REDIS_URL", url_variable)):
        if value:
            monkeypatch.setenv(f"WARROOM_{name}", value)
    resolved = load_settings({"store": option} if option else {})
    assert (resolved.store, resolved.store_origin) == (expected, chosen_by)
    assert resolved.episode_spec().store == expected
    assert resolved.named_store == (None if chosen_by == "default" else expected)


def test_repeatable_settings_add_up_over_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    write_config('set = ["cost.powers.weight=1"]\n[persona]\ncost = "a"\nresource = "b"\n')
    monkeypatch.setenv("WARROOM_SET", "cost.powers.weight=2")
    monkeypatch.setenv("WARROOM_PERSONA", "cost=c, janitor=d")
    settings = load_settings({"persona": ["janitor=e"], "set": ["cost.powers.weight=3"]}).settings
    assert settings.persona == {"cost": "c", "resource": "b", "janitor": "e"}
    assert settings.set == tuple(f"cost.powers.weight={n}" for n in (1, 2, 3))


def test_a_variable_holds_several_entries_and_keeps_what_their_values_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WARROOM_PERSONA", "cost=/a path/x.toml resource=y;janitor=z")
    monkeypatch.setenv("WARROOM_SET", 'cost.identity.title="a, b = c"; janitor.powers.weight=1')
    monkeypatch.setenv("WARROOM_PERSONAS", os.pathsep.join(["/one", "", "two"]))
    settings = load_settings().settings
    assert settings.persona == {"cost": "/a path/x.toml", "resource": "y", "janitor": "z"}
    assert settings.set == ('cost.identity.title="a, b = c"', "janitor.powers.weight=1")
    assert settings.personas == ("/one", "two")


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_has_a_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {
        "seed": "7",
        "steps": "7",
        "persona": "cost=x",
        "set": "cost.a=1",
        "disagreement": "current",
        "lookahead_steps": "7",
        "samples": "7",
        "plan_steps": "2",
        "budget_usd": "0.5",
        "driver": "loop",
        "checkpointer": "sqlite",
        "log": "json",
        "timeout_s": "7",
        "retention_s": "7",
        "approve": "all",
        "blast_radius": "7",
        "blast_share": "0.7",
    }.get(name, "x")
    monkeypatch.setenv(f"WARROOM_{name.upper()}", value)
    assert unknown_variables() == []
    resolved = load_settings()
    assert resolved.origins[name] == f"WARROOM_{name.upper()}"
    assert getattr(resolved.settings, name) != Settings.model_fields[name].default


def test_an_empty_variable_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARROOM_SEED", "")
    assert load_settings().settings.seed == 1


@pytest.mark.parametrize(
    ("options", "what", "why"),
    [
        ({"seed": "x"}, "--seed is 'x'", "whole number"),
        ({"seed": "-1"}, "--seed is '-1'", "greater than or equal to 0"),
        ({"seed": "1.5"}, "--seed is '1.5'", "whole number"),
        ({"seed": "9" * 5000}, "--seed is '999", "whole number"),
        ({"seed": str(2**63)}, "--seed is", "less than"),
        ({"steps": "0"}, "--steps is '0'", "greater than or equal to 1"),
        ({"scenario": ""}, "--scenario is ''", "at least 1 character"),
        ({"persona": ["cost"]}, "--persona is 'cost'", "ROLE=NAME"),
        ({"persona": ["Cost=x"]}, "--persona is 'Cost=x'", "lower case"),
        ({"persona": ["cost=a", "cost=b"]}, "--persona names the role 'cost' twice", "one persona"),
        ({"set": ["cost=1"]}, "--set is 'cost=1'", "ROLE.field=value"),
        ({"set": ["x\x1b[2J"]}, "--set is 'x\\\\x1b[2J'", "ROLE.field=value"),
    ],
)
def test_a_value_that_cannot_work_is_refused_under_the_name_by_which_it_was_given(
    options: dict[str, object], what: str, why: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(options)
    assert what in refused.value.what
    assert why in refused.value.why
    assert "\x1b" not in refused.value.line()


def test_a_misspelt_choice_is_answered_with_the_near_ones() -> None:
    with pytest.raises(ConfigError, match="Did you mean graph"):
        load_settings({"driver": "grph"})


def test_the_same_fault_in_a_variable_and_in_the_file_names_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_config('seed = "many"\n')
    with pytest.raises(ConfigError, match=r"^seed in warroom\.toml is 'many'"):
        load_settings()
    monkeypatch.setenv("WARROOM_SEED", "none")
    with pytest.raises(ConfigError, match=r"^WARROOM_SEED is 'none'"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sed = 1", "unknown key 'sed'.*Did you mean seed"),
        ("no-deal = 'nop'", "unknown key 'no-deal'.*Did you mean no_deal"),
        ("[run]\nseed = 1", "unknown key 'run'"),
        ("budget_usd = -3", "budget_usd in warroom.toml is -3"),
        ("seed = ", "warroom.toml is not TOML"),
        ("seed = 1\nseed = 2", "warroom.toml is not TOML"),
        (".".join(["a"] * 20_000) + " = 1", "a key of more than 32 parts"),
        ("x = " + "[" * 20_000, "warroom.toml is not TOML"),
        ("#" * 2**20 + "\nseed = 1", "larger than 1 MiB"),
        ("seed = 1" + "0" * 5000, "warroom.toml cannot be used"),
    ],
)
def test_a_config_file_with_a_fault_is_refused_and_named(text: str, message: str) -> None:
    write_config(text)
    with pytest.raises(ConfigError, match=message):
        load_settings()


def test_a_config_file_that_is_not_text_is_refused() -> None:
    Path("warroom.toml").write_bytes(b"\xff\xfe\x00seed")
    with pytest.raises(ConfigError, match=r"warroom\.toml is not TOML"):
        load_settings()


def test_a_budget_that_is_no_amount_is_refused_under_the_name_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WARROOM_BUDGET_USD", "much")
    with pytest.raises(ConfigError, match="WARROOM_BUDGET_USD is 'much'"):
        load_settings()


def test_a_misspelt_variable_is_warned_of_with_its_neighbour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WARROOM_SCENARO", "cloudedge/easy")
    monkeypatch.setenv("WARROOM_DEBUG", "1")
    (warning,) = unknown_variables()
    assert warning.startswith("WARROOM_SCENARO is not a setting. Did you mean WARROOM_SCENARIO")


def test_no_secret_of_a_store_address_leaves_in_print_config_or_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WARROOM_REDIS_URL", "rediss://me:hunter2@host:6379/0?password=hunter2")
    resolved = load_settings()
    assert "hunter2" in resolved.store
    for shown in (resolved.as_toml(), json.dumps(resolved.as_json())):
        assert "hunter2" not in shown
        assert "rediss://me:***@host:6379/0" in shown
    with pytest.raises(ConfigError) as refused:
        load_settings({"store": "redis://:hunter2@" + "h" * 5000})
    assert "hunter2" not in refused.value.line()


def test_the_printed_config_is_a_config_file_that_means_the_same() -> None:
    options = {
        "seed": "5",
        "persona": ['cost=/tmp/a "b" \\c\x7f.toml', "janitor=x"],
        "set": ["cost.powers.weight=2"],
        "store": ":memory:",
        "steps": "12",
    }
    before = load_settings(options)
    text = before.as_toml()
    write_config(text)
    after = load_settings()
    # What scenario and world chose stands in the file as well, and means what it meant.
    numbers = after.settings.model_dump(include={*NAMES})
    assert after.episode_spec() == before.episode_spec().model_copy(update=numbers)
    assert after.as_json()["settings"] == before.as_json()["settings"]
    assert tomllib.loads(text)["seed"] == 5
    assert "# --seed" in text
    assert "# default" in text


def test_bounds_of_settings_are_those_of_the_spec() -> None:
    settings, spec = Settings.model_fields, EpisodeSpec.model_fields
    for name in ("seed", "steps", "lookahead_steps", "samples", "blast_radius", "blast_share"):
        assert settings[name].metadata == spec[name].metadata
        assert settings[name].default == spec[name].default
    for name in ("driver", "disagreement", "checkpointer", "approve"):
        assert settings[name].annotation == spec[name].annotation


def test_store_settings_carry_where_and_how_long() -> None:
    write_config('state_dir = "/tmp/state"\ntimeout_s = 2\nretention_s = 0\n')
    store = load_settings().store_settings()
    assert (store.state_dir, store.timeout_s, store.retention_s) == ("/tmp/state", 2.0, 0.0)


@pytest.mark.parametrize(
    ("role", "near"), [("cots", "cost"), ("resorce", "resource"), ("janitors", "janitor")]
)
def test_a_role_that_is_nearly_a_default_one_is_refused(role: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean {near}=cost"):
        load_settings({"persona": [f"{role}=cost"]})


def test_another_role_is_a_further_seat() -> None:
    chosen = load_settings({"persona": ["cost=cost_hawk", "security=cost"]}).settings.persona
    assert further_roles(chosen) == ["security"]


def test_a_persona_folder_that_is_not_there_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("WARROOM_PERSONAS", f"{folder}{os.pathsep}nosuch")
    (warning,) = missing_folders(load_settings())
    assert warning.startswith("WARROOM_PERSONAS names 'nosuch', which is no folder")


@pytest.mark.parametrize("kind", ["folder", "dead link"])
def test_a_config_that_is_no_regular_file_is_refused(kind: str, folder: Path) -> None:
    if kind == "folder":
        (folder / "warroom.toml").mkdir()
    else:
        (folder / "warroom.toml").symlink_to("nosuch")
    with pytest.raises(ConfigError, match=r"^warroom\.toml is no regular file"):
        load_settings()
