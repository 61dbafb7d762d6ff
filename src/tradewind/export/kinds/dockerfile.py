"""`dockerfile`: an image for the plan's accelerator, its driver and PyTorch.

Two stages of one base: a virtual environment is made in the first, and copied into the second,
which has a user of its own and nothing that only builds need.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

from tradewind.base.version import __version__
from tradewind.export import engines, images, launch, registry, setups
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Refused, Setting

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS = (
    Setting(
        "build",
        "Which build of PyTorch. auto: the first that has kernels for the plan's accelerator.",
        ("auto", "cu130", "cu126", "rocm7.2", "neuron", "tpu", "cpu"),
    ),
    engines.MODEL,
)
_PIP = "--mount=type=cache,target=/root/.cache/pip"


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if asked.serving is None:
        asked.training("dockerfile")
    known = images.table()
    name, build = images.chosen(known, asked.chip, settings["build"])
    platform = images.platform(known, asked.chip)
    notes = []
    if asked.serving is not None:
        text, more = _service(asked, settings, known, name, build)
    else:
        text, more = _training(asked, known, name, build)
    notes += more
    text = _top(asked, known, name, build, platform) + text
    outputs = asked.job.outputs or () if asked.job is not None else ()
    ignored = images.ignored() + "".join(f"{each}\n" for each in outputs)
    return Exported(
        {
            "Dockerfile": File(text),
            "Dockerfile.dockerignore": File(
                "# What is not sent to the build: secrets, histories, caches, outputs of the job.\n"
                + ignored
            ),
        },
        (f"built from the job's folder: tradewind image build DIR, or docker build --platform"
         f" {platform} -f DIR/Dockerfile JOB_FOLDER", *notes),
    )  # fmt: skip


def _top(asked: Asked, known: images.Table, name: str, build: images.Build, platform: str) -> str:
    chip = asked.chip
    why = [f"{chip.vendor} {chip.name}, {chip.architecture} ({chip.compute_capability})"]
    if build.cuda:
        why.append(
            f"PyTorch {known.torch} for CUDA {build.cuda} ({name}) has kernels for it; the host"
            f" needs driver {build.driver} or newer"
        )
    elif not build.brings_torch:
        why.append(f"PyTorch {known.torch}, {name}")
    why.append(f"of the table of {known.as_of}; {platform}")
    lines = "".join(f"# {line}\n" for line in why)
    return f"# syntax=docker/dockerfile:1\n\n{lines}ARG BASE={build.base}\n"


def _training(
    asked: Asked, known: images.Table, name: str, build: images.Build
) -> tuple[str, list[str]]:
    plan, job = asked.training("dockerfile")
    parts = setups.parted(job.setup)
    torch = "" if build.brings_torch else f"torch=={known.torch}"
    notes: list[str] = []
    installs = []
    if torch:
        installs.append(f"pip install --index-url {build.index} {torch}")
    lock = "requirements.lock" in asked.files
    mounts = []
    for words in parts.installs:
        for file in _files_of(words):
            mounts.append(file)
    if lock:
        installs.append("pip install --no-deps --require-hashes -r requirements.lock")
        mounts = ["requirements.lock"]
    else:
        installs += [f"pip install {words}" for words in parts.installs]
        if parts.installs:
            notes.append(
                "no requirements.lock in the job's folder, so versions are not locked:"
                " `uv pip compile --generate-hashes` or pip-tools write one; then export again"
            )
    for file in mounts:
        if file not in asked.files:
            notes.append(f"{file} is not in the job's folder yet, and the build needs it")
    if asked.imports_us:
        installs.append('pip install "tradewind==$TRADEWIND"')
    start = " && ".join([*parts.rest, f"exec {launch.command(plan, job, **_SEVERAL)}"])
    variables = launch.variables(plan, job)
    text = _stages(
        installs, mounts, ours=asked.imports_us, build=build, compiler="compile" in plan.stack
    )
    text += _env({**_device(build), **variables})
    if job.secrets:
        names = ", ".join(f"{each} ({where})" for each, where in job.secrets.items())
        text += f"# At each start, and never in the image: {names}\n"
    text += (
        "WORKDIR /job\nCOPY --chown=10001:10001 . .\nUSER 10001:10001\n"
        f"CMD {json.dumps(['/bin/sh', '-c', start], ensure_ascii=False)}\n"
    )
    return text, notes


_SEVERAL = {"rank": '"$NODE_RANK"', "first": '"$MASTER_ADDR"', "port": '"${MASTER_PORT:-29500}"'}
"""Where there are several machines, whoever starts the containers says which is which."""


def _service(
    asked: Asked, settings: Mapping[str, str], known: images.Table, name: str, build: images.Build
) -> tuple[str, list[str]]:
    serving, serve = asked.service("dockerfile")
    pool = serving.pools[0]
    kinds = {(each.engine, each.tp, each.weights) for each in serving.pools}
    if len(kinds) > 1:
        raise Refused(
            "the plan has pools whose replicas are started in different ways, and an image has one",
            nearest="kubernetes, which has a deployment for each",
        )
    if not build.cuda:
        raise Refused(
            f"images of {pool.engine} are made for NVIDIA's GPUs, and {asked.chip.name} is none",
            nearest="limits.accelerators: [L40S, H100*]",
        )
    weights = engines.weights_of(serve, known, settings["model"])
    engine = engines.started(pool, serve, known, weights)
    installs = [
        f"pip install --extra-index-url {build.index} torch=={known.torch} {engine.package}"
    ]
    text = _stages(installs, [], ours=False, build=build, compiler=True)
    text += _env({**_device(build), "HF_HOME": "/models"})
    text += (
        'VOLUME ["/models"]\n'
        f"EXPOSE {engines.PORT}\n"
        "# Loading weights may take minutes: until then it counts as starting.\n"
        "HEALTHCHECK --interval=10s --timeout=5s --start-period=15m --retries=3 \\\n"
        f'  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('
        f"'http://127.0.0.1:{engines.PORT}{engine.health}', timeout=4)\"]\n"
        "WORKDIR /job\nUSER 10001:10001\n"
        f"CMD {json.dumps(list(engine.command))}\n"
    )
    return text, [f"{weights} is fetched at the first start into /models: mount a disk there"]


def _stages(
    installs: list[str], mounts: list[str], *, ours: bool, build: images.Build, compiler: bool
) -> str:
    if build.brings_torch and "ubuntu:" not in build.base:
        python = ""  # the base has it, and its PyTorch
        make = "python3 -m venv --system-site-packages /opt/venv"
    else:
        python = "python3.12=3.12.* python3.12-venv=3.12.*"
        make = '"python$PYTHON" -m venv /opt/venv'
    bound = " \\\n".join(
        f"    --mount=type=bind,source={file},target=/build/{file}"
        for file in dict.fromkeys(mounts)
    )
    steps = " \\\n && ".join(installs)
    found = "ARG PYTHON=3.12\n"
    if ours:
        found += "# The script imports it; PIP_FIND_LINKS may name a place with its wheel.\n"
        found += f"ARG TRADEWIND={__version__}\nARG PIP_FIND_LINKS=\n"
    found += "\nFROM ${BASE} AS build\nARG PYTHON\n"
    found += "ARG TRADEWIND\nARG PIP_FIND_LINKS\n" if ours else ""
    found += _apt("build", python)
    found += (
        "ENV PATH=/opt/venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1\nWORKDIR /build\n"
        f"RUN {make}\n"
    )
    if any(" -r " not in step and "==" not in step for step in installs):
        found += "# Versions are as the job's setup has them.\n# hadolint ignore=DL3013\n"
    if installs:
        found += f"RUN {_PIP}" + (f" \\\n{bound}" if bound else "") + f" \\\n    {steps}\n"
    more = " gcc=4:13.* libc6-dev=2.39-* python3.12-dev=3.12.*" if compiler and python else ""
    found += "\nFROM ${BASE}\nARG PYTHON\n"
    if more:
        found += "# The compiler is for kernels that are made at run time (Triton).\n"
    found += _apt("run", python.replace(" python3.12-venv=3.12.*", "") + more)
    found += (
        "RUN groupadd --gid 10001 job && useradd --uid 10001 --gid 10001 --create-home job \\\n"
        " && install -d -o job -g job /job /job/checkpoints /models\n"
        "COPY --from=build /opt/venv /opt/venv\n"
    )
    return found


def _apt(stage: str, packages: str) -> str:
    """Left out where the base has that Python: a base of one's own, without a network. A cache for
    each stage: two that are built at once would wait for apt's lock, and older buildahs for ever
    where the mount is locked."""
    if not packages:
        return ""
    mounts = " \\\n    ".join(
        f"--mount=type=cache,id=apt-{stage}-{name},target=/var/{name}/apt"
        for name in ("cache", "lib")
    )
    return (
        f"RUN {mounts} \\\n"
        '    command -v "python$PYTHON" || { apt-get update \\\n'
        f" && apt-get install -y --no-install-recommends {packages}; }}\n"
    )


def _device(build: images.Build) -> dict[str, str]:
    found = {"PATH": "/opt/venv/bin:$PATH"}
    if build.cuda:
        found |= {
            "NVIDIA_VISIBLE_DEVICES": "all",
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "NVIDIA_REQUIRE_CUDA": f"cuda>={build.cuda.partition('.')[0]}.0",
        }
    return found


def _env(variables: Mapping[str, str]) -> str:
    """Quoted, so that nothing in a value is filled in; but for PATH, where it is meant."""
    lines = [
        f"{name}={value}" if name == "PATH" else f"{name}={_quoted(value)}"
        for name, value in variables.items()
    ]
    return "ENV " + " \\\n    ".join(lines) + "\n"


def _quoted(value: str) -> str:
    if value and all(each.isalnum() or each in "._-/,:=>+@%" for each in value):
        return value if ">" not in value else f'"{value}"'
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def _files_of(words: str) -> list[str]:
    parts = words.split()
    return [after for before, after in pairwise(parts) if before == "-r"]
