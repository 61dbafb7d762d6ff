"""What Terraform's provider for Google Cloud knows of the few resources that we print.

`@cdktf/provider-google` is generated from the provider's schema, by HashiCorp, and weighs 30 MB:
tf_google.json is what it says of these resources, read by tests/providers/aws/tf_schema.py. Each
field is its kind, whether it is required, whether it is a block, whether that may be there often.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.providers.aws.tf_schema import Field, Fields, Thing

TABLE = Path(__file__).with_name("tf_google.json")


class Schema:
    def __init__(self, name: str, table: Path) -> None:
        told = json.loads(table.read_text("utf-8"))
        self.name = name
        self.version: str = told["version"]
        self._things = {name: _thing(each) for name, each in told["things"].items()}

    def resource(self, name: str) -> Thing | None:
        return self._things.get(name)

    def data(self, name: str) -> Thing | None:
        return self._things.get(f"data.{name}")

    def provider(self) -> Thing:
        return self._things[self.name]


@cache
def schema() -> Schema:
    return Schema("google", TABLE)


def _thing(told: dict[str, Any]) -> Thing:
    shapes = {name: _fields(each) for name, each in told["shapes"].items()}
    return Thing(_fields(told["fields"]), shapes, told["outputs"])


def _fields(told: dict[str, Any]) -> Fields:
    return {name: Field(*each) for name, each in told.items()}
