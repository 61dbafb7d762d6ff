"""What of its machine's environment a job gets. Pure.

An allow-list: on a user's own computer the environment holds tokens and keys of everything that the
user works with, and a job is often other people's code. What a job needs besides, its workload says
(`run.env`, `run.secrets`). The job runs as the same user and can read the same files: this keeps
secrets from where they are copied without a thought (a crash report, an experiment tracker), and is
not a sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tradewind.model import buckets

_NAMES = frozenset(
    (
        # who and where
        "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "TZ", "LANG", "LANGUAGE",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "HF_HOME",
        # whether to ask the world at all, and quietly
        "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT",
        "WANDB_MODE", "TOKENIZERS_PARALLELISM",
        # how to reach the world
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        # what the interpreter and its libraries are
        "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "VIRTUAL_ENV", "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE",
    )
)  # fmt: skip
_PROXIES = frozenset(("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"))
"""Written in small letters or capitals."""
_PREFIXES = (
    "LC_",
    "TRADEWIND_",  # ours; by TRADEWIND_MACHINE a machine's processes are found
    # devices, and how the processes of a training talk to each other
    "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", "HIP_", "ROCR_", "TPU_", "LIBTPU_", "PJRT_",
    "NCCL_", "GLOO_", "UCX_", "FI_", "RDMAV_",
    # PyTorch, JAX and what they compute with
    "JAX_", "XLA_",
    "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "OMP_", "MKL_", "KMP_", "GOMP_", "OPENBLAS_",
)  # fmt: skip


def inherited(machine: Mapping[str, str], addresses: Iterable[str]) -> dict[str, str]:
    """`addresses` are what the job must reach: its store, for checkpoints, and its data."""
    schemes = {address.partition("://")[0] for address in addresses}
    there = [buckets.STORES[scheme] for scheme in schemes if scheme in buckets.STORES]
    wanted = _PREFIXES + tuple(prefix for each in there for prefix in each.prefixes)
    return {
        name: value
        for name, value in machine.items()
        if name in _NAMES or name.lower() in _PROXIES or name.startswith(wanted)
    }
