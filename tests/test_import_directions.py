"""Imports point one way: the rooms of the house and which may look into which."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tradewind
from tradewind.providers import registry

ROOT = Path(tradewind.__file__).parent
BASE = {"base"}

# package → the packages it may import from, besides the base and itself.
MAY = {
    "base": set(),
    "model": BASE,
    "catalog": BASE | {"model"},
    "pictures": BASE | {"model", "catalog", "economics"},
    "estimate": BASE | {"model"},
    "telemetry": BASE | {"model"},
    "torch": BASE | {"model", "store", "telemetry"},
    "workload": BASE | {"model", "catalog", "estimate"},
    "policy": BASE | {"model"},
    "spot": BASE | {"model", "policy"},
    "web": BASE | {"model", "report", "economics"},
    "store": BASE | {"model"},
    "lifecycle": BASE | {"model", "policy"},
    "journal": BASE | {"model", "store", "lifecycle"},
    "ledger": BASE | {"model"},
    "economics": BASE | {"model", "catalog", "ledger"},
    "report": BASE | {"model", "lifecycle", "ledger", "spot"},
    "providers": BASE | {"model", "store"},
    "controller": BASE
    | {"model", "store", "journal", "policy", "lifecycle", "providers", "ledger", "services"},
    "supervisor": BASE | {"model", "store", "journal", "policy", "telemetry", "providers", "front"},
    "services": BASE | {"model"},
    "sim": BASE
    | {"model", "store", "journal", "policy", "lifecycle", "ledger", "providers"}
    | {"controller", "supervisor", "services", "catalog", "estimate", "planning", "spot"},
    "measure": BASE,
    "front": BASE | {"model"},
    "batch": BASE | {"model", "store"},
    "planning": BASE | {"model", "catalog", "estimate", "policy", "economics"},
    "bench": BASE
    | {"model", "catalog", "estimate", "torch", "planning", "workload", "store", "journal"}
    | {"controller", "providers", "lifecycle", "telemetry", "front"},
    "api": BASE
    | {"model", "catalog", "planning", "workload", "store", "journal", "lifecycle", "ledger"}
    | {"providers", "controller", "supervisor", "report", "services", "front", "telemetry"},
    "upkeep": BASE
    | {"model", "store", "journal", "lifecycle", "ledger", "providers", "controller", "api"},
    "export": BASE | {"model", "catalog", "planning", "providers"},
    "demo": BASE | {"model", "catalog", "api", "store", "providers", "report", "journal"},
    "__main__": {"cli"},
    "__init__": BASE | {"api", "catalog", "model", "workload", "planning", "web"},
}  # type: dict[str, set[str]]
MAY["cli"] = set(MAY) - {"__main__", "__init__"}

# Pure rooms read no clock and touch no file: not even through the base.
PURE = [
    "model",
    "policy",
    "lifecycle",
    "services",
    "ledger",
    "report",
    *(f"export/{name}.py" for name in ("exported", "asked", "header", "launch", "making")),
    "export/kinds",
    "telemetry/diagnose.py",
    "telemetry/advice.py",
    "telemetry/exposition.py",
    "telemetry/measured.py",
    "telemetry/dashboard.py",
    "export/foreign",
    "export/pipeline.py",
    "supervisor/decide.py",
    "supervisor/exits.py",
    *(f"front/{name}.py" for name in ("routes", "told", "config", "changes", "stats", "requests")),
    *(
        f"catalog/{name}.py"
        for name in ("names", "table", "query", "doubts", "facts", "refresh/merge")
    ),
    *(
        f"workload/{name}.py"
        for name in ("known", "kinds", "shapes", "fields", "synonyms", "reader", "schema")
    ),
]
BANNED_IN_PURE = {
    "clock",
    "ownfiles",
    "os",
    "pathlib",
    "io",
    "subprocess",
    "socket",
    "urllib3",
    "time",
}

# Parts that only some users install, and the ones that cost too much to start with.
HEAVY = set("torch boto3 botocore matplotlib numpy google azure kubernetes obstore".split())


def _files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def _room(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def _imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """Absolute dotted names of what the file imports, `from x import y` as x.y."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_look_only_where_they_may(path: Path) -> None:
    room = _room(path)
    assert room in MAY, f"{room} is a new room: say in this test what it may import"
    for name in _imports(path):
        if not name.startswith("tradewind."):
            continue
        other = name.split(".")[1]
        if other in ("__version__", room):
            continue
        assert other in MAY[room], f"{path.name} imports {name}: {room} may not look into {other}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Also not for types only: two files that name each other are one idea, or miss a protocol."""
    names = {_module(path): path for path in _files()}
    imports = {
        name: {
            found for each in _imports(path) if (found := _within(each, names)) and found != name
        }
        for name, path in names.items()
    }
    circle: list[str] = []
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1]))
    assert circle == []


def _module(path: Path) -> str:
    return ".".join(("tradewind", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def _within(name: str, modules: Container[str]) -> str:
    """The module that an imported name is or lies in; the package itself only hands names on."""
    found = name if name in modules else name.rpartition(".")[0]
    return found if found in modules and found != "tradewind" else ""


def test_pure_rooms_do_no_io() -> None:
    for place in PURE:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for name in _imports(file):
                ours = name.removeprefix("tradewind.").removeprefix("base.").split(".")[0]
                assert ours not in BANNED_IN_PURE, f"{file} imports {name}"


def test_workloads_are_read_without_a_catalog() -> None:
    """Names come as arguments; only the room's rim may fetch them."""
    for path in sorted((ROOT / "workload").glob("*.py")):
        for name in _imports(path):
            ours = name.removeprefix("tradewind.").split(".")[0]
            assert path.stem == "files" or ours not in ("catalog", "estimate"), (path, name)


def test_no_heavy_import_at_the_top_of_a_file() -> None:
    for path in _files():
        for name in _imports(path, top_level_only=True):
            assert name.split(".")[0] not in HEAVY, f"{path}: import {name} where it is used"


def test_clouds_do_not_know_each_other() -> None:
    """What they share lies beside their folders."""
    folders = set(registry.CLOUDS.values())
    for folder in folders:
        for path in sorted((ROOT / "providers" / folder).rglob("*.py")):
            for name in _imports(path):
                if name.startswith("tradewind.providers."):
                    assert name.split(".")[2] not in folders - {folder}, (path, name)


def test_kinds_of_exports_do_not_know_each_other() -> None:
    """What they share lies beside their folder."""
    folder = ROOT / "export" / "kinds"
    for path in sorted(folder.rglob("*.py")):
        mine = path.relative_to(folder).parts[0].removesuffix(".py")
        for name in _imports(path):
            if name.startswith("tradewind.export.kinds."):
                assert name.split(".")[3] == mine, (path, name)


def test_price_sources_do_not_import_each_other() -> None:
    shared = {"base", "ecb", "http", "known", "merge"}
    folder = ROOT / "catalog" / "refresh"
    sources = {p.stem for p in folder.glob("*.py")} - shared - {"__init__"}
    for path in folder.glob("*.py"):
        for name in _imports(path):
            if not name.startswith("tradewind.catalog.refresh."):
                continue
            other = name.split(".")[3]
            own_table = other.startswith(path.stem)  # gcp may read gcp_machines
            assert path.stem == "__init__" or own_table or other not in sources, (path, name)
