"""stub"""

from tradewind.policy.base import Policy
from tradewind.spot.cases import Case
from tradewind.spot.simulate import Outcome


def simulate(case: Case, policy: Policy, number: int) -> Outcome:
    raise NotImplementedError
