"""What holds of machines of EC2, whoever rents them."""

from __future__ import annotations

from tradewind.model.run import Facts

FACTS = Facts(
    boot_timeout_s=900,
    notice_s=120,
    billing_step_s=1,
    billing_least_s=60,
    billing_lead_s=120,
    tokens=True,
    listing_lag_s=60,
)
PASS_S = 3600
"""For so long machines are lent a pass to a store that is not AWS's."""
