"""`azureml`: a compute cluster and a command job of Azure Machine Learning, as its command line
takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.export import commented, launch, managed, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.exported import Exported, File, Refused, Setting
from tradewind.model.job import Job
from tradewind.model.plan import Plan

TAKES = (registry.TRAINING,)
SETTINGS = (
    managed.IMAGE,
    Setting("datastore", "Of the workspace, for checkpoints. Default: its own blob container.",
            example="training"),
    Setting("vault", "A Key Vault with the job's secrets, each named as its variable.",
            example="acme-training"),
)  # fmt: skip
_TITLE = "Azure ML"
_CHIPS = (
    "T4", "V100-32GB", "A100-40GB", "A100-80GB", "A100-80GB-PCIe", "H100-NVL", "H100-SXM", "H200",
)  # fmt: skip
"""Of the machines that its clusters can have: series NC and ND with NVIDIA's GPUs."""
_SCHEMAS = "https://azuremlschemas.azureedge.net/latest"
_DAYS, _DAYS_SPOT = 21, 7
_OWN = "workspaceblobstore"
_IDLE_S = 300
_MOST_NAME = 20
_FILLED = "${{"
"""What it fills in itself, before any shell reads it."""
_READ = (
    "import os, sys\n"
    "from azure.identity import ManagedIdentityCredential as Me\n"
    "from azure.keyvault.secrets import SecretClient\n"
    'me = Me(client_id=os.environ.get("DEFAULT_IDENTITY_CLIENT_ID"))\n'
    'print(SecretClient(f"https://{sys.argv[1]}.vault.azure.net", me)'
    ".get_secret(sys.argv[2]).value)"
)


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    plan, job = managed.asked_of("azureml", _TITLE, "azure", asked)
    if asked.chip.name not in _CHIPS or plan.instance_type.startswith("Standard_NCC"):
        raise Refused(
            f"clusters of {_TITLE} have no {plan.instance_type} ({asked.chip.name})",
            nearest=f"--accelerator with one of {', '.join(_CHIPS)}",
        )
    spot, more = managed.spot(_TITLE, plan)
    longest = managed.seconds(plan)
    most = _DAYS_SPOT if spot else _DAYS
    if longest > most * 86_400:
        raise Refused(
            f"a job ends after {most} days{' on machines of low priority' if spot else ''}, and"
            f" the plan's upper end is {plan.hours_high / 24:.0f} days",
            nearest="--market on_demand, whose jobs may take 21 days" if spot else
            "a shorter deadline, which plans more machines; or script, which has no such end",
        )  # fmt: skip
    name = managed.name(asked, 100)
    cluster = f"{managed.name(asked, _MOST_NAME)}-gpu"  # up to 24, and no number at its end
    image, notes = managed.image(asked, job, settings, f"REGISTRY.azurecr.io/{name}:1")
    files = {
        "compute.yaml": _compute(asked, plan, cluster, spot),
        "job.yaml": _job(plan, job, name, cluster, image, settings),
    }
    if job.secrets:
        said = ", ".join(f"{_kept(each)} ({where})" for each, where in job.secrets.items())
        vault = settings["vault"] or "NAME"
        notes.append(
            f"the Key Vault has to hold {said}, and the cluster's identity to read it: the image"
            " needs azure-identity and azure-keyvault-secrets"
            + ("" if settings["vault"] else f"; --set vault={vault} says which vault")
        )
    where = "--workspace-name WORKSPACE --resource-group GROUP"
    return Exported(
        {path: File(commented.text(value)) for path, value in files.items()},
        (f"from DIR: az ml compute create --file compute.yaml {where}, once; then az ml job create"
         f" --file job.yaml {where}", *notes, *more),
    )  # fmt: skip


def _compute(asked: Asked, plan: Plan, cluster: str, spot: bool) -> dict[str, Any]:
    return {
        "$schema": f"{_SCHEMAS}/amlCompute.schema.json",
        "name": cluster,
        "type": "amlcompute",
        "location": Why(plan.region, "The plan's region, which may be another than the"
                        " workspace's: data is then moved between the two, and paid for."),
        "size": Why(plan.instance_type, f"{plan.accelerator_count} × {asked.chip.name}."),
        "tier": Why("low_priority" if spot else "dedicated",
                    "As planned: machines that may be taken. Azure ML asks a fixed discount for"
                    " them, not the spot price that the plan counts with." if spot
                    else "As planned."),
        "min_instances": Why(0, "Without jobs there are no machines."),
        "max_instances": plan.nodes,
        "idle_time_before_scale_down": Why(_IDLE_S, "Seconds, which are paid for."),
        "ssh_public_access_enabled": Why(False, "Nobody comes in."),
        "identity": Why({"type": "system_assigned"}, "By it jobs read images, data and secrets:"
                        " it is given no rights here."),
    }  # fmt: skip


def _job(
    plan: Plan, job: Job, name: str, cluster: str, image: str, settings: Mapping[str, str]
) -> dict[str, Any]:
    kept = settings["datastore"] or _OWN
    script = managed.script(job, *_lines(plan, job, settings["vault"] or "VAULT"))
    variables = launch.variables(plan, job)
    for text in (script, *variables.values()):
        if _FILLED in text:
            raise Refused(
                f"{_TITLE} fills in {_FILLED} … itself, and the job has it in its command, setup"
                " or variables",
                nearest="a script in the job's folder that has it, as run.command",
            )
    checkpoints = managed.CHECKPOINTS
    linked = f'rm -rf {checkpoints} && ln -s "$KEPT" {checkpoints}'
    begin = f'set -e\nKEPT="{_FILLED}outputs.checkpoints}}}}"\ncd {managed.WORK}\n{linked}'
    return {
        "$schema": f"{_SCHEMAS}/commandJob.schema.json",
        "type": "command",
        "display_name": name,
        "experiment_name": name,
        "command": begin + script.removeprefix("set -e"),
        "environment": {"image": image},
        "environment_variables": dict(variables),
        "compute": f"azureml:{cluster}",
        "resources": {
            "instance_count": Why(plan.nodes, "As planned."),
            "shm_size": Why("16g", "For workers that load data, and for NCCL."),
        },
        **({"distribution": Why(
            {"type": "pytorch", "process_count_per_instance": 1},
            "Tells each machine its number and the first one's address; what is started on each"
            " starts a process for each accelerator.",
        )} if plan.nodes > 1 else {}),
        "outputs": {
            "checkpoints": Why(
                {
                    "type": "uri_folder",
                    "path": f"azureml://datastores/{kept}/paths/{name}/checkpoints",
                    "mode": "rw_mount",
                },
                "The same folder for each job of this name: one that is begun again resumes.",
            )
        },
        "limits": {"timeout": Why(managed.seconds(plan), managed.seconds_why(plan))},
        **({"identity": Why({"type": "managed"}, "The cluster's own, which reads the secrets.")}
           if job.secrets else {}),
    }  # fmt: skip


def _lines(plan: Plan, job: Job, vault: str) -> list[str]:
    """The command is the first of them, as managed.script takes it."""
    command = launch.command(
        plan, job, rank='"$NODE_RANK"', first='"$MASTER_ADDR"', port='"$MASTER_PORT"'
    )
    read = f"python3 -c {shell.quoted(_READ)} {shell.quoted(vault)}"
    return [
        command,
        *(managed.asked_for(each, f"{read} {_kept(each)}", "") for each in job.secrets),
    ]


def _kept(variable: str) -> str:
    """Names of secrets have no underscores there."""
    return variable.replace("_", "-")
