"""Setup: looks at what is there of what a store needs, and makes the rest as it was shown.

Looking changes nothing, making may be cut off anywhere, and both may be done again and again: what
was made is found by its name and its tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.model import buckets
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, bucket_of, owned
from tradewind.providers.aws.setup import bucket, policies, roles, things
from tradewind.providers.aws.setup.calls import Calls
from tradewind.providers.aws.setup.network import Place
from tradewind.providers.changes import Prepared


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    store_url: str
    regions: tuple[str, ...] = ()
    private: bool = False
    ssm: bool = False
    lend: bool = False
    image: str = ""
    key_pair: str = ""
    bucket_region: str = ""
    """Of another cloud's bucket."""


def prepared(
    calls: Calls, wish: Wish, bucket_region: str, known: Footprint | None
) -> Prepared[Footprint]:
    """`bucket_region`: "" while there is no bucket. `known` is what was written down before: its
    regions stay, and so does what it says of images and keys, unless the wish says otherwise."""
    account = check_account(calls, wish.store_url, known)
    regions = chosen(calls, wish, bucket_region, known)
    home = bucket_region or regions[0]
    own = [region for region in regions if _private(calls, wish, region, known)]
    lend = wish.lend or bool(known and known.lending_role)
    elsewhere = wish.bucket_region or (known.bucket_region if known else "")
    wanted = things.described(
        wish.store_url, home, regions, private=own, ssm=wish.ssm, lend_of=account if lend else ""
    )
    image = wish.image or (known.image if known else "")
    key_pair = wish.key_pair or (known.key_pair if known else "")
    _check(calls, regions, image, wish.key_pair)
    # First: who may not make it learns so before anything is made.
    lines = [roles.look_at_boundary(calls, wanted.role, wish.store_url, home)]
    if wanted.bucket:
        lines.append(bucket.look(calls, wanted.bucket, there=bool(bucket_region)))
    lines += roles.look(calls, wanted.role, home)
    if wanted.lending:
        lines.append(roles.look_at_boundary(calls, wanted.lending, wish.store_url, home))
        lines.append(roles.look_at_role(calls, wanted.lending, home))
    places = {each.region: Place(calls, each, wish.store_url) for each in wanted.regions}
    for place in places.values():
        lines += place.look()
    return Prepared(
        lines,
        account,
        lambda: Footprint(
            account=account,
            bucket=wanted.bucket.name if wanted.bucket else "",
            bucket_region=home if wanted.bucket else elsewhere,
            bucket_provider=buckets.home(wish.store_url) or "",
            instance_profile=wanted.role.name,
            regions={region: place.network() for region, place in sorted(places.items())},
            image=image,
            key_pair=key_pair,
            lending_role=policies.lend_arn(wish.store_url, home, account) if lend else "",
        ),
    )


def check_account(calls: Calls, store_url: str, known: Footprint | None) -> str:
    """The account, which must be the one that it was set up in."""
    account = calls.account.number()
    if known is not None and known.account != account:
        raise NoAccess(
            f"{store_url} is set up in account {known.account}, and these credentials are of"
            f" {account}",
            hint="choose the other with AWS_PROFILE; one store has one account",
        )
    return account


def asking(account: Account, regions: Sequence[str]) -> str:
    """A region to ask about others in: one that surely exists, whatever was typed."""
    import botocore.session

    session = botocore.session.get_session()
    worlds = session.get_available_partitions()
    known = {region for world in worlds for region in session.get_available_regions("ec2", world)}
    return next((each for each in (account.region, *regions) if each in known), "us-east-1")


def chosen(
    calls: Calls, wish: Wish, bucket_region: str, known: Footprint | None
) -> tuple[str, ...]:
    """Those that were set up before stay. The first is where a bucket would be made."""
    before = tuple(known.regions) if known else ()
    asked = wish.regions or before or (bucket_region or calls.account.region,)
    if not asked[0]:
        raise InvalidValue(
            "no region is named", hint="--region us-east-1, for example, or AWS_REGION"
        )
    regions = tuple(dict.fromkeys([*asked, *before]))
    check_regions(calls, regions, asking(calls.account, regions))
    if bucket_region and bucket_region not in regions:
        name = bucket_of(wish.store_url)[0]
        raise InvalidValue(
            f"the bucket {name} is in {bucket_region}, and machines would only be in"
            f" {', '.join(regions)}: all that they read and save would cross regions, and is"
            " charged for",
            hint=f"add --region {bucket_region}, or choose a bucket in {regions[0]}",
        )
    return regions


def check_regions(calls: Calls, regions: Sequence[str], asked_in: str) -> None:
    told = calls("ec2", asked_in, "describe_regions", AllRegions=True)["Regions"]
    known = {each["RegionName"]: each.get("OptInStatus", "") for each in told}
    for region in regions:
        if region not in known:
            from difflib import get_close_matches

            close = get_close_matches(region, known, n=1)
            raise NotFound(
                f"AWS has no region {region!r}",
                hint=f"did you mean {close[0]}?" if close else "`aws ec2 describe-regions`",
                choices=close,
            )
        if known[region] == "not-opted-in":
            raise NoAccess(
                f"{region} is not enabled in this account",
                hint=f"`aws account enable-region --region-name {region}`; it takes some minutes",
            )


def _private(calls: Calls, wish: Wish, region: str, known: Footprint | None) -> bool:
    """Asked for, or it was; or the network is there, made by other means."""
    if known and region in known.regions and not known.regions[region].public:
        return True
    if wish.private and (not known or region not in known.regions or region in wish.regions):
        return True
    return bool(calls("ec2", region, "describe_vpcs", Filters=owned(wish.store_url))["Vpcs"])


def _check(calls: Calls, regions: Sequence[str], image: str, key_pair: str) -> None:
    if image and not image.startswith(("ami-", "/")):
        raise InvalidValue(
            f"{image!r} is neither an image nor an SSM parameter",
            hint="ami-0123456789abcdef0, or /aws/service/…",
        )
    if image.startswith("ami-") and len(regions) > 1:
        raise InvalidValue(
            f"{image} is an image of one region, and machines would be in {len(regions)}",
            hint="name an SSM parameter that has one in each of them",
        )
    for region in regions if key_pair else ():
        found = calls(
            "ec2", region, "describe_key_pairs", KeyNames=[key_pair],
            fine=("InvalidKeyPair.NotFound",),
        )  # fmt: skip
        if found is None:
            raise NotFound(
                f"there is no key pair {key_pair!r} in {region}",
                hint=f"`aws ec2 import-key-pair --region {region} --key-name {key_pair} …`",
            )
