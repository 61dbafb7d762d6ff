"""Arguments of an estimator of SageMaker's SDK, as JSON or YAML."""

from __future__ import annotations

import shlex

from tradewind.base.errors import BadFile
from tradewind.export.foreign.found import Found, rest, table, tree, whole

_KNOWN = ("entry_point", "source_dir", "instance_type", "instance_count", "hyperparameters",
          "max_run", "use_spot_instances", "max_wait", "environment", "image_uri",
          "base_job_name", "distribution", "sagemaker_session")  # fmt: skip


def read(text: str) -> Found:
    value = tree(text, "table of an estimator's arguments")
    script = str(value.get("entry_point") or "")
    if not script or "instance_type" not in value:
        raise BadFile(
            "these are no arguments of an estimator: entry_point and instance_type are missing",
            hint="docs/commands/import.md has an example",
        )
    options = [
        part
        for name, each in table(value.get("hyperparameters")).items()
        for part in (f"--{name}", each)
    ]
    starts = "torchrun" if "torch_distributed" in table(value.get("distribution")) else "python"
    found = Found(
        name=str(value.get("base_job_name") or ""),
        command=" ".join([starts, shlex.join([script, *options])]),
        env=table(value.get("environment")),
        image=str(value.get("image_uri") or ""),
        instance_type=str(value["instance_type"]).removeprefix("ml."),
        nodes=whole(value.get("instance_count", 1)),
        spot=True if value.get("use_spot_instances") is True else None,
    )
    seconds = value.get("max_run")
    if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds > 0:
        found.hours = round(seconds / 3600, 4) or None
    if value.get("source_dir") not in (None, "."):
        found.left.append(f"source_dir {value['source_dir']}: `tradewind run --folder` names it")
    found.left += [f"{name}: no such thing here" for name in rest(value, _KNOWN)]
    found.left.append("$SM_… are not set: folders are options of the script, or in run.env")
    return found
