"""What holds of machines on hosts of one's own.

They come up at once, but for the time that installing takes, and are listed at once by the host
itself. A launch over several hosts is one call for each: only who recorded it makes it. Nobody
bills; what a GPU-hour costs is the account file's to say. A host that shuts down sends SIGTERM, and
kills what is left after a while: 90 s by systemd's own default, of which we trust a third.
"""

from __future__ import annotations

from tradewind.model.run import Facts

GRACE_S = 30
FACTS = Facts(
    boot_timeout_s=600,
    notice_s=0,
    billing_step_s=1,
    billing_lead_s=30,
    tokens=False,
    listing_lag_s=60,
    labels="tags",
    gang=False,
    ends="itself",
)
PASS_S = 3600
"""For so long a pass to the store lasts, where whoever lends can make it last so long."""
REGION = "hosts"
"""Of hosts that reach each other, unless setup was told another name."""
LEAST_DISK_GB = 5.0
"""Free, on a host that is set up."""
