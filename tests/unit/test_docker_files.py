"""What the container files promise: a store that forgets nothing, and nothing run as root."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.stores import bare_client, start_server
from world.store.address import parse_address
from world.store.binaries import find_binary

yaml = pytest.importorskip("yaml", reason="PyYAML comes with langchain-core")
ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def _options(compose: dict[str, Any]) -> list[str]:
    """The store's options, with the defaults of their variables."""
    words = [str(word) for word in compose["services"]["store"]["command"]]
    return [re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", word) for word in words]


def test_the_store_keeps_every_write_and_evicts_nothing(compose: dict[str, Any]) -> None:
    words = _options(compose)
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] in {"everysec", "always"}
    assert options["--maxmemory-policy"] == "noeviction"
    assert "--maxmemory" in options
    volumes = compose["services"]["store"]["volumes"]
    assert [volume.split(":")[1] for volume in volumes] == ["/data"]
    assert volumes[0].split(":")[0] in compose["volumes"]


@pytest.mark.skipif(find_binary() is None, reason="no server binary runs here")
def test_a_real_server_takes_the_options_as_they_are_written(compose: dict[str, Any]) -> None:
    binary = find_binary()
    assert binary is not None
    with tempfile.TemporaryDirectory(prefix="wr-") as folder:
        process = start_server(str(binary.path), Path(folder), *_options(compose))
        with bare_client(Path(folder) / "s.sock") as client:
            assert client.config_get("maxmemory*")["maxmemory-policy"] == "noeviction"
            assert client.config_get("appendonly") == {"appendonly": "yes"}
        process.terminate()
        process.wait()


def test_ports_are_bound_to_this_machine_alone(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert ports
    for port in ports:
        assert str(port).startswith("127.0.0.1:")


def test_the_war_room_waits_for_a_healthy_store_and_finds_it(compose: dict[str, Any]) -> None:
    store, room = compose["services"]["store"], compose["services"]["warroom"]
    assert "PONG" in " ".join(store["healthcheck"]["test"])
    assert room["depends_on"]["store"]["condition"] == "service_healthy"
    address = parse_address(room["environment"]["WARROOM_REDIS_URL"])
    assert (address.host, address.port) == ("store", 6379)


def test_the_war_room_runs_with_as_little_as_it_needs(compose: dict[str, Any]) -> None:
    room = compose["services"]["warroom"]
    assert room["read_only"] is True
    assert room["cap_drop"] == ["ALL"]
    assert room.get("privileged") is not True
    for service in compose["services"].values():
        assert "no-new-privileges:true" in service["security_opt"]
        assert "/var/run/docker.sock" not in str(service)


def test_the_image_does_not_run_as_root() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    users = re.findall(r"^USER (\S+)$", last_stage, flags=re.MULTILINE)
    assert users
    assert int(users[-1].split(":")[0]) >= 1_000


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignore
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, flags=re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignore, source


def test_packages_are_installed_by_their_hashes() -> None:
    assert "--require-hashes" in DOCKERFILE
    assert "requirements.lock" in DOCKERFILE
