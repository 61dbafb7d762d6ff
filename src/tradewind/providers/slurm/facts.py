"""What holds of Slurm's jobs, whatever cluster they are on.

Slurm gives several jobs the same name, so a name alone is no token; what makes it one is in
script.py: jobs of one name run one after the other (`--dependency=singleton`), and only the first
of them begins. How long a job is told before it is preempted, each partition says (`GraceTime`).
"""

from __future__ import annotations

from tradewind.model.run import Facts
from tradewind.model.timing import BEAT_S, DRAIN_S, SHUTDOWN_S

FACTS = Facts(
    boot_timeout_s=600,
    notice_s=0,
    billing_lead_s=60,
    tokens=True,
    listing_lag_s=30,
    labels="names",
    queues=True,
    ends="itself",
)
IMAGE_S = 1800
"""So long a machine may take whose nodes fetch and unpack an image first."""
PASS_S = 3600
"""For so long a pass to the store lasts, where whoever lends can make it last so long."""
WARN_S = 120
"""So long before a job's time limit Slurm signals it, if it has not ended by itself by then."""
LEAST_LIMIT_S = DRAIN_S + SHUTDOWN_S + BEAT_S + 60
"""Of a partition: in less time nothing could be done but saving."""
OLDEST = (20, 11)
"""The first version whose flags are those that we use."""
