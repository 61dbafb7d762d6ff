"""EC2's vCPU quotas: which family of machines counts against which, and Service Quotas' answers."""

from __future__ import annotations

import re
from typing import Any

from tests.cloud.quotas import DEFAULT
from tests.cloud.world import World

_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"
ON_DEMAND = {
    "L-417A185B": ("Running On-Demand P instances", r"p\d"),
    "L-DB2E81BA": ("Running On-Demand G and VT instances", r"(g\d|gr\d|vt\d)"),
    "L-74FC7D96": ("Running On-Demand F instances", r"f\d"),
    "L-1945791B": ("Running On-Demand Inf instances", r"inf\d"),
    "L-2C3B7624": ("Running On-Demand Trn instances", r"trn\d"),
    "L-6E869C2A": ("Running On-Demand DL instances", r"dl\d"),
    "L-7295265B": ("Running On-Demand X instances", r"x\d"),
    "L-43DA4232": ("Running On-Demand High Memory instances", r"u-"),
    "L-F7808C92": ("Running On-Demand HPC instances", r"hpc\d"),
    "L-1216C47A": (f"Running On-Demand {_STANDARD} instances", r"[acdhimrtz]"),
}
SPOT = {
    "L-C4BD4855": ("All P5 Spot Instance Requests", r"p5"),
    "L-7212CCBC": ("All P4, P3 and P2 Spot Instance Requests", r"p\d"),
    "L-3819A6DF": ("All G and VT Spot Instance Requests", r"(g\d|gr\d|vt\d)"),
    "L-88CF9481": ("All F Spot Instance Requests", r"f\d"),
    "L-B5D1601B": ("All Inf Spot Instance Requests", r"inf\d"),
    "L-6B0D517C": ("All Trn Spot Instance Requests", r"trn\d"),
    "L-85EED4F7": ("All DL Spot Instance Requests", r"dl\d"),
    "L-E3A00192": ("All X Spot Instance Requests", r"x\d"),
    "L-34B43A08": (f"All {_STANDARD} Spot Instance Requests", r"[acdhimrtz]"),
}
EVERY = {**ON_DEMAND, **SPOT}


def code(kind: str, market: str) -> str:
    for each, (_, pattern) in (SPOT if market == "spot" else ON_DEMAND).items():
        if re.match(pattern, kind):
            return each
    return ""


def _told(world: World, region: str, quota: str, default: bool) -> dict[str, Any]:
    return {
        "ServiceCode": "ec2",
        "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
        "QuotaArn": f"arn:aws:servicequotas:{region}:123456789012:ec2/{quota}",
        "QuotaCode": quota,
        "QuotaName": EVERY[quota][0],
        "Value": DEFAULT if default else world.quotas.value(region, quota),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


def service_quotas(world: World, region: str, action: str, asked: dict[str, Any]) -> Any:
    """The answer, or None where it is moto's to give. An error is {"__type": …}."""
    if asked.get("ServiceCode") != "ec2":
        return None
    default = "AWSDefault" in action
    if action in ("GetServiceQuota", "GetAWSDefaultServiceQuota"):
        quota = str(asked.get("QuotaCode"))
        if quota not in EVERY:
            text = "The request failed because the specified resource does not exist."
            return {"__type": "NoSuchResourceException", "Message": text}
        return {"Quota": _told(world, region, quota, default)}
    if action in ("ListServiceQuotas", "ListAWSDefaultServiceQuotas"):
        start, most = int(asked.get("NextToken") or 0), int(asked.get("MaxResults") or 100)
        told = [_told(world, region, each, default) for each in EVERY]
        more = {"NextToken": str(start + most)} if start + most < len(told) else {}
        return {"Quotas": told[start : start + most], **more}
    return None
