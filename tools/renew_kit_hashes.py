"""Writes supervisor/kit_hashes.json: what the wheels that machines are sent must hash to.

    .venv/bin/python tools/renew_kit_hashes.py

For each compiled package of the kit, every version that pyproject.toml admits and PyPI has not
withdrawn, for Linux on the processors that we know. Run it when a new version of one comes out; who
reviews the change compares some of the hashes with pypi.org.
"""

import json
import re
import tomllib
import urllib.request
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "src" / "tradewind" / "supervisor" / "kit_hashes.json"
PACKAGES = ("msgspec", "obstore")
SYSTEM = re.compile(r"manylinux.*_(x86_64|aarch64)")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cloud"]]
    admitted = {each.name: each.specifier for each in map(Requirement, wanted)}
    found = {}
    for name in PACKAGES:
        with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=60) as answer:
            releases = json.load(answer)["releases"]
        versions = sorted(filter(admitted[name].contains, releases), key=Version)
        found[name] = {version: _wheels(releases[version]) for version in versions}
        found[name] = {version: wheels for version, wheels in found[name].items() if wheels}
    TARGET.write_text(json.dumps(found, indent=1) + "\n")
    print({name: list(versions) for name, versions in found.items()})  # noqa: T201


def _wheels(files: list[dict]) -> dict[str, str]:
    return {
        file["filename"]: file["digests"]["sha256"]
        for file in sorted(files, key=lambda each: each["filename"])
        if file["packagetype"] == "bdist_wheel"
        and not file["yanked"]
        and _is_used(file["filename"])
    }


def _is_used(filename: str) -> bool:
    """By a machine: Python 3.11 or newer with its lock, on Linux."""
    for tag in parse_wheel_filename(filename)[3]:
        python = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        if python and not tag.abi.endswith("t") and SYSTEM.fullmatch(tag.platform):
            return tag.abi == "abi3" or int(python[1]) >= 11
    return False


if __name__ == "__main__":
    main()
