"""What must never be in world/ and policies/, found in the syntax tree rather than in the text."""

from __future__ import annotations

import ast
from collections.abc import Set
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEVER = {"random", "uuid", "pickle"}
EDGE_ONLY = {"time", "datetime", "secrets", "socket", "threading", "subprocess"}
BANNED_CALLS = {
    "dot", "matmul", "vdot", "inner", "tensordot", "default_rng", "RandomState",
    "eval", "exec", "compile", "__import__",
}  # fmt: skip
# The store talks to a server with deadlines, and importers read files with dates in them.
EDGES = ("world/store/", "world/importers/")
# re.compile compiles a pattern, not code.
ALLOWED_OWNERS = {"re"}
# Scratch buffers of the noise belong to one thread each; no value depends on them.
ALLOWED_IMPORTS = {"world/noise.py": {"threading"}}


def faults(source: str, edge: bool = False, allowed: Set[str] = frozenset()) -> list[str]:
    """Every banned construct in one source text, as ``line: what``."""
    found = []
    modules = (NEVER if edge else NEVER | EDGE_ONLY) - allowed
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            found.append(f"{line}: @")
        elif isinstance(node, ast.Import):
            found.extend(
                f"{line}: import {name.name}"
                for name in node.names
                if name.name.split(".")[0] in modules or name.name == "numpy.linalg"
            )
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            banned = {alias.name for alias in node.names} & BANNED_CALLS
            if (node.level == 0 and module in modules) or (module == "numpy" and banned):
                found.append(f"{line}: from {node.module} import")
        elif isinstance(node, ast.Call):
            name, owner = "", ""
            if isinstance(node.func, ast.Attribute):
                name = node.func.attr
                owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            elif isinstance(node.func, ast.Name):
                name = node.func.id
            if name in BANNED_CALLS and owner not in ALLOWED_OWNERS:
                found.append(f"{line}: {name}()")
        elif isinstance(node, ast.Attribute) and node.attr == "linalg":
            found.append(f"{line}: linalg")
    return found


def pure_files() -> list[str]:
    files = [*(ROOT / "world").rglob("*.py"), *(ROOT / "policies").rglob("*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


@pytest.mark.parametrize("name", pure_files())
def test_a_pure_file_holds_no_matrix_product_no_clock_and_no_global_generator(name: str) -> None:
    source = (ROOT / name).read_text(encoding="utf-8")
    allowed = ALLOWED_IMPORTS.get(name, frozenset())
    assert faults(source, name.startswith(EDGES), allowed) == []


@pytest.mark.parametrize(
    "source",
    [
        "c = a @ b",
        "a @= b",
        "import numpy as np\nnp.dot(a, b)",
        "a.dot(b)",
        "from numpy import matmul",
        "np.linalg.norm(a)",
        "import random",
        "from random import choice",
        "import uuid",
        "import pickle",
        "import time",
        "from time import monotonic",
        "np.random.default_rng()",
        "eval('1')",
    ],
)
def test_the_lint_finds_each_banned_construct(source: str) -> None:
    assert faults(source)


def test_an_edge_may_read_a_clock_and_still_no_global_generator() -> None:
    assert faults("import time", edge=True) == []
    assert faults("import random", edge=True)
    assert faults("c = a @ b", edge=True)


@pytest.mark.parametrize(
    "source",
    [
        "import re\nre.compile('a')",
        "@decorator\ndef f(): ...",
        "np.einsum('ij,j->i', a, b)",
        "step_time = 3",
    ],
)
def test_the_lint_lets_what_is_allowed_pass(source: str) -> None:
    assert faults(source) == []
