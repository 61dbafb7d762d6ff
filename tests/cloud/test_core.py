"""What is true of every cloud names none: a cloud's words are in its face."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.test_clouds_are_folders import _VENDORS, _words

ROOT = Path(__file__).parent
_LIBRARIES = re.compile(r"(?<![a-z])(moto|boto3|botocore|imds|ebs|ami)(?![a-z])", re.IGNORECASE)


def test_the_core_names_no_cloud() -> None:
    files = [each for each in ROOT.rglob("*.py") if "faces" not in each.relative_to(ROOT).parts]
    assert len(files) > 20
    found = [
        f"{path}:{line}: {word}"
        for path in files
        if path != Path(__file__)
        for line, word in _words(ast.parse(path.read_text()))
        if _VENDORS.search(word) or _LIBRARIES.search(word)
    ]
    assert found == []


def test_the_face_of_tables_names_no_cloud() -> None:
    found = [
        f"{path}:{line}: {word}"
        for path in (ROOT / "faces/rest").glob("*.py")
        for line, word in _words(ast.parse(path.read_text()))
        if _VENDORS.search(word)
    ]
    assert found == []
