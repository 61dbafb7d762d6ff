"""What the disk of a machine costs: gp3 volumes, which EC2 charges for beside the machine.

Dollars for a gigabyte and month of 30 days, as AWS lists them for regions that have accelerators
(https://aws.amazon.com/ebs/pricing). Written down on 2026-11-16, and not renewed by `tradewind
catalog refresh`, though the price list that it reads has them (product family Storage). They agree
with what EMR Serverless charges for storage, which is the same by the hour (by region, in
PerfKitBenchmarker's aws_dpb_emr_serverless_prices.py, generated from AWS's price list), and in the
United States with four fifths of gp2; only those of eu-south-2 and ap-southeast-3 nothing else was
found for. For a region that is not known the dearest is assumed.
"""

from __future__ import annotations

GB_MONTH = {
    "us-east-1": 0.08, "us-east-2": 0.08, "us-west-1": 0.096, "us-west-2": 0.08,
    "ca-central-1": 0.088, "sa-east-1": 0.152,
    "eu-central-1": 0.0952, "eu-north-1": 0.0836, "eu-south-2": 0.088, "eu-west-1": 0.088,
    "eu-west-2": 0.0928, "eu-west-3": 0.0928,
    "ap-northeast-1": 0.096, "ap-northeast-2": 0.0912, "ap-south-1": 0.0912,
    "ap-southeast-1": 0.096, "ap-southeast-2": 0.096, "ap-southeast-3": 0.096,
}  # fmt: skip
_MONTH_H = 30 * 24


def price_hour(region: str, gb: int) -> int:
    """Micro-dollars an hour for a volume of this size."""
    usd = GB_MONTH.get(region, max(GB_MONTH.values()))
    return round(gb * usd * 1_000_000 / _MONTH_H)
