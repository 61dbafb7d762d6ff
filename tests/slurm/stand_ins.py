"""What stands in for Apptainer and for pyxis, neither of which can be installed here: programs that
take the documented options, refuse all others as the real ones do, and run the command where of
/tmp and of the user's home nothing is seen but what was asked to be mounted, and where the image
cannot be written to: Apptainer's never, enroot's not without ENROOT_ROOTFS_WRITABLE. In pyxis' the
user has another number, by a user namespace, as clusters may set it up.

Options are those of `apptainer exec` (its action_flags.go; `--pwd` is its older name of `--cwd`,
and Singularity's) and of pyxis' args.c. Known lies: the image is this computer; nothing is fetched
from a registry; the user's number is not root's, since whoever tests is root already; and Python,
where it is below the user's home, is seen there, as this checkout is below /tmp.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

PYTHON = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
_HEAD = """\
#!{python}
import json, os, sys
CALLS, IMAGES, ENTER = {calls!r}, {images!r}, {enter!r}
PATH = {path!r}  # the image's
OF_THE_IMAGE = {of_the_image!r}


def refuse(words):
    print(words, file=sys.stderr)
    sys.exit(255)


def within(image, folder, mounts, before, command, writable="", another=""):
    if image not in IMAGES:
        refuse(f"no such image: {{image}}")
    for source, target in mounts:
        if not os.path.isdir(source) or not target.startswith("/"):
            refuse(f"cannot be mounted: {{source}} at {{target}}")
    with open(CALLS, "a") as calls:
        print(json.dumps([image, mounts, command]), file=calls)
    flat = [word for pair in [*OF_THE_IMAGE, *mounts] for word in pair]
    entered = ["unshare", "-m", "sh", ENTER, PATH, folder, writable, another, *flat, "--", *command]
    os.execvp((before + entered)[0], before + entered)


def taken(words, with_value, without):
    \"\"\"Options by name, each with its values, and what is behind them.\"\"\"
    found, rest = {{}}, list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in with_value:
            found.setdefault(name, []).append(value if equals else rest.pop(0))
        elif word in without:
            found.setdefault(word, []).append("")
        else:
            refuse(f"unknown flag: {{word}}")
    return found, rest


def one(found, name):
    if len(found.get(name, [])) != 1 or not found[name][0]:
        refuse(f"{{name}} is wanted once, with a value: {{found.get(name)}}")
    return found[name][0]


"""
_APPTAINER = """\
if sys.argv[1:2] != ["exec"]:
    refuse(f"unknown command: {sys.argv[1:2]}")
found, rest = taken(
    sys.argv[2:],
    {"-B", "--bind", "--cwd", "--pwd", "--env", "-H", "--home", "-W", "--workdir"},
    {"--nv", "--rocm", "--no-home", "-e", "--cleanenv", "-c", "--contain", "-C", "--containall"},
)
if len(rest) < 2:
    refuse("an image and a command are wanted")
mounts = []
for spec in [each for given in found.get("--bind", []) for each in given.split(",")]:
    source, _, target = spec.partition(":")
    if ":" in target and target.rpartition(":")[2] not in ("ro", "rw"):
        refuse(f"no such mount options: {spec}")
    mounts.append([source, target.partition(":")[0] or source])
if not {"--nv", "--rocm"} & set(found):
    refuse("no GPU would be seen")
within(rest[0], one(found, "--pwd"), mounts, [], rest[1:])
"""
_SRUN = """\
SRUN = {srun!r}
PYXIS = {{"--container-image", "--container-mounts", "--container-workdir", "--container-name",
         "--container-save", "--container-env"}}
FLAGS = {{f"--{{no}}container-{{each}}" for no in ("", "no-")
         for each in ("mount-home", "remap-root", "entrypoint")}}
SLURM = {{"--export", "--ntasks", "--ntasks-per-node", "--cpus-per-task", "--kill-on-bad-exit",
         "--wait", "--input"}}
found, rest = taken(sys.argv[1:], PYXIS | SLURM, FLAGS)
if "--container-image" not in found:
    os.execv(SRUN, [SRUN, *sys.argv[1:]])
if {{"--container-mount-home", "--no-container-mount-home"}} <= set(found):
    refuse("pyxis: both --container-mount-home and --no-container-mount-home were specified")
mounts = []
for entry in one(found, "--container-mounts").split(","):
    parts = entry.split(":")
    if len(parts) > 3 or "" in parts or " " in entry:  # blanks part the words of its lines
        refuse(f"pyxis: --container-mounts: invalid format: {{entry}}")
    mounts.append([parts[0], parts[min(1, len(parts) - 1)]])
before = [SRUN, *(f"{{name}}={{value}}" for name in SLURM for value in found.get(name, []))]
writable = "y" if os.environ.get("ENROOT_ROOTFS_WRITABLE") in ("y", "yes", "1", "true") else ""
within(one(found, "--container-image"), one(found, "--container-workdir"), mounts, before, rest,
       writable, "another")
"""
_ENTER = """\
PATH=$1; export PATH
folder=$2 writable=$3 another=$4
shift 4
mount -t tmpfs none /mnt || exit 255
number=0 targets=
while [ "$1" != -- ]; do
  number=$((number + 1))
  mkdir /mnt/$number && mount --rbind "$1" /mnt/$number || exit 255
  echo "$2" > /mnt/$number.target
  shift 2
done
shift
case {python} in
  "$HOME"/*) ;;
  *) mount -t tmpfs -o ro none "$HOME" || exit 255 ;;
esac
mount -t tmpfs none /tmp || exit 255
each=0
while [ $each -lt $number ]; do
  each=$((each + 1))
  target=$(cat /mnt/$each.target)
  mkdir -p "$target" && mount --rbind /mnt/$each "$target" || exit 255
done
umount -l /mnt
[ -n "$writable" ] || mount -o remount,bind,ro / || exit 255
cd "$folder" || exit 255
[ -z "$another" ] || set -- unshare -U --map-user=4321 --map-group=4321 -- "$@"
exec "$@"
"""


class StandIns:
    """Found before the real ones by whoever has `bin` first in PATH."""

    def __init__(self, folder: Path, images: list[str]) -> None:
        """`images` are those that there are."""
        self.bin, self._calls = folder / "bin", folder / "calls"
        self.bin.mkdir(parents=True)
        self._calls.touch()
        enter = folder / "enter.sh"
        enter.write_text(_ENTER.replace("{python}", sys.base_prefix))
        head = _HEAD.format(
            python=sys.executable,
            calls=str(self._calls),
            images=images,
            enter=str(enter),
            of_the_image=[
                [str(each), str(each)]
                for each in dict.fromkeys((ROOT, Path(sys.prefix), Path(sys.base_prefix)))
                if each.is_relative_to("/tmp")
            ],
            path=f"{PYTHON}:/usr/bin:/bin",
        )
        for name, text in (
            ("apptainer", _APPTAINER),
            ("srun", _SRUN.format(srun=shutil.which("srun"))),
        ):
            (self.bin / name).write_text(head + text)
            (self.bin / name).chmod(0o755)

    def calls(self) -> list[tuple[str, list[list[str]], list[str]]]:
        """Image, what is mounted where, and command, of each that was taken."""
        lines = self._calls.read_text().splitlines()
        return [(image, mounts, command) for image, mounts, command in map(json.loads, lines)]
