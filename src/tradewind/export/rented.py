"""What a plan's machines need at the plan's cloud: what `terraform` and `pulumi` both write."""

from __future__ import annotations

import math
import re

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_duration, format_money
from tradewind.export import images, refusals, start
from tradewind.export.asked import Asked
from tradewind.export.exported import File, Refused
from tradewind.model.plan import Plan
from tradewind.providers import infrastructure
from tradewind.providers.infrastructure import Infrastructure, Wanted

_SYSTEM_GB = 125
_MOST_NAME = 28
"""With what is added to it, a name of every kind of thing: a service account's has 30."""


def machines(kind: str, asked: Asked) -> tuple[Infrastructure, File]:
    """And the script of each machine."""
    if asked.serving is not None:
        raise Refused(
            f"{kind} has machines for work that ends, and {asked.name} is served",
            nearest="--set cluster=NAME, which has nodes for the pods of `export kubernetes`",
        )
    plan, _ = asked.training(kind)
    clouds = infrastructure.clouds()
    refusals.only_of(
        plan, clouds, f"{kind} is written for {' and '.join(clouds)}",
        nearest=f"--provider {clouds[0]}, which plans it there; or script, for any machine",
    )  # fmt: skip
    refusals.not_reserved(plan, f"{kind} does not buy")
    known = images.table()
    images.chosen(known, asked.chip)
    cloud = infrastructure.of(plan.provider)
    try:
        described = cloud.described(_wanted(asked, plan, known))
    except InvalidValue as error:
        raise Refused(error.message, nearest=error.hint or "script, for any machine") from None
    text = start.script(asked, described.functions, cloud.secret)
    return described, File(text, executable=True)


def _wanted(asked: Asked, plan: Plan, known: images.Table) -> Wanted:
    kept = asked.workload.checkpoint.keep + 1
    most = math.ceil(plan.cost_high / 1e6)
    assert asked.job is not None
    return Wanted(
        name=name_of(asked),
        region=plan.region,
        zone=plan.zone,
        instance_type=plan.instance_type,
        chip=asked.chip.name,
        vendor=asked.chip.vendor,
        arm=images.platform(known, asked.chip).endswith("arm64"),
        nodes=plan.nodes,
        spot=plan.markets[0] == "spot",
        disk_gb=_SYSTEM_GB + math.ceil(plan.checkpoint_bytes * kept / 1e9),
        disk_why=f"{_SYSTEM_GB} GB for system and PyTorch, and {kept} checkpoints of"
        f" {plan.checkpoint_bytes / 1e9:.1f} GB.",
        budget=most,
        budget_why=f"Dollars in a month: the plan's upper end,"
        f" {format_money(plan.cost_high, digits=2)} in"
        f" {format_duration(round(plan.hours_high * 3600))}.",
        secrets=dict(asked.job.secrets),
    )


def name_of(asked: Asked) -> str:
    """Of all that is made."""
    plain = re.sub(r"[^a-z0-9]+", "-", asked.name.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"job-{plain}"
    return plain[:_MOST_NAME].strip("-").ljust(6, "0")


def again(asked: Asked, command: str) -> str:
    """What is typed in the folder of the export, before anything is made."""
    return (
        "in DIR: tar -czf job.tar.gz --exclude-vcs --exclude 'job.tar.gz*' --exclude '.env*'"
        " --exclude ./checkpoints"
        f" -C {asked.job_path} . && {command}"
    )
