from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from orchestrator import logs


@pytest.fixture(autouse=True)
def keep_handlers() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_than_on_a_terminal_a_record_is_one_json_line_without_secrets() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    log = logging.getLogger("world.store")
    log.info("not shown")
    log.warning("cannot reach %s", "redis://:hunter2@host:6379/0")
    try:
        raise ValueError("redis://:hunter2@host refused")
    except ValueError:
        log.exception("failed")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first == {
        "level": "warning",
        "logger": "world.store",
        "message": "cannot reach redis://:***@host:6379/0",
    }
    assert "ValueError" in second["error"]
    assert "hunter2" not in stream.getvalue()


def test_on_a_terminal_a_record_is_readable_and_obeys_nothing_in_its_text() -> None:
    stream = Terminal()
    logs.configure(verbose=True, stream=stream)
    logging.getLogger("agents").info("said [bold]x[/] \x1b[2J api_key=%s", "hunter2")
    shown = stream.getvalue()
    assert "[bold]x[/]" in shown
    assert "\x1b[2J" not in shown
    assert "hunter2" not in shown


def test_client_libraries_do_not_log_their_requests() -> None:
    stream = io.StringIO()
    logs.configure(verbose=True, stream=stream)
    logging.getLogger("httpx").info("POST https://api.example/v1?key=x")
    assert stream.getvalue() == ""
