"""What a test may ask of EC2's face besides what every cloud has; control.py is the other end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.cloud.controls import Controls
from tests.cloud.faces.ec2.account import Account


class Ec2Controls(Controls):
    def __init__(self, account: Account) -> None:
        super().__init__(account.world)
        self._account = account

    def score(self, zone: str, score: int) -> None:
        self._account.scores[zone] = score

    def reservation(self, told: dict[str, Any]) -> None:
        if "EndDate" in told:
            told |= {"EndDate": datetime.fromisoformat(told["EndDate"])}
        self._account.reservations.append(told)

    def parameter(self, name: str, image: str) -> None:
        self._account.images.put(name, image)
