"""Whole episodes with four personas that speak through a real, if tiny, language model.

What is tested is the way: valid proposals, usage counted, trace complete, playback identical.
The model is far too small for its decisions to mean anything.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.llm_rooms import SEATS, with_every
from tests.support.local_model import local_model, missing
from tests.support.program import warroom

pytestmark = [
    pytest.mark.llm,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is a model"),
]

# Short words for a model that reads some hundred tokens a second.
WORDS = (
    "backend.timeout_s=300",
    "model.max_tokens=240",
    "model.temperature=0",
    "model.seed=7",
    "prompt.options=1",
    "prompt.reason_chars=60",
    "prompt.max_chars=2000",
    'prompt.system="Your seat is $seat: $title. Answer with one JSON object."',
    'prompt.user="Step $step of $horizon.\\n$metrics\\n$objectives\\n$catalogue"',
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with local_model() as address:
        yield address


@pytest.mark.parametrize(("scenario", "steps"), [("cloudedge/hard", 5), ("cloud/easy", 2)])
def test_an_episode_with_a_real_model_is_whole_and_can_be_played_back(
    endpoint: str, tmp_path: Path, scenario: str, steps: int
) -> None:
    changes = [word for words in WORDS for entry in with_every(words) for word in ("--set", entry)]
    common = ("run", "--scenario", scenario, "--steps", str(steps), *changes, "--json")
    priced = (*common, "--usd-per-mtok", "0/0")
    live = warroom(
        *priced,
        "--model",
        "smollm2",
        "--base-url",
        endpoint,
        "--record",
        "kept",
        cwd=tmp_path,
        limit_s=1200,
    )
    assert live.status == 0, live.err
    result = live.document
    assert result["stop_reason"] == "horizon"
    assert result["usage"]["calls"] >= 4 * steps
    assert result["usage"]["tokens_in"] > 0
    assert result["usage"]["tokens_out"] > 0
    events = [json.loads(line) for line in (tmp_path / result["trace"]).read_text().splitlines()]
    calls = [event for event in events if event["type"] == "llm_call"]
    assert [event["agent"] for event in calls] == list(SEATS) * steps
    said = [event for event in calls if event["data"]["outcome"] == "ok"]
    assert len(said) >= len(calls) // 2, [event["data"]["outcome"] for event in calls]
    verified = warroom("trace", "verify", "last", "--json", cwd=tmp_path)
    assert verified.document["ok"] is True
    again = warroom(*priced, "--playback", "kept", cwd=tmp_path)
    assert again.status == 0, again.err
    assert again.document["trace_sha"] == result["trace_sha"]
    assert again.document["usage"] == result["usage"]
