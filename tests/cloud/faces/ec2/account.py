"""What EC2 alone has: groups, reservations, profiles, spot requests, and the request at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from tests.cloud.dials import Dials
from tests.cloud.faces.ec2.images import Images
from tests.cloud.world import World


@dataclass
class Ec2Dials(Dials):
    iam_lag_s: float = 0.0
    """For so long a launch does not know an instance profile that was given its role just now."""
    group_lag_s: float = 0.0
    """For so long a new placement group is pending, and no launch knows it."""
    credentials: dict[str, str] = field(default_factory=dict)
    """What the metadata gives as keys of a role: access_key, secret_key, token."""


@dataclass
class Account:
    world: World
    images: Images = field(default_factory=Images)
    groups: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    reservations: list[dict[str, Any]] = field(default_factory=list)
    profiles: dict[str, float] = field(default_factory=dict)
    """When each instance profile got its role."""
    requests: dict[str, Any] = field(default_factory=dict)
    """Spot requests, by machine."""
    scores: dict[str, int] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    """The form of the request that is being answered."""
    ending_at: float | None = None
    """When the machine ended whose end moto is being shown."""

    @property
    def dials(self) -> Ec2Dials:
        return cast(Ec2Dials, self.world.dials)

    def score(self, zones: tuple[str, ...]) -> int:
        for zone in zones:
            if zone in self.scores:
                return self.scores[zone]
        return 9 if self.world.market.room(zones) > 0 else 1
