"""What a rented machine does by itself, as a shell script: fetch the job, run it, save what it
saves, and end its group. Nothing of ours is on the machine but what the job brings.

It is begun with a few variables, which whoever makes the machine puts over it, and with functions
of its cloud: tools, there, fetch, pull, push, mark, noticed, address, members, end_group.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tradewind.base.version import __version__
from tradewind.export import images, launch, shell
from tradewind.export.asked import Asked
from tradewind.model import secrets
from tradewind.model.job import Job
from tradewind.model.plan import Plan

_TRIES = 3
_LONG_S = 600
_PATIENCE = 120
_LATE = 1.5
_LEAST_SAVE_S, _MOST_SAVE_S = 60, 900


_OPENING = """\
#!/bin/bash
# Of each machine, at its start. A machine that is replaced resumes from what was saved.
set -euo pipefail
: "${BUCKET:?} ${REGION:?} ${GROUP:?}" # put over this file by whoever makes the machine
export HOME="${HOME:-/root}" JOB="${JOB:-/job}"
mkdir -p "$JOB/checkpoints"
cd "$JOB"
"""
_ENDS = """\
over() { # NAME WORDS: what became of it, for whoever looks into the bucket
  trap - EXIT
  mark "$1" "$2" || true
  ended
}
ended() { # a group that stays is paid for: tried until it is
  trap - EXIT
  until end_group; do sleep "${LOOK_S:-5}"; done
  exit 0
}
# Whatever cannot go on costs nothing further.
trap 'code=$?; [ "$code" = 0 ] || over failed "a machine ended with code $code"' EXIT
again() { # COMMAND: five times, as what is far away does not always answer
  local try
  for try in 1 2 3 4 5; do
    if "$@"; then return 0; fi
    [ "$try" = 5 ] || sleep "${AGAIN_S:-10}"
  done
  return 1
}
if ! again tools; then # nothing can be said without: the group replaces this machine
  trap - EXIT
  shutdown -h now
  exit 1
fi
for each in finished failed; do # remove it from the bucket to run the job again
  if there "$each"; then ended; fi
done
"""
_SAVED = """\
  mkdir -p logs && cp log.txt "logs/$(address).txt"
  kept=yes
  again push checkpoints || kept=''
  push logs || true
  if [ -n "$told" ]; then
    exit 0 # the group replaces this machine
  fi
  if [ -z "$kept" ]; then
    over failed "what it saved last could not be put into the bucket"
  fi
"""
_FAILED = f"""\
  # What ran for a while, and lost another machine, is no failure of its own.
  [ $((SECONDS - began)) -lt {_LONG_S} ] || tries=0
  tries=$((tries + 1))
  if [ "$tries" -ge {_TRIES} ]; then
    over failed "exit code $code, {_TRIES} times; logs/ has what it said"
  fi
  pull checkpoints
"""


def script(asked: Asked, functions: str, secret: Callable[[secrets.Reference], str]) -> str:
    plan, job = asked.training("a machine")
    hours = math.ceil(plan.hours_high * _LATE)
    several = plan.nodes > 1
    return f"""\
{_OPENING}
# -- its cloud
{functions}
# -- its end
{_ENDS}
# -- the job
fetch job.tar.gz | tar -xzf -
pull checkpoints
{shell.exports(launch.variables(plan, job))}{_secrets(job, secret)}
{_prepared(asked)}
tries=0 saver=''
while :; do
{_meeting(plan.nodes, hours) if several else ""}\
{_started(plan, job)}\
{_watched(plan, hours)}\
{_SAVED}\
  if [ "$code" = 0 ]; then
{_outputs(job)}\
{_together(plan.nodes) if several else ""}\
    over finished "after $SECONDS s on the last machine"
  fi
{_FAILED}\
done
"""


def _secrets(job: Job, secret: Callable[[secrets.Reference], str]) -> str:
    found = ((name, secrets.parse(text)) for name, text in job.secrets.items())
    asks = "".join(
        f"{name}=$({shell.keyed(secret(each), each.key)})\nexport {name}\n" for name, each in found
    )
    return f"# Secrets: read here, by the machine's own identity.\n{asks}" if asks else ""


def _prepared(asked: Asked) -> str:
    """PyTorch is put there for the plan's accelerator: images have the driver alone."""
    assert asked.job is not None
    known = images.table()
    name, build = images.chosen(known, asked.chip)
    found = (
        f"# PyTorch {known.torch} for {asked.chip.name}: {name}"
        + (f", driver {build.driver} or newer" if build.driver else "")
        + ".\n"
        "if [ ! -e .prepared ]; then\n"
        "  again apt-get -qq -o DPkg::Lock::Timeout=600 update # the system's own may be at it\n"
        "  again apt-get -qq -o DPkg::Lock::Timeout=600 install -y python3-venv python3-dev gcc"
        " > /dev/null\n"
        "  python3 -m venv .venv\n"
        f"  .venv/bin/pip install --quiet --index-url {build.index} torch=={known.torch}\n"
    )
    if asked.imports_us:
        found += f'  .venv/bin/pip install --quiet "tradewind=={__version__}"\n'
    found += 'fi\nexport PATH="$JOB/.venv/bin:$PATH"\n'
    if asked.job.setup:
        found += (
            "if [ ! -e .prepared ]; then\n"
            f"  /bin/bash -e -c {shell.quoted(asked.job.setup.strip())}\nfi\n"
        )
    return found + ": > .prepared\n"


def _meeting(nodes: int, hours: int) -> str:
    return f"""\
  # Machines meet at the first of their addresses, once all {nodes} are there.
  found=''
  until [ "$(echo "$found" | wc -l)" -ge {nodes} ] && echo "$found" | grep -qxF "$(address)"; do
    if [ "$SECONDS" -ge "${{PATIENCE_S:-{hours * 3600}}}" ]; then # those who came are paid for
      over failed "not all {nodes} machines came within {hours} hours"
    fi
    sleep "${{LOOK_S:-5}}"
    found=$(members) || found='' # asked again
  done
  MASTER_ADDR=$(echo "$found" | head -n 1)
  NODE_RANK=$(($(echo "$found" | grep -nxF "$(address)" | cut -d : -f 1) - 1))
  export MASTER_ADDR NODE_RANK MASTER_PORT={launch.PORT}
"""


def _started(plan: Plan, job: Job) -> str:
    command = launch.command(
        plan, job, rank='"$NODE_RANK"', first='"$MASTER_ADDR"', port='"$MASTER_PORT"'
    )
    note = "  # shellcheck disable=SC2016 # filled in once it is known\n" if "$" in command else ""
    return f"""\
  began=$SECONDS saved=$SECONDS code=0 told=''
  # In a group of its own, so that all of its processes are told at once.
{note}\
  setsid /bin/bash -c {shell.quoted(command)} >> log.txt 2>&1 &
  job=$!
"""


def _watched(plan: Plan, hours: int) -> str:
    """Until it ends, with `code`."""
    save_s = min(max(plan.checkpoint_every_s, _LEAST_SAVE_S), _MOST_SAVE_S)
    return f"""\
  while kill -0 "$job" 2> /dev/null; do
    if [ -z "$told" ] && noticed; then # it is taken soon: time to save once more
      told=yes
      kill -TERM -- "-$job" 2> /dev/null || true
    fi
    # So much is lost at worst, where a machine goes without a word.
    if [ $((SECONDS - saved)) -ge {save_s} ] && ! kill -0 "$saver" 2> /dev/null; then
      saved=$SECONDS
      push checkpoints &
      saver=$!
    fi
    # Half as much again as the plan's {plan.hours_high:.1f} hours: what hangs, ends.
    if [ "$SECONDS" -ge {hours * 3600} ]; then
      over failed "not done after {hours} hours"
    fi
    sleep "${{LOOK_S:-5}}"
  done
  wait "$job" || code=$?
  wait
"""


def _together(nodes: int) -> str:
    """The group is ended by its first machine, once the others have saved all they have."""
    return f"""\
    again mark "ranks/$NODE_RANK" saved
    [ "$NODE_RANK" = 0 ] || exit 0
    for rank in $(seq 1 {nodes - 1}); do
      for _ in $(seq {_PATIENCE}); do
        if there "ranks/$rank"; then break; fi
        sleep "${{LOOK_S:-5}}"
      done
    done
"""


def _outputs(job: Job) -> str:
    if not job.outputs:
        return ""
    patterns = " ".join(shell.quoted(each) for each in job.outputs)
    return (
        "    mkdir -p outputs && shopt -s nullglob globstar\n"
        f"    for each in {patterns}; do\n"
        '      for file in $each; do cp --parents -r "$file" outputs/; done\n'
        "    done\n    again push outputs\n"
    )
