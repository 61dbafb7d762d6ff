"""No file but those of its own folder names a cloud in code: a new one is a folder and a line of
providers/registry.py. What is written for people (sentences, docstrings, comments) may name them,
and so may the catalog, whose data they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tradewind

ROOT = Path(tradewind.__file__).parent
_VENDORS = re.compile(
    r"(?<![a-z])(aws|ec2|amazon|gcp|gce|google|azure|oci|ibm|lambda_cloud|runpod|vast)(?![a-z])",
    re.IGNORECASE,
)
ALLOWED = {
    "providers/registry.py": "one line each",
    "catalog": "its data, and where it is fetched from",
    "model/buckets.py": "schemes of URLs: whose buckets they are, and their variables",
    "store/handles.py": "buckets are opened by those variables, wherever one is",
    "store/lending": "a file a kind of bucket: each lends by its own protocol",
    "supervisor/loopback.py": "variables by which SDKs of that kind of bucket ask for credentials",
    "store/googlekeys.py": "who opens such a bucket is found out by its maker's library",
    "store/objects.py": "what a library says where it looks for a login in vain",
    "model/secrets.py": "words of workload files: where a secret is kept",
    "supervisor/secretfiles.py": "files of logins that must not be sent",
    "workload/fields.py": "an example in a workload file",
    "model/workload.py": "as that",
    "export/kinds/sagemaker.py": "a service of one cloud, of which the kind is",
    "export/kinds/batch.py": "as that",
    "export/kinds/vertex.py": "as that",
    "export/kinds/azureml.py": "as that",
    "pictures/timeline.py": "makers of chips, as the catalog names them",
}


def _files() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(tuple(ALLOWED))
        and path.relative_to(ROOT).parts[:2] not in _FOLDERS
    ]


_FOLDERS = {
    ("providers", path.name) for path in (ROOT / "providers").iterdir() if path.is_dir()
} - {("providers", "boot")}


def _words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names, and texts that are no sentences."""
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in said and " " not in node.value.strip():
                yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def test_no_cloud_is_named_outside_its_folder() -> None:
    found = [
        f"{path}:{line}: {word}"
        for path in _files()
        for line, word in _words(ast.parse(path.read_text()))
        if _VENDORS.search(word)
    ]
    assert found == []


def test_every_exception_is_still_one() -> None:
    for name in ALLOWED:
        paths = [p for p in ROOT.rglob("*.py") if str(p.relative_to(ROOT)).startswith(name)]
        words = [word for path in paths for _, word in _words(ast.parse(path.read_text()))]
        assert any(_VENDORS.search(word) for word in words), name
