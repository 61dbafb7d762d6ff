"""What the job descriptions of managed services have in common: an image with the job in it, that
is run on the plan's machines of one cloud. A Job of Kubernetes runs it in the same way."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tradewind.export import refusals, setups, shell
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused, Setting
from tradewind.model import secrets
from tradewind.model.job import Job
from tradewind.model.plan import Plan

IMAGE = Setting(
    "image", "With the job in it: `tradewind image push` prints its name.",
    example="registry.example.com/team/job:1",
)  # fmt: skip
LATE = 1.5
WORK, CHECKPOINTS = "/job", "/job/checkpoints"


def asked_of(kind: str, title: str, provider: str, asked: Asked) -> tuple[Plan, Job]:
    """A training on machines of the service's own cloud."""
    plan, job = asked.training(kind)
    refusals.only_of(
        plan, (provider,), f"{title} has machines of {provider}",
        nearest=f"--provider {provider}, which plans it there",
    )  # fmt: skip
    refusals.not_reserved(plan, f"{title} is not told of here")
    return plan, job


def image(
    asked: Asked, job: Job, settings: Mapping[str, str], stand_in: str
) -> tuple[str, list[str]]:
    named = settings["image"] or job.image or ""
    if named:
        return named, []
    return stand_in, [
        f"{stand_in} stands in for an image of yours: --set image=NAME, which"
        " `tradewind image push` prints"
    ]


def script(job: Job, command: str, *before: str) -> str:
    """Of a container whose image `tradewind export dockerfile` describes, or that the job names:
    the image has what pip installs, and what else the setup does is done at each start. The shell
    is replaced by the command, which so is told when it has to end."""
    if job.image:
        setup = [job.setup.strip()] if job.setup else []
    else:
        setup = list(setups.parted(job.setup).rest)
    started = f"exec {command}" if shell.is_simple(command) else command
    return "\n".join(["set -e", *before, *setup, started])


def asked_for(variable: str, command: str, key: str) -> str:
    """A secret, which is read at each start."""
    return f"{variable}=$({shell.keyed(command, key)})\nexport {variable}"


def met(look: str) -> str:
    """`look`: Python that prints the first machine's name, and this one's number."""
    return (
        f'hosts=$(python3 -c {shell.quoted(look)})\nMASTER_ADDR="${{hosts% *}}"'
        ' NODE_RANK="${hosts#* }"'
    )


def spot(title: str, plan: Plan) -> tuple[bool, list[str]]:
    """Whether it is asked for, and what is left out then."""
    if "spot" not in plan.markets:
        return False, []
    if "on_demand" in plan.markets:
        return True, [
            f"{title} stays on spot: the plan's change to on demand near the deadline is left out"
        ]
    return True, []


def seconds(plan: Plan) -> int:
    return math.ceil(plan.hours_high * LATE) * 3600


def seconds_why(plan: Plan) -> str:
    return f"Half as much again as the plan's {plan.hours_high:.1f} hours: what hangs, ends."


def disk_gb(asked: Asked, plan: Plan, system: int) -> tuple[int, str]:
    kept = asked.workload.checkpoint.keep + 1
    each = plan.checkpoint_bytes / 1e9
    return system + math.ceil(each * kept), (
        f"{system} GB for the image, and {kept} checkpoints of {each:.1f} GB."
    )


def reference(title: str, variable: str, text: str, schemes: tuple[str, ...]) -> secrets.Reference:
    """Of a secret that the service's machines can read."""
    found = secrets.parse(text)
    if found.scheme not in schemes:
        raise Refused(
            f"{title} cannot read {variable} ({text})",
            nearest=f"keep it in {secrets.SCHEMES[schemes[0]].example}",
        )
    return found


def left_open(settings: Mapping[str, str], **needed: str) -> list[str]:
    """Placeholders that are in the files."""
    missing = [f"--set {each}={like}" for each, like in needed.items() if not settings[each]]
    return [f"{', '.join(missing)}: whose it is, in place of what stands there"] if missing else []


def name(asked: Asked, most: int) -> str:
    plain = "".join(each if each.isalnum() else "-" for each in asked.name.lower()).strip("-")
    return (plain if plain[:1].isalpha() else f"job-{plain}")[:most].rstrip("-")
