"""Workloads for tests, and YAML as an editor's validator sees it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.catalog.small import REAL
from tradewind import workload

ROOT = Path(__file__).parent.parent.parent
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
KNOWN = workload.known_names(REAL)
EXAMPLES = sorted((ROOT / "examples").glob("*/work.yaml"))

TRAIN = "train: {model: llama-3.1-8b, tokens: 10B, sequence: 8192, global_batch: 512}\n"
WORK = "work: {hours: 12, on: 1xA100-80GB}\n"
FULL = (ROOT / "docs" / "workload.md").read_text().split("```yaml\n")[1].split("```")[0]


def read(text: str, **more: Any) -> workload.Workload:
    given: dict[str, Any] = {"now": NOW, "known": KNOWN} | more
    return workload.read(text, "w.yaml", **given)


class _Core(yaml.SafeLoader):
    """YAML 1.2's few plain kinds: `on` and `2026-12-01` are text, as for every editor."""


_Core.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", ["n", "~", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Core.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first)
    )


def as_data(text: str) -> Any:
    return yaml.load(text, _Core)  # noqa: S506
