"""Container images on a cluster: by pyxis, which gives srun options of enroot's, or by Apptainer,
which each node runs itself. Which of them a cluster has, whoever sets it up says.

In a container there is of the node's file systems what is mounted: the launch's folder, the
scratch folder, and the store where that is a folder. The user's home is not there, and an image may
be read-only, so HOME is a folder in the machine's scratch: what libraries cache and `pip install`
puts there goes with the machine. Within pyxis' containers the user may have another number (root is
what clusters may map them to), and Slurm's commands are not there.
"""

from __future__ import annotations

import re
import shlex
from urllib.parse import unquote, urlsplit

from tradewind.base.errors import InvalidValue
from tradewind.providers.slurm.footprint import Cluster

PYXIS, APPTAINER = "pyxis", "apptainer"
KINDS = (PYXIS, APPTAINER)
_FILE = re.compile(r"/[\w./+-]+\.(sif|sqsh)", re.ASCII)


def is_file(text: str) -> bool:
    """An image as a file on a shared file system: Apptainer's .sif, enroot's .sqsh."""
    return _FILE.fullmatch(text) is not None


def chosen(cluster: Cluster, wanted: str, where: str) -> str:
    """The image that a job runs in; "": in none. `wanted`: that it names."""
    image = wanted or cluster.image
    if cluster.containers == PYXIS and image.endswith(".sif"):
        raise InvalidValue(
            f"{image} is Apptainer's, and {where} runs containers by pyxis",
            hint=f"`enroot import docker://IMAGE` makes a .sqsh; or --containers {APPTAINER} of"
            " tradewind setup slurm, where the cluster has that too",
        )
    if image and not cluster.containers:
        raise InvalidValue(
            f"run.image asks for {image}, and how {where} runs containers nobody has told",
            hint=f"tradewind setup slurm --containers {PYXIS}, or --containers {APPTAINER}; or"
            " leave run.image out: --prepare loads modules, and run.env names a Python environment",
        )
    return image


def reference(kind: str, image: str) -> str:
    """As the program takes it. enroot parts a registry from the rest by #."""
    if is_file(image):
        return image
    if kind == APPTAINER:
        return f"docker://{image}"
    host, slash, rest = image.partition("/")
    named = slash and (("." in host) or (":" in host) or host == "localhost")
    return f"{host}#{rest}" if named else image


def mounts(folder: str, store_url: str) -> list[str]:
    """Folders that a container sees by the same paths, beside its scratch."""
    parts = urlsplit(store_url)
    return [folder, *([unquote(parts.path)] if parts.scheme == "file" else [])]


def check_paths(cluster: Cluster, store_url: str) -> None:
    """Neither program takes every path: `,` and `:` part what is mounted, and pyxis hands it on in
    lines whose words are parted by blanks."""
    if not cluster.containers:
        return
    parts = ",: \t\n" if cluster.containers == PYXIS else ",:"
    for path in filter(None, [*mounts(cluster.folder, store_url), cluster.scratch]):
        if wrong := set(path) & set(parts):
            raise InvalidValue(
                f"{path!r} cannot be mounted into containers by {cluster.containers}: it has"
                f" {min(wrong)!r} in it",
                hint="--store, --folder and --scratch of tradewind setup slurm name folders",
            )


def srun(cluster: Cluster, image: str, folder: str, store_url: str) -> str:
    """Options of srun's, with a blank before them; $scratch is the shell's."""
    if not image or cluster.containers != PYXIS:
        return ""
    pairs = ",".join(f"{each}:{each}" for each in mounts(folder, store_url))
    words = [
        f"--container-image={reference(PYXIS, image)}",
        f"--container-workdir={folder}",
        "--no-container-mount-home",
    ]
    text = " ".join(map(shlex.quote, words))
    return f' {text} --container-mounts={shlex.quote(pairs)},"$scratch:$scratch"'


def exports(cluster: Cluster, image: str) -> dict[str, str]:
    """Of srun. enroot makes images read-only unless told otherwise: by a variable, and not by
    --container-writable, which older versions of pyxis refuse. They hand no variable on either, and
    go by the cluster's configuration."""
    return {"ENROOT_ROOTFS_WRITABLE": "y"} if image and cluster.containers == PYXIS else {}


def begin(cluster: Cluster, image: str, folder: str, store_url: str) -> str:
    """What stands before a command on a node, with a blank behind it."""
    if not image or cluster.containers != APPTAINER:
        return ""
    binds = " ".join(f"--bind {shlex.quote(each)}" for each in mounts(folder, store_url))
    return (
        '"$(command -v apptainer || echo singularity)" exec'
        f' "$([ -e /dev/kfd ] && echo --rocm || echo --nv)" --no-home {binds}'
        f' --bind "$scratch" --pwd {shlex.quote(folder)}'
        f" {shlex.quote(reference(APPTAINER, image))} "
    )
