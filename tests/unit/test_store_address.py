"""URLs of servers: read exactly, shown without secrets, refused without repeating them."""

from __future__ import annotations

import pytest

from world.errors import ConfigError
from world.store.address import parse_address, redact

SECRET = "s3cr3t"


def test_a_tcp_url_gives_host_port_and_database() -> None:
    address = parse_address("redis://user:p%40ss@db.example:7000/3")
    assert (address.host, address.port, address.db) == ("db.example", 7000, 3)
    assert (address.username, address.password) == ("user", "p@ss")
    assert address.shown == "redis://db.example:7000/3"


def test_what_a_url_leaves_out_has_its_usual_value() -> None:
    address = parse_address("redis://localhost")
    assert (address.port, address.db, address.username, address.password) == (6379, 0, None, None)
    assert parse_address("redis://h:1/?db=5").db == 5
    assert parse_address("redis://:pw@h").password == "pw"
    assert parse_address("redis://[::1]:6380/0").shown == "redis://[::1]:6380/0"


def test_a_tls_url_checks_certificates_unless_told_otherwise() -> None:
    assert parse_address("rediss://h").verify is True
    assert parse_address("rediss://h?ssl_cert_reqs=none").verify is False
    assert parse_address("rediss://h?ssl_ca_certs=/ca.pem").ca_certs == "/ca.pem"


def test_a_socket_url_gives_its_path() -> None:
    address = parse_address(f"unix://u:{SECRET}@/run/a%20b.sock?db=2")
    assert (address.path, address.db, address.username) == ("/run/a b.sock", 2, "u")
    assert address.password == SECRET
    assert address.shown == "unix:///run/a b.sock?db=2"


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@host:port/0",
        f"redis://user:{SECRET}/more@host:6379/0",
        f"redis://host:{SECRET}",
        f"redis://:{SECRET}@host:99999",
        f"redis://:{SECRET}@host:0",
        f"redis://:{SECRET}@:6379",
        f"redis://:{SECRET}@host/name",
        f"redis://:{SECRET}@host/-1",
        f"redis://host?pasword={SECRET}",
        f"redis://host/0#{SECRET}",
        f"redis://:{SECRET}@[::1",
        f"unix://:{SECRET}@",
        f"unix://{SECRET}/relative.sock",
        f"http://{SECRET}@host",
        f"valkey+unix://{SECRET}",
        f"{SECRET}://host",
        "redis://",
        "://",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(url)
    if not url.startswith(SECRET):
        assert SECRET not in caught.value.line()
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.line()


def test_an_address_never_shows_its_password_by_accident() -> None:
    address = parse_address(f"redis://me:{SECRET}@host")
    assert SECRET not in repr(address)
    assert SECRET not in f"{address}"
    assert SECRET not in address.shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no url here", "no url here"),
        (f"--store redis://:{SECRET}@h:1/2 --seed 1", "--store redis://***@h:1/2 --seed 1"),
        (f"redis://h?password={SECRET}", "redis://***@h:6379/0"),
        (f"redis://h:{SECRET}", "redis://***"),
        (f"'rediss://u:{SECRET}@h'", "'rediss://***@h:6379/0'"),
        ("redis://h:1/0", "redis://h:1/0"),
        (f"https://user:{SECRET}@host/path", "https://***@host/path"),
        ("https://host/path", "https://host/path"),
    ],
)
def test_redacting_keeps_the_place_and_drops_the_secret(text: str, shown: str) -> None:
    assert redact(text) == shown
