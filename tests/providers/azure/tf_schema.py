"""What Terraform's provider for Azure knows of the few resources that we print: tf_azurerm.json,
read from `@cdktf/provider-azurerm` as tests/providers/gcp/tf_google.json is from Google's."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.providers.gcp.tf_schema import Schema


@cache
def schema() -> Schema:
    return Schema("azurerm", Path(__file__).with_name("tf_azurerm.json"))
