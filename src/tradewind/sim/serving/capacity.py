"""What one replica takes inside its target, by the same estimate that plans are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.catalog import Catalog
from tradewind.estimate.serving import load, queue, served, steps
from tradewind.estimate.serving.answer import Question, check
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import fitted
from tradewind.estimate.serving.mix import Mix
from tradewind.planning.serving import layouts
from tradewind.services.replay import Replicas


@dataclass(frozen=True, slots=True)
class Service:
    model: str = "llama-3.1-8b"
    accelerator: str = "L40S"
    ttft_s: float = 1.0
    tpot_s: float = 0.06
    cold_s: int = 180
    goal: float = 0.99
    """Of requests, inside the target."""

    @property
    def words(self) -> str:
        return (
            f"{self.model} on one {self.accelerator}, TTFT {self.ttft_s:g} s, TPOT"
            f" {1e3 * self.tpot_s:g} ms for {100 * self.goal:g} % of requests,"
            f" {self.cold_s} s to come up"
        )


class Capacity:
    def __init__(self, service: Service, catalog: Catalog) -> None:
        self.service = service
        chip = catalog.accelerators[service.accelerator]
        question = Question(model=served.find(service.model), accelerator=chip)
        engine, weights, tp = check(question)
        self._cases = Cases.of(load.case(question, engine, weights, tp))
        self.work = cache(self._work)
        self.price = _price(catalog, service.accelerator)

    def _work(self, mix: Mix) -> float:
        """Replica-seconds of a request."""
        rate = float(layouts.most_rate(self._table(mix), mix, self._targets, 1.0)[0])
        if not rate:
            raise InvalidValue(
                f"{self.service.model} on one {self.service.accelerator} does not answer prompts of"
                f" {mix.input:,.0f} tokens with {mix.output:,.0f} inside the target",
                hint="looser targets: --ttft, --tpot",
            )
        return 1 / rate

    def replicas(self, mix: Mix, answer: float) -> Replicas:
        """A full one is asked: what its first tokens leave of the target is there for waiting."""
        import numpy as np

        state = queue.at_rate(self._table(mix), mix, np.array([1 / self.work(mix)]))
        first = float(state.first[0] @ mix.columns()[2])
        return Replicas(
            cold_s=self.service.cold_s,
            slack_s=max(self.service.ttft_s - first, 0.0),
            drain_s=round(answer * self.service.tpot_s),
        )

    def _table(self, mix: Mix) -> steps.Steps:
        return steps.tables(self._cases, fitted().terms(self._cases), mix)

    @property
    def _targets(self) -> dict[str, tuple[float, float]]:
        return {
            "ttft": (self.service.ttft_s, self.service.goal),
            "tpot": (self.service.tpot_s, self.service.goal),
        }


def _price(catalog: Catalog, accelerator: str) -> int:
    """Micro-dollars an hour of the cheapest machine on demand with one of them."""
    prices = [
        price.micros_hour
        for offer in catalog.offers(accelerator=accelerator, count=1, market="on_demand")
        if (price := offer.price("on_demand"))
    ]
    if not prices:
        raise NotFound(f"nobody rents one {accelerator} on demand", hint="tradewind offers --help")
    return min(prices)
