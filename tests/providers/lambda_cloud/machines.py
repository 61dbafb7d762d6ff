"""A provider of Lambda on the equipment (tests/cloud), as several processes open it."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from tests.cloud.control import Control
from tests.cloud.faces.rest.asking import ask
from tests.cloud.faces.rest.face import KEY
from tests.lifecycle.builders import WAY
from tradewind.model.run import Request, Way
from tradewind.providers.boot.luggage import Luggage
from tradewind.providers.lambda_cloud.api import Api
from tradewind.providers.lambda_cloud.facts import FACTS
from tradewind.providers.lambda_cloud.footprint import Footprint
from tradewind.providers.lambda_cloud.provider import LambdaProvider
from tradewind.providers.rest import Pace

KIND, REGION = "gpu_1x_a10", "us-west-1"
SSH_KEY = {"name": "mine", "public_key": "ssh-ed25519 AAAA me"}


def way(**more: Any) -> Way:
    fixed = replace(
        WAY,
        provider="lambda",
        region=REGION,
        zone="",
        instance_type=KIND,
        market="on_demand",
        price=750_000,
        facts=FACTS,
    )
    return replace(fixed, **more)


def env(url: str, key: str = KEY) -> dict[str, str]:
    return {"LAMBDA_API_KEY": key, "LAMBDA_CLOUD_BASE_URL": url}


def footprint(control: Control, **more: Any) -> Footprint:
    keys = ask(control, "GET", "/api/v1/ssh-keys")[1]["data"]
    if not keys:
        keys = [ask(control, "POST", "/api/v1/ssh-keys", SSH_KEY)[1]["data"]]
    made = Footprint(
        ssh_key=SSH_KEY["name"],
        ssh_key_id=keys[0]["id"],
        regions=(REGION, "us-east-1"),
        bucket_provider="aws",
        bucket_region="us-west-1",
    )
    return replace(made, **more)


def packed(request: Request, architecture: str) -> Luggage:
    tell = tuple(f"https://b/tell/{rank}" for rank in range(request.way.nodes))
    return Luggage(
        kit="https://b/kit", sha256="0" * 64, tell=tell, environment={"ARCH": architecture}
    )


def argument(url: str, made: Footprint, owner: str) -> str:
    return json.dumps([url, made.encoded().decode(), owner])


def open_lambda(given: str) -> LambdaProvider:
    from tradewind.providers.lambda_cloud.footprint import decoded

    url, record, owner = json.loads(given)
    return LambdaProvider(Api(env(url), Pace({})), decoded(record.encode()), owner, packed)
