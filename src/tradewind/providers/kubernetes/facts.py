"""What holds of pods, whatever cluster they are in.

A launch is a Job whose name is made from the launch's id: the second of that name is refused, so
it is known again. It waits, unpaid, until a node has room for its pods. GKE gives pods 15 s when a
spot node is taken, whatever they ask for (docs.cloud.google.com, "Spot VMs"); AKS 30 s, EKS with
its termination handler or Karpenter two minutes: the least of them counts.
"""

from __future__ import annotations

from tradewind.model.run import Facts

FACTS = Facts(
    boot_timeout_s=1200,
    notice_s=15,
    billing_lead_s=60,
    tokens=True,
    listing_lag_s=30,
    queues=True,
    ends="itself",
)
PASS_S = 3600
"""For so long a pass to the store lasts, where whoever lends can make it last so long."""
