"""Which machine this is, by EC2's metadata. It travels with first.py: nothing but the standard
library, and `fetch(address, method, **headers)`."""

from __future__ import annotations

import os
from typing import Any

METADATA = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254")


def who(fetch: Any) -> dict[str, Any]:
    token = fetch(
        f"{METADATA}/latest/api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="300"
    ).decode()

    def asked(name: str) -> str:
        address = f"{METADATA}/latest/meta-data/{name}"
        found: str = fetch(address, X_aws_ec2_metadata_token=token).decode()
        return found

    try:
        public = asked("public-ipv4")
    except OSError:  # 404: it has none
        public = ""
    return {
        "machine_id": f"aws-{asked('placement/region')}-{asked('instance-id')}",
        "rank": int(asked("ami-launch-index")),
        "host": asked("local-ipv4"),
        "public": public,
    }
