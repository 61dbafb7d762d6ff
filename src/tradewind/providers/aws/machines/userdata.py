"""What a machine of EC2 is told at its launch (boot/told.py), in what EC2 takes of it."""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.model.boot import Boot
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage

MOST_BYTES = 16384
_WHO = "tradewind.providers.aws"
_ENVIRONMENT = {
    # With that of Amazon's PyTorch image.
    "PATH": "/opt/pytorch/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    # The metadata service is asked again where it does not answer at once: without it a machine is
    # nobody.
    "AWS_METADATA_SERVICE_NUM_ATTEMPTS": "10",
    "AWS_METADATA_SERVICE_TIMEOUT": "5",
}


def script(boot: Boot, luggage: Luggage) -> str:
    return told.script(boot, _with_ours(luggage), _WHO)


def user_data(boot: Boot, luggage: Luggage) -> bytes:
    return told.compressed(boot, _with_ours(luggage), _WHO, MOST_BYTES)


def _with_ours(luggage: Luggage) -> Luggage:
    return replace(luggage, environment=_ENVIRONMENT | luggage.environment)
