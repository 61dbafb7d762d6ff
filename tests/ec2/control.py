"""The test's end of the equipment: what it can turn, make happen, and look at."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

from tests.eventually import eventually

KEY, SECRET = "AKIAEQUIPMENT0000000", "secret-of-nobody"


class Control:
    """`url` is AWS's endpoint, and control's. `host` is an address of this computer that bodies
    reach too: bind to it what they need."""

    def __init__(self, url: str) -> None:
        self.url = url
        status = self._do("status")
        self.host: str = status["host"]
        self.bodies: str = status["bodies"]
        """none, process or netns."""

    @property
    def env(self) -> dict[str, str]:
        """Leads every tool of AWS to the equipment, and none to anybody's account. S3 too: set
        AWS_ENDPOINT_URL_S3 for a real server of it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "TRADEWIND_PLAIN_HTTP": self.host,  # with bodies in namespaces it is not on loopback
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    def client(self, service: str, region: str = "us-east-1", attempts: int = 1) -> Any:
        import boto3
        from botocore.config import Config

        return boto3.client(
            service,
            region_name=region,
            endpoint_url=self.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(retries={"mode": "standard", "total_max_attempts": attempts}),
        )

    # -- dials -------------------------------------------------------------------------------------

    def dials(self, **settings: Any) -> None:
        """lag_s, iam_lag_s, pending_s, shutting_down_s, speed, body_env; see dials.py."""
        self._do("dials", **settings)

    def capacity(
        self, most: int | None, *, zone: str = "*", kind: str = "*", market: str = "*"
    ) -> None:
        """None: no limit of these any more. The market is spot or on-demand."""
        self._do("capacity", most=most, zone=zone, kind=kind, market=market)

    def quota(self, code: str, value: float, region: str = "*") -> None:
        self._do("quota", code=code, value=value, region=region)

    def fail(
        self,
        action: str,
        code: str = "RequestLimitExceeded",
        *,
        count: int = 1,
        message: str = "Request limit exceeded.",
        status: int | None = None,
    ) -> None:
        self._do("fail", action=action, code=code, count=count, message=message, status=status)

    def lose(self, action: str = "RunInstances", count: int = 1) -> None:
        """The next answers. boto3 asks again by itself: lose as many as it has attempts."""
        self._do("lose", action=action, count=count)

    def on_demand_price(self, kind: str, usd_hour: float, region: str = "*") -> None:
        self._do("on_demand_price", kind=kind, usd_hour=usd_hour, region=region)

    def spot_price(self, kind: str, zone: str, usd_hour: float, at: float | None = None) -> None:
        self._do("spot_price", kind=kind, zone=zone, usd_hour=usd_hour, at=at)

    def zone_names(self, region: str = "us-east-1") -> dict[str, str]:
        """By the zones' ids: prices are told by name."""
        told = self.client("ec2", region).describe_availability_zones()["AvailabilityZones"]
        return {each["ZoneId"]: each["ZoneName"] for each in told}

    def score(self, zone: str, score: int) -> None:
        """Of a zone (its id or name) or a region."""
        self._do("score", zone=zone, score=score)

    def reservation(self, region: str, **told: Any) -> None:
        """As DescribeCapacityReservations tells one."""
        self._do("reservation", told={"Region": region, **told})

    def parameter(self, name: str, image: str) -> None:
        self._do("parameter", name=name, image=image)

    def credentials(self, access_key: str, secret_key: str, token: str = "") -> None:
        """That roles of machines get: those of the S3 server."""
        self._do("credentials", access_key=access_key, secret_key=secret_key, token=token)

    def expose(self, port: int) -> str:
        """What listens on 127.0.0.1:port becomes reachable for bodies; the URL of it."""
        return str(self._do("expose", port=port))

    def s3(self, port: int) -> str:
        """A door before the S3 server at 127.0.0.1:port: bodies reach it, and `bill` tells what
        each of them has asked there. Its URL."""
        return str(self._do("s3", port=port))

    # -- what happens ------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        self._do("advance", seconds=seconds)

    def trace(self, zone: str, trace: Iterable[tuple[float, int]], speed: float = 1.0) -> None:
        self._do("trace", zone=zone, trace=list(trace), speed=speed)

    def interrupt(self, instance_id: str, notice_s: float | None = None) -> None:
        self._do("interrupt", instance_id=instance_id, notice_s=notice_s)

    def rebalance(self, instance_id: str) -> None:
        self._do("rebalance", instance_id=instance_id)

    def crash(self, instance_id: str) -> None:
        self._do("crash", instance_id=instance_id)

    # -- looking -----------------------------------------------------------------------------------

    def now(self) -> float:
        return float(self._do("status")["now"])

    def bill(self) -> Any:
        return self._do("bill")

    def left(self) -> list[str]:
        return list(self.bill()["left"])

    def everything(self) -> Any:
        return self._do("everything")

    def calls(self, action: str = "") -> list[Any]:
        made = self._do("calls")
        return [each for each in made if not action or each["action"] == action]

    def alive(self, instance_id: str) -> list[tuple[int, str]]:
        """Processes of a body, but its own first one: pid and command."""
        return [(pid, command) for pid, command in self._do("alive", instance_id=instance_id)]

    def end_all(self, region: str = "us-east-1") -> None:
        """What a test has left."""
        alive = [each["id"] for each in self.bill()["machines"] if each["ended"] is None]
        if alive:
            self.client("ec2", region).terminate_instances(InstanceIds=alive)

    def console(self, instance_id: str) -> str:
        return str(self._do("console", instance_id=instance_id))

    def state(self, instance_id: str, region: str = "us-east-1") -> str:
        told = self.client("ec2", region).describe_instances(InstanceIds=[instance_id])
        return str(told["Reservations"][0]["Instances"][0]["State"]["Name"])

    def wait(self, instance_id: str, state: str, region: str = "us-east-1") -> None:
        eventually(lambda: self.state(instance_id, region) == state)

    def wait_console(self, instance_id: str, text: str) -> str:
        try:
            eventually(lambda: text in self.console(instance_id))
            return self.console(instance_id)
        except AssertionError:
            raise AssertionError(f"no {text!r} in {self.console(instance_id)!r}") from None

    def _do(self, control: str, /, **asked: Any) -> Any:
        body = json.dumps(asked).encode()
        try:
            with urllib.request.urlopen(
                f"{self.url}/_control/{control}", body, timeout=60
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from None
