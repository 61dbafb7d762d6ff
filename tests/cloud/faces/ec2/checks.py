"""What EC2 looks at before it launches, and refuses in words of its own where moto has others."""

from __future__ import annotations

import functools

from tests.cloud.faces.ec2.account import Account


def refuse(code: str, words: str) -> Exception:
    from moto.ec2.exceptions import EC2ClientError

    return EC2ClientError(code, words)


@functools.cache
def where(region: str, by: str, kind: str) -> set[str]:
    """Zones (or regions) that offer a type."""
    from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

    listed = INSTANCE_TYPE_OFFERINGS[by].get(region, [])
    return {each["Location"] for each in listed if each["InstanceType"] == kind}


def known(kind: str) -> None:
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    if kind not in INSTANCE_TYPES:
        raise refuse("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")


def offered(region: str, zone: str, kind: str) -> None:
    zones = where(region, "availability-zone", kind)
    if where(region, "region", kind) and zone not in zones:
        raise refuse(
            "Unsupported",
            f"Your requested instance type ({kind}) is not supported in your requested "
            f"Availability Zone ({zone}). Please retry your request by not specifying an "
            f"Availability Zone or choosing {', '.join(sorted(zones))}.",
        )


def profile(account: Account) -> None:
    """A profile that was made just now is not known to EC2 yet, however well IAM knows it."""
    name = account.asked.get("IamInstanceProfile.Name", "")
    name = name or account.asked.get("IamInstanceProfile.Arn", "").rpartition("/")[2]
    if name and account.world.now() < account.profiles.get(name, 0.0) + account.dials.iam_lag_s:
        raise refuse(*unknown_profile(name))


def unknown_profile(name: str) -> tuple[str, str]:
    words = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. "
    return "InvalidParameterValue", words + "Invalid IAM Instance Profile name"


def bid(account: Account, region: str, zone: str, kind: str, market: str) -> None:
    most = account.asked.get("InstanceMarketOptions.SpotOptions.MaxPrice")
    price = account.world.market.spot(region, zone, kind, account.world.now())
    if most and market == "spot" and float(most) < price:
        raise refuse(
            "SpotMaxPriceTooLow",
            f"Your Spot request price of {most} is lower than the minimum required Spot request "
            f"fulfillment price of {price:g}.",
        )


def interfaces(account: Account, kind: str) -> None:
    """Where each stands, of which kind, and how many."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    told = INSTANCE_TYPES[kind]["NetworkInfo"]
    able = {each["NetworkCardIndex"]: each["InterfaceTypes"] for each in told["NetworkCards"]}
    places, efas = [], 0
    prefix = "NetworkInterface."
    for number in sorted({k.split(".")[1] for k in account.asked if k.startswith(prefix)}, key=int):
        given = {k: v for k, v in account.asked.items() if k.startswith(f"{prefix}{number}.")}
        one = {k.removeprefix(f"{prefix}{number}."): v for k, v in given.items()}
        if "DeviceIndex" not in one:
            return  # one that was there before
        card, wished = int(one.get("NetworkCardIndex", 0)), one.get("InterfaceType", "interface")
        places.append((card, int(one["DeviceIndex"]), wished))
        efas += wished.startswith("efa")
        if wished not in able.get(card, ()):
            words = f"{kind} takes no {wished} on network card {card}"
            raise refuse("InvalidParameterCombination", words)
    most = told.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    if efas > most:
        raise refuse("AttachmentLimitExceeded", f"{kind} takes {most} EFA interfaces, not {efas}")
    stands = [each[:2] for each in places]
    if len(set(stands)) < len(stands) or (places and (0, 0) not in stands):
        raise refuse("InvalidParameterValue", f"Network interfaces may not be at {stands}")
    if (0, 0, "efa-only") in places:
        raise refuse("InvalidParameterCombination", "The primary interface may not be efa-only")
    public = [k for k, v in account.asked.items() if k.endswith("AssociatePublicIpAddress") and v]
    if public and len(places) > 1:
        words = "The associatePublicIPAddress parameter cannot be specified when launching with "
        raise refuse("InvalidParameterCombination", words + "multiple network interfaces.")
