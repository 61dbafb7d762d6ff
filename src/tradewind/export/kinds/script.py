"""`script`: the plain commands in a shell script, for one machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from tradewind.export import engines, images, launch, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Setting

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = (engines.MODEL,)


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if asked.serving is not None:
        return _service(asked, settings)
    plan, job = shell.one_machine("script", asked)
    checked = shell.counted(asked.chip, plan.accelerator_count)
    setup = ""
    if job.setup:
        setup = (
            "\n# Once on each machine: remove .prepared to do it again.\n"
            f"if [ ! -e .prepared ]; then\n  /bin/sh -e -c {shlex.quote(job.setup.strip())}\n"
            "  : > .prepared\nfi\n"
        )
    text = (
        f"#!/bin/sh\nset -eu\n{_folder(asked)}\n{checked}{shell.needed(job)}"
        f"{shell.exports(launch.variables(plan, job))}{setup}\n"
        "# A job that saves when it gets SIGTERM gets it from whoever stops this script.\n"
        f"{_started(launch.command(plan, job))}\n"
    )
    return Exported({"run.sh": File(text, executable=True)})


def _started(command: str) -> str:
    """In place of the script, where it is one command; what is more, a shell of its own reads."""
    simple = shell.is_simple(command)
    return f"exec {command}" if simple else f"exec /bin/sh -c {shell.quoted(command)}"


def _folder(asked: Asked) -> str:
    path = shell.within_quotes(asked.job_path)
    return (
        "# The job's folder, from where this file lies.\n"
        'here=$(dirname "$0")\n'
        f'cd "${{JOB_FOLDER:-$here/{path}}}"\n'
    )


def _service(asked: Asked, settings: Mapping[str, str]) -> Exported:
    pool = shell.one_pool("script", asked)
    _, serve = asked.service("script")
    known = images.table()
    weights = engines.weights_of(serve, known, settings["model"])
    engine = engines.started(pool, serve, known, weights)
    text = (
        "#!/bin/sh\nset -eu\n\n"
        f"{shell.counted(asked.chip, pool.replicas * pool.tp)}"
        f"# {engine.package}: pip install {engine.package}\n"
        f"command -v {engine.command[0]} > /dev/null || {{\n"
        f'  echo "{engine.command[0]} is missing: pip install {engine.package}" >&2\n'
        "  exit 2\n}\n\n"
    )
    if pool.replicas == 1:
        text += f"exec {engines.shell(engine)}\n"
    else:
        text += _replicas(pool.replicas, pool.tp, engine)
    return Exported({"run.sh": File(text, executable=True)})


def _replicas(replicas: int, tp: int, engine: engines.Engine) -> str:
    started = "".join(
        f"CUDA_VISIBLE_DEVICES={','.join(str(first * tp + each) for each in range(tp))} \\\n  "
        + engines.shell(engine).replace(f"--port={engines.PORT}", f"--port={engines.PORT + first}")
        + ' &\npids="$pids $!"\n'
        for first in range(replicas)
    )
    return (
        f"# {replicas} replicas, on {tp} accelerators each; the end of one is the end of all.\n"
        "pids=''\n"
        f"{started}"
        "end() {\n"
        '  for one in $pids; do kill -TERM "$one" 2> /dev/null || true; done\n'
        "  wait\n}\n"
        "trap 'end; exit 143' TERM INT\n"
        "while :; do\n"
        "  for each in $pids; do\n"
        '    kill -0 "$each" 2> /dev/null || { end; exit 1; }\n'
        "  done\n"
        "  sleep 2 &\n  wait $!\n"
        "done\n"
    )
