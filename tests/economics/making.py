"""Small questions for the tests of economics."""

from __future__ import annotations

from math import inf
from typing import Any

from tradewind.economics.inputs import Input
from tradewind.economics.own import Question
from tradewind.economics.owning import Terms
from tradewind.economics.use import Job, Use, of_pattern

NOTHING: dict[str, float] = {
    "server_usd": 285_000.0, "watts": 10_200.0, "fabric_share": 0.0, "spares_share": 0.0,
    "support_share": 0.0, "colo_usd_kw_month": 0.0, "usd_per_kwh": 0.0, "pue": 1.0,
    "idle_draw": 0.35, "staff_factor": 0.0, "staff_usd_year": 0.0, "residual_factor": 0.0,
    "life_years": 10.0, "availability": 1.0, "discount": 0.0, "rent_usd_hour": 2.69,
    "rent_trend": 0.0, "spot_overhead": 1.0, "use_factor": 1.0, "lease_rate": 0.1,
}  # fmt: skip
"""Everything that published comparisons leave out is left out."""

JOBS = (
    Job("pretrain", 8, 60, 6),
    Job("finetune", 8, 6, 40, "office"),
    Job("evaluate", 4, 2, 200),
)


def fixed(**values: float) -> dict[str, Input]:
    """Inputs without a range."""
    least, most = {"rent_trend": -1.0}, {"availability": 1.0}
    return {
        name: Input(
            name,
            name,
            "",
            value,
            value,
            value,
            "test",
            least=least.get(name, 0.0),
            most=most.get(name, inf),
        )
        for name, value in (NOTHING | values).items()
    }


def asked(use: Use | None = None, years: int = 3, **more: Any) -> Question:
    inputs = more.pop("inputs", None) or fixed()
    terms = more.pop("terms", None) or Terms(years, 8)
    return Question(
        use=use or of_pattern(20_000, "steady"), accelerator="H100-SXM", terms=terms,
        inputs=inputs, **more,
    )  # fmt: skip
