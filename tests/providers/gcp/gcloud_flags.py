"""The gcloud commands that we print, and the flags of each that we know, by gcloud's reference
pages as of 2026-11. Not all flags: a flag that is not here has to be looked up first."""

from __future__ import annotations

COMMANDS = {
    "services enable": {"--project"},
    "storage buckets create": {
        "--project", "--location", "--uniform-bucket-level-access", "--public-access-prevention",
    },
    "storage buckets update": {
        "--versioning", "--clear-soft-delete", "--update-labels", "--lifecycle-file",
    },
    "storage buckets add-iam-policy-binding": {"--member", "--role", "--condition-from-file"},
    "projects add-iam-policy-binding": {"--member", "--role", "--condition-from-file"},
    "iam service-accounts create": {"--project", "--display-name", "--description"},
    "iam roles create": {"--project", "--title", "--description", "--permissions", "--stage"},
    "compute networks create": {
        "--project", "--subnet-mode", "--bgp-routing-mode", "--description", "--mtu",
        "--network-profile",
    },
    "compute networks subnets create": {
        "--project", "--network", "--region", "--range", "--enable-private-ip-google-access",
        "--description",
    },
    "compute firewall-rules create": {
        "--project", "--network", "--direction", "--source-ranges", "--allow", "--description",
    },
}  # fmt: skip
