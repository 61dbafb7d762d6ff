"""What holds of machines of Lambda, whoever rents them.

From docs.lambda.ai ("Billing"): by the minute, from when a launched machine passes its health
checks until it is terminated. Lambda does not tell when that was, so we count from the launch, a
few minutes earlier. Nothing but terminating ends the bill: a machine that has shut down is paid on,
and the API has no timer. Machines of one GPU need three to five minutes to come up, those of eight
up to fifteen. That a new machine is listed within two minutes is an assumption.
"""

from __future__ import annotations

from tradewind.model.run import Facts

FACTS = Facts(
    boot_timeout_s=1500,
    notice_s=0,
    billing_step_s=60,
    billing_lead_s=900,
    tokens=False,
    listing_lag_s=120,
    labels="names",
    gang=False,
    ends="never",
)
PASS_S = 3600
"""For so long a pass to the store lasts, where whoever lends can make it last so long."""
IMAGE = "lambda-stack-24-04"
"""The family of images that machines start from: Ubuntu 24.04, whose Python is 3.12. Lambda's own
default is 22.04, and its Python too old for us."""
REGIONS = (
    "asia-northeast-1",
    "asia-northeast-2",
    "asia-south-1",
    "australia-east-1",
    "europe-central-1",
    "europe-south-1",
    "me-west-1",
    "us-east-1",
    "us-east-2",
    "us-east-3",
    "us-midwest-1",
    "us-south-1",
    "us-south-2",
    "us-south-3",
    "us-west-1",
    "us-west-2",
    "us-west-3",
)
"""The API names a region only while it has something to sell there."""
UNGUARDED = ("us-south-1",)
"""Lambda's firewall rules do not apply there."""
