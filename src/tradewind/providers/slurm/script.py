"""What sbatch is asked for, and what runs on the nodes.

A launch's files lie in a folder of its own on the shared file system, which nobody else may read:
what the supervisors are told, the batch script, and what it prints. sbatch hands on nothing of the
environment that it is called in but what is named here.

A launch begins once, whoever submits it and how often: whoever submits holds a lock and looks for
the name first; jobs of one name run one after the other; and one that begins looks for a job of
its name with a lower number, and for the folder that one which has begun leaves: either ends it.
The number is what counts, since the job that was submitted first may be ended before it has begun.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping

from msgspec import Struct

from tradewind.model.run import Request
from tradewind.providers.boot.told import SPARE_S
from tradewind.providers.slurm import containers, jobs, names
from tradewind.providers.slurm.facts import WARN_S
from tradewind.providers.slurm.footprint import Cluster
from tradewind.providers.slurm.names import Name

_KEPT = "HOME,USER,LOGNAME,SHELL,PATH,LANG,MODULEPATH,SLURM_CONF"
_END = "@tw end of file"
_LOCK_S = 30
KNOWN = "now-30days"
"""So far back a job of the same name is looked for."""
_LOOKS = 12
"""How often it is looked whether a job that was just submitted has begun, every half second: on a
cluster with room it has, and the launch is answered with its machines."""


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of Slurm, for one machine of a way: what `usable` found (`Way.layout["slurm"]`)."""

    partition: str
    gres: str
    cpus: int = 0
    """0: as Slurm gives them."""
    mem_mb: int = 0
    """0: as Slurm gives it."""
    limit_s: int = 0
    """The longest that a job may last there; 0: for ever."""
    grace_s: int = 0
    """Between its notice and its end, a preempted job has so long."""
    arch: str = "x86_64"
    whole: bool = False
    """All of its node: nobody else is let in."""
    image: str = ""
    """Of a container, in which supervisor and job are; "": in none."""


def up_s(asked: Asked, hard_stop_s: int) -> int:
    """How long its machines may be up: with a time limit they save and end before it."""
    return min(hard_stop_s, asked.limit_s) if asked.limit_s else hard_stop_s


def minutes(asked: Asked, hard_stop_s: int) -> int:
    """--time. Schedulers fill gaps with what is short, so no more is asked for than may be used."""
    wanted = math.ceil((hard_stop_s + SPARE_S) / 60)
    return min(wanted, asked.limit_s // 60) if asked.limit_s else wanted


def flags(cluster: Cluster, asked: Asked, request: Request, name: Name, owner: str) -> list[str]:
    folder = f"{cluster.folder}/{name.text}"
    flags = [
        "--parsable",
        f"--job-name={name.text}",
        f"--comment={names.comment(owner, request)}",
        f"--partition={asked.partition}",
        f"--nodes={request.way.nodes}",
        f"--ntasks={request.way.nodes}",
        "--ntasks-per-node=1",
        f"--gres={asked.gres}",
        f"--time={minutes(asked, request.hard_stop_s)}",
        f"--signal=B:TERM@{WARN_S}",
        "--no-requeue",
        "--dependency=singleton",
        f"--export={_KEPT}",
        f"--chdir={folder}",
        f"--output={folder}/out",
        "--open-mode=append",
    ]
    optional = {
        "--cpus-per-task": str(asked.cpus or ""),
        "--mem": f"{asked.mem_mb}M" if asked.mem_mb else "",
        "--account": cluster.account,
        "--qos": cluster.qos,
        "--constraint": cluster.constraint,
    }
    flags += [f"{flag}={value}" for flag, value in optional.items() if value]
    return [*flags, "--exclusive"] if asked.whole else flags


def batch(
    cluster: Cluster, asked: Asked, request: Request, name: Name, place: str, store_url: str
) -> str:
    """Runs on the first node: one step with a task on each node, and what Slurm signals goes to
    all of them, by Slurm: an srun that is sent SIGTERM kills them at once. A task that ends leaves
    the others alone: their supervisors tell."""
    folder = f"{cluster.folder}/{name.text}"
    cpus = f" --cpus-per-task={asked.cpus}" if asked.cpus else ""
    exports = {
        "TRADEWIND_MACHINE_STEM": name.stem(place),
        "TRADEWIND_LIMIT_S": str(60 * minutes(asked, request.hard_stop_s)),
        "TRADEWIND_GRACE_S": str(asked.grace_s),
    }
    exports |= containers.exports(cluster, asked.image)
    if cluster.interfaces:
        exports |= dict.fromkeys(("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"), cluster.interfaces)
    lines = [f"export {key}={shlex.quote(value)}" for key, value in exports.items()]
    sweep, step = "", '"$SLURM_JOB_ID.0"'
    if _in_pyxis(cluster, asked):
        # Where ranks cannot ask Slurm, a step on the nodes themselves does it, if one can be had.
        tasks = f"--ntasks={request.way.nodes} --ntasks-per-node=1 --input=none"
        swept = shlex.quote(f"scratch={_scratch(cluster)}\n{_SWEEP}")
        sweep, step = f"srun {tasks} sh -c {swept}\n", '"$SLURM_JOB_ID"'
    within = containers.srun(cluster, asked.image, folder, store_url)
    user, title = shlex.quote(cluster.user), shlex.quote(name.text)
    return f"""\
#!/bin/sh
umask 077
cd {shlex.quote(folder)} || exit 1
for each in $(
  squeue -h -a -t all -u {user} --name={title} -o %A
  sacct -nPX -u {user} --name={title} -S {KNOWN} -o JobIDRaw
); do
  if [ "$each" -lt "$SLURM_JOB_ID" ]; then
    echo "job $each is of this launch too: nothing is done twice"
    exit 0
  fi
done
if ! mkdir begun; then
  echo "this launch has begun before: nothing is done twice"
  exit 0
fi
{chr(10).join(lines)}
TRADEWIND_UID=$(id -u) # in a container it may be another
export TRADEWIND_UID
scratch={_scratch(cluster)}
{sweep}srun{within} --export=ALL --ntasks={request.way.nodes} --ntasks-per-node=1{cpus} \\
  --kill-on-bad-exit=0 --wait=0 --input=none sh ./rank.sh &
ours=$!
trap 'scancel --signal=TERM {step} 2> /dev/null' TERM
wait "$ours"
code=$?
while kill -0 "$ours" 2> /dev/null; do # the wait was cut short by a signal
  wait "$ours"
  code=$?
done
trap '' TERM
# Of a rank on this node whose shell was killed.
rm -rf "$scratch/tradewind-$TRADEWIND_UID-$SLURM_JOB_ID-"*
[ "$code" != 0 ] || rm -rf {shlex.quote(folder)}
exit "$code"
"""


def _in_pyxis(cluster: Cluster, asked: Asked) -> bool:
    return bool(asked.image) and cluster.containers == containers.PYXIS


_STEM = "stem=$scratch/tradewind-${TRADEWIND_UID:-$(id -u)}-\n"
_SWEEP = (
    _STEM
    + """\
sweep() {
  for old in "$stem"*; do
    job=${old#"$stem"}
    job=${job%%-*}
    [ -O "$old" ] && [ "$job" != "$SLURM_JOB_ID" ] || continue
    if said=$(squeue -h -j "$job" -o %T 2>&1); then
      [ -n "$said" ] || rm -rf "$old"
    else
      case $said in *"Invalid job id"*) rm -rf "$old" ;; esac
    fi
  done
}
sweep
"""
)
"""Below $scratch."""


def _scratch(cluster: Cluster) -> str:
    return shlex.quote(cluster.scratch) if cluster.scratch else '"${TMPDIR:-/tmp}"'


def rank(cluster: Cluster, asked: Asked, name: Name, store_url: str) -> str:
    """Runs on each node: below a folder of its own, of which nothing stays. A shell that is killed
    removes nothing: what jobs of ours that are over have left here, the next one removes, when it
    begins and when it ends, for one that was killed may be over only then. Where Slurm cannot tell
    whether a job is over, it is left."""
    prepare, sweep, again = "\n".join(cluster.prepare), _SWEEP, "sweep\n"
    if _in_pyxis(cluster, asked):  # this is within the container already, and they are for the node
        prepare, sweep, again = "", _STEM, ""
    folder = f"{cluster.folder}/{name.text}"
    within = containers.begin(cluster, asked.image, folder, store_url)
    at_home = 'env HOME="$home/home" ' if asked.image else ""
    return f"""\
umask 077
scratch={_scratch(cluster)}
{sweep}home=$stem$SLURM_JOB_ID-$SLURM_PROCID
rm -rf "$home" && mkdir -p "$home/home" || exit 1
TRADEWIND_HOME=$home
export TRADEWIND_HOME
{prepare}
{within}{at_home}sh ./start.sh &
ours=$!
trap 'kill -TERM "$ours" 2> /dev/null' TERM
wait "$ours"
code=$?
while kill -0 "$ours" 2> /dev/null; do
  wait "$ours"
  code=$?
done
trap '' TERM # which Slurm may send to all processes of a step, so to rm as well
cd / && rm -rf "$home"
{again}exit "$code"
"""


def launch(cluster: Cluster, name: Name, flags: list[str], files: Mapping[str, str]) -> str:
    """What is run on the login node. Where a job of that name is known already, nothing is
    submitted; nor where Slurm cannot tell, nor where setup has not been: what the store says could
    name any host that its reader may log in to."""
    mark = shlex.quote(f"{cluster.folder}/{names.mark(name.owner)}")
    folder = shlex.quote(f"{cluster.folder}/{name.text}")
    look = jobs.asking(cluster.user, name.text)
    written = "\n".join(
        f"cat > {shlex.quote(each)} << '{_END}' || return 1\n{text.rstrip(chr(10))}\n{_END}"
        for each, text in files.items()
    )
    submit = " ".join(shlex.quote(each) for each in flags)
    return f"""\
umask 077
name={shlex.quote(name.text)} user={shlex.quote(cluster.user)}
prepare() {{
  said=$(exec 2>&1; mkdir -p {folder} && : > {folder}/lock) || return 1
  cd {folder} && exec 9> lock || return 1
  command -v flock > /dev/null 2>&1 || return 0
  said="another has held its lock for {_LOCK_S} s"
  flock -w {_LOCK_S} 9
}}
known() {{
  squeue -h -a -t all -u "$user" --name="$name" -o %i || return 1
  sacct -nPX -u "$user" --name="$name" -S {KNOWN} -o JobIDRaw || return 1
}}
state() {{ squeue -h -u "$user" --name="$name" -o %T; }}
submit() {{
{written}
  sbatch {submit} batch.sh
}}
if ! ask ours test -O {mark}; then
  :
elif prepare; then
  ask folder true
  found=$(known 2>&1)
  ask known test $? = 0 || printf '%s\\n' "$found" | sed 's/^/@tw error /'
  if [ "$code" = 0 ] && [ -z "$found" ]; then
    if ask sbatch submit; then
      looks=0
      while [ $looks -lt {_LOOKS} ] && [ "$(state)" = PENDING ]; do
        sleep 0.5
        looks=$((looks + 1))
      done
    fi
  fi
else
  ask folder sh -c 'printf "%s\\n" "$0" >&2; exit 1' "$said"
fi
{look}
"""
