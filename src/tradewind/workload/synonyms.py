"""What others call the fields of a workload: our own flags, and files of SkyPilot, dstack, Slurm,
Kubernetes and trainers. Nobody is made to guess our word; theirs is answered with it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.workload.fields import SECTIONS


class Place(NamedTuple):
    path: str  # `limits.max_nodes`
    how: str = ""  # what to write there, where the name alone does not say it


def _same(path: str, names: str, how: str = "") -> dict[str, Place]:
    return dict.fromkeys(names.split(), Place(path, how))


_OTHERS: dict[str, Place] = {
    **_same(
        "train.sequence", "seq seq_len seqlen seq_length sequence_length max_seq_len block_size"
    ),
    **_same("train.sequence", "context_length max_length model_max_length cutoff_len"),
    **_same("train.global_batch", "batch batch_size global_batch_size train_batch_size"),
    **_same("train.micro_batch", "micro_batch_size per_device_train_batch_size"),
    **_same("train.epochs", "num_epochs num_train_epochs max_epochs"),
    **_same("train.steps", "max_steps num_steps train_steps iterations max_iters"),
    **_same("train.tokens", "num_tokens train_tokens max_tokens"),
    **_same("train.samples", "num_samples"),
    **_same("train.precision", "dtype mixed_precision torch_dtype"),
    **_same("train.optimizer", "optim"),
    **_same("train.lora", "lora_r lora_rank"),
    **_same("train.activation_checkpointing", "recompute gradient_checkpointing"),
    **_same("train.tp", "tensor_parallel tensor_parallel_size tensor_model_parallel_size"),
    **_same("train.pp", "pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size"),
    **_same("train.cp", "context_parallel context_parallel_size"),
    **_same("train.ep", "expert_parallel expert_parallel_size"),
    **_same("data.uri", "data_uri data_path dataset_path"),
    **_same("data.size", "data_size"),
    **_same("data.region", "data_region"),
    **_same("checkpoint.every", "save_every save_interval checkpoint_every save_steps"),
    **_same("checkpoint.keep", "save_total_limit"),
    **_same("limits.deadline", "due finish_by"),
    **_same("limits.budget", "max_cost max_spend cost_limit"),
    **_same("limits.providers", "cloud clouds infra provider backend backends"),
    **_same("limits.regions", "region zone zones"),
    **_same("limits.markets", "use_spot spot capacity_type", "[spot]"),
    **_same("limits.markets", "market spot_policy on_demand preemptible"),
    **_same("gpus", "gpu gpu_type accelerator_type resources", "H100:8"),
    **_same("limits.accelerators", "accelerator"),
    **_same("nodes", "num_nodes nnodes node_count num_machines replicas"),
    **_same("type", "instance_type machine_type vm_type"),
    **_same("cpus", "vcpus cpu num_cpus"),
    **_same("ram", "memory mem"),
    **_same("disk", "disk_size"),
    **_same("limits.max_accelerators", "max_gpus num_gpus gpu_count world_size ngpus"),
    **_same("run.command", "cmd script entrypoint commands args"),
    **_same("run.env", "envs environment env_vars"),
    **_same("run.secrets", "secret"),
    **_same("run.max_duration", "timeout max_runtime time_limit walltime"),
    **_same("run.idle", "idle_timeout idle_duration autostop"),
    **_same("run.include", "file_mounts mounts workdir", "the file's own folder is sent as it is"),
    **_same("run.outputs", "output_dir output artifacts"),
}


_WITHIN = {
    "": _same("gpus", "accelerator accelerators", "H100:8"),
    "limits": {
        **_same("limits.accelerators", "gpu gpus gpu_type accelerator accelerator_type"),
        **_same("limits.max_nodes", "nodes num_nodes nnodes node_count num_machines replicas"),
    },
}
"""What else they mean beside the sections, and in one of them."""


def place_of(name: str) -> Place | None:
    """Where this is said; for a name that a field has, or that others have for it."""
    plain = name.strip("-").replace("-", "_").lower()
    if plain in _OTHERS:
        return _OTHERS[plain]
    for section in SECTIONS:
        if any(field.name == plain for field in section.fields):
            return Place(section.path(plain))
    return None


def advice(name: str, section: str = "") -> str:
    """To whoever wrote this name in a section, or beside all; empty where none is known."""
    plain = name.strip("-").replace("-", "_").lower()
    place = _WITHIN.get(section, {}).get(plain) or place_of(name)
    if place is None:
        return ""
    within, _, field = place.path.rpartition(".")
    meant = field if within == section else place.path
    return f"did you mean {meant!r}" + (f" ({place.how})?" if place.how else "?")
