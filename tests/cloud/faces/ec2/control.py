"""The test's end of the equipment with EC2's face."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cloud import control, server
from tests.eventually import eventually

KEY, SECRET = "AKIAEQUIPMENT0000000", "secret-of-nobody"


@contextmanager
def running(folder: Path, bodies: str = "none") -> Iterator[Control]:
    """See server.running."""
    with server.running(folder, "tests.cloud.faces.ec2.face", Control, bodies) as cloud:
        yield cloud


class Control(control.Control):
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

    def fail(
        self,
        action: str,
        code: str = "RequestLimitExceeded",
        *,
        count: int = 1,
        message: str = "Request limit exceeded.",
        status: int | None = None,
        after: bool = False,
    ) -> None:
        super().fail(action, code, count=count, message=message, status=status, after=after)

    def lose(self, action: str = "RunInstances", count: int = 1) -> None:
        """The next answers. boto3 asks again by itself: lose as many as it has attempts."""
        super().lose(action, count)

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
        keys = {"access_key": access_key, "secret_key": secret_key, "token": token}
        self.dials(credentials=keys)

    # -- what happens, and looking -----------------------------------------------------------------

    def rebalance(self, instance_id: str) -> None:
        """A rebalance recommendation."""
        self.warn(instance_id)

    def state(self, machine_id: str, region: str = "us-east-1") -> str:
        """As DescribeInstances tells it."""
        told = self.client("ec2", region).describe_instances(InstanceIds=[machine_id])
        return str(told["Reservations"][0]["Instances"][0]["State"]["Name"])

    def wait(self, machine_id: str, state: str, region: str = "us-east-1") -> None:
        eventually(lambda: self.state(machine_id, region) == state)
