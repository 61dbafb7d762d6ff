"""Nothing that another process or person wrote is unpickled: a pickle runs what it says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind

SOURCES = (
    Path(tradewind.__file__).parent,
    Path(__file__).parents[1] / "examples",
    Path(__file__).parents[1] / "tools",
)
# torch.distributed's, which unpickle what the other ranks send.
COLLECTIVES = {
    "all_gather_object",
    "all_gather_object_enforce_type",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
}
MODULES = {"cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve"}
# Of the module pickle: what reads. What only writes is fine.
READERS = {"Unpickler", "load", "loads", "_Unpickler", "_load", "_loads"}


def unsafe(source: str) -> list[str]:
    """What in it could unpickle, with its line."""
    return [f"{line}: {what}" for line, what in _found(ast.parse(source))]


def _found(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in MODULES:
                    yield node.lineno, alias.name
                if alias.name == "pickle" and alias.asname:
                    yield node.lineno, "pickle under another name"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                reader = node.module in ("pickle", "torch", "numpy") and alias.name in READERS
                if reader or node.module in MODULES or alias.name in COLLECTIVES:
                    yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Attribute):
            if node.attr in COLLECTIVES:
                yield node.lineno, node.attr
            elif node.attr in READERS and ast.unparse(node.value) == "pickle":
                yield node.lineno, f"pickle.{node.attr}"
        elif isinstance(node, ast.Call):
            yield from _called(node)


def _called(node: ast.Call) -> Iterator[tuple[int, str]]:
    said = {each.arg: each.value for each in node.keywords}
    called = ast.unparse(node.func)
    if called == "torch.load" and not _is(said.get("weights_only"), True):
        yield node.lineno, "torch.load without weights_only=True"
    if "allow_pickle" in said and not _is(said["allow_pickle"], False):
        yield node.lineno, "allow_pickle"
    if called in ("np.load", "numpy.load") and "allow_pickle" not in said:
        yield node.lineno, "numpy.load without allow_pickle=False"


def _is(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


@pytest.mark.parametrize("folder", SOURCES, ids=lambda folder: folder.name)
def test_no_code_of_ours_unpickles(folder: Path) -> None:
    files = sorted(folder.rglob("*.py"))
    assert files
    found = {path: unsafe(path.read_text()) for path in files}
    assert {str(path): what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import torch.distributed as dist\ndist.all_gather_object(a, b)",
        "from torch.distributed import broadcast_object_list",
        "import pickle\npickle.loads(data)",
        "import pickle\nclass Mine(pickle.Unpickler): ...",
        "import pickle as p",
        "from pickle import loads",
        "import dill",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_what_unpickles_is_found(source: str) -> None:
    assert unsafe(source)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle\npickle.dumps(value)",
        "torch.load(path, weights_only=True)",
        "np.load(path, allow_pickle=False)",
        "json.loads(data)",
    ],
)
def test_what_does_not_is_let_be(source: str) -> None:
    assert not unsafe(source)
