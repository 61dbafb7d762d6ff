"""What a pipeline does with a plan, as steps of shell and the workload files that they run: the
kinds of pipelines differ in how a file of theirs says who runs what, when, and what always.

A rented machine ends whatever happens to the pipeline: a step that is always run stops all runs
with the pipeline's tag, what begins next stops what a lost runner left behind, and the machine
itself ends after `max_duration`, whoever looks.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from tradewind.base.version import __version__
from tradewind.export import engines, images, setups, shell
from tradewind.export.asked import Asked
from tradewind.export.commented import Why, text
from tradewind.export.exported import File, Refused, Setting
from tradewind.model import torchrun

SETTINGS = (
    Setting("test", "Command of the tests, on the runner.", example="make test"),
    Setting("rehearse", "Command of a little of the job, on the runner's processors.",
            example="python train.py --steps 50"),
    Setting("gpu_test", "Command of the test on a rented machine.", example="pytest -m gpu"),
    Setting("benchmark", "Command that is timed before and after the last commit, rented too.",
            example="python train.py --steps 200"),
    Setting("market", "Of rented machines.", ("spot", "any")),
    Setting("store", "Of the runs, its URL. Default: the host's variable TRADEWIND_STORE.",
            example="s3://BUCKET/PREFIX"),
    Setting("on", "Clouds to rent from. Default: all that are set up for the store.",
            example="CLOUD,CLOUD"),
    Setting("extras", "Of Tradewind on the runner: those of your clouds and your store.",
            example="cloud,kubernetes"),
    Setting("secrets", "Variables with logins to clouds and store, kept by the pipeline's host.",
            example="CLOUD_KEY_ID,CLOUD_KEY"),
    Setting("registry", "Where the image goes. Default: the host's own.",
            example="registry.example.com/team"),
    engines.MODEL,
)  # fmt: skip
FOLDER = "ci"
"""Below the repository's root: what the steps read."""
LIMIT_S = 300
"""A command of one's own that takes longer has passed."""
SLOWER = 1.10
_UP = "45m"
_HOURS = 0.25
_REHEARSED_S = 120
_LEAST_USD = 1
_TRIES = 5
_NARROW = ("--provider", "--region", "--market", "--accelerator", "--max-nodes")


class Step(NamedTuple):
    name: str
    script: str
    """Lines of sh, each of which has to succeed."""


class Pipeline(NamedTuple):
    test: tuple[Step, ...]
    rehearse: tuple[Step, ...]
    image: tuple[Step, ...]
    """None where no image can be made for the plan's accelerator."""
    gpu_test: tuple[Step, ...]
    benchmark: tuple[Step, ...]
    deploy: tuple[Step, ...]
    upkeep: tuple[Step, ...]
    """Now and then."""
    ends: Step
    """Always, after what rents."""
    files: Mapping[str, File]
    notes: tuple[str, ...]


def of(kind: str, asked: Asked, settings: Mapping[str, str], *, tool: str) -> Pipeline:
    """`tool` builds the image there."""
    serving = asked.serving is not None
    commands = _of_service(asked, settings) if serving else _of_job(kind, asked, settings)
    files = {f"{FOLDER}/gpu-test.yaml": _rented(asked, settings, "gpu-test", commands["gpu_test"])}
    rehearse: tuple[Step, ...] = (
        Step("The plan keeps its limits", f"tradewind plan {_work(asked)}"),
    )
    benchmark: tuple[Step, ...] = ()
    if not serving:
        files |= {
            f"{FOLDER}/rehearse.yaml": _rehearsed(asked, commands["rehearse"]),
            f"{FOLDER}/benchmark.yaml": _rented(
                asked, settings, "benchmark", "sh compare.sh", sent=True
            ),
            f"{FOLDER}/compare.sh": File(_compare(asked, commands["benchmark"]), executable=True),
        }
        rehearse += (
            Step(
                "Interrupted on the runner, resumed, done",
                f"tradewind run {FOLDER}/rehearse.yaml --folder {_job(asked)} --local --chaos 45s"
                ' --yes --store "${TMPDIR:-/tmp}/rehearsal"',
            ),
        )
        benchmark = _benchmark(asked, settings)
    tag = shlex.quote(f"ci={asked.name}")
    no_image = _no_image(asked)
    return Pipeline(
        test=(Step("Tests", commands["test"]),),
        rehearse=rehearse,
        image=() if no_image else _image(asked, tool),
        gpu_test=(
            _before(tag),
            Step("GPU test", _run(asked, settings, "gpu-test", f"--folder {_job(asked)}")),
        ),
        benchmark=(_before(tag), *benchmark) if benchmark else (),
        deploy=_deploy(asked, settings),
        upkeep=(
            Step("One pass over all runs", "tradewind tick"),
            Step("Machines that belong to no run", "tradewind sweep --yes"),
        ),
        ends=Step(
            "The rented machine ends",
            "# Again, where a cloud or the store does not answer.\n"
            "tries=0\n"
            f"until tradewind stop --tag {tag} && tradewind sweep --yes; do\n"
            "  tries=$((tries + 1))\n"
            f'  [ "$tries" -lt {_TRIES} ] || exit 1\n'
            "  sleep 10\n"
            "done",
        ),
        files=files,
        notes=_notes(asked, settings, no_image),
    )


def installs(settings: Mapping[str, str]) -> str:
    extras = ",".join(dict.fromkeys(["cloud", *filter(None, settings["extras"].split(","))]))
    return f'pip install "tradewind[{extras}]=={__version__}"'


def variables(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Names of secrets that the host keeps."""
    found = tuple(filter(None, (each.strip() for each in settings["secrets"].split(","))))
    for each in found:
        if not each.isidentifier():
            raise Refused(
                f"{each!r} is no name of a variable", nearest="--set secrets=NAME,NAME, no values"
            )
    return found


def _before(tag: str) -> Step:
    return Step("What a lost runner left behind", f"tradewind stop --tag {tag}")


def _of_job(kind: str, asked: Asked, settings: Mapping[str, str]) -> dict[str, str]:
    _, job = asked.training(kind)
    return {
        "test": _tests(asked, settings),
        "rehearse": settings["rehearse"] or limited(job.command, _REHEARSED_S),
        "gpu_test": settings["gpu_test"] or limited(job.command, LIMIT_S),
        "benchmark": settings["benchmark"] or job.command.strip(),
    }


def _of_service(asked: Asked, settings: Mapping[str, str]) -> dict[str, str]:
    for name in ("rehearse", "benchmark"):
        if settings[name]:
            raise Refused(
                f"{name} is of trainings, and {asked.name} is served",
                nearest="gpu_test, which starts the engine and asks it once",
            )
    return {
        "test": _tests(asked, settings),
        "gpu_test": settings["gpu_test"] or _asked_once(asked, settings),
    }


def _tests(asked: Asked, settings: Mapping[str, str]) -> str:
    job = asked.job
    before = setups.parted(job.setup if job is not None else None).installs
    inside = [f"cd {_job(asked)}"] if asked.job_path != "." else []
    lines = [*inside, *(f"pip install {words}" for words in before)]
    if settings["test"]:
        return "\n".join([*lines, settings["test"]])
    return "\n".join(
        [*lines, "pip install pytest", "# 5: there are no tests yet.",
         "python -m pytest -q || [ $? -eq 5 ]"]
    )  # fmt: skip


def limited(command: str, seconds: int) -> str:
    """Ends well, or is still at it after so long."""
    said = command.strip()
    inner = f"timeout {seconds} sh -c {shlex.quote(said)}"
    if torchrun.is_torchrun(said):
        several = torchrun.told(said, {"standalone": "", "nproc-per-node": "1"})
        inner = f"timeout {seconds} sh -c {shlex.quote(several)}"
    return f"{inner} || [ $? -eq 124 ]"


def _asked_once(asked: Asked, settings: Mapping[str, str]) -> str:
    """The engine as the plan starts it, which has to answer one request."""
    serving, serve = asked.service("a pipeline")
    known = images.table()
    weights = engines.weights_of(serve, known, settings["model"])
    engine = engines.started(serving.pools[0], serve, known, weights)
    at = f"http://127.0.0.1:{engines.PORT}"
    body = json.dumps({"model": weights, "prompt": "hello", "max_tokens": 8})
    return (
        f"{engines.shell(engine)} &\n"
        "engine=$!\n"
        "trap 'kill \"$engine\"' EXIT\n"
        f"until curl -fsS {at}{engine.health} > /dev/null; do\n"
        '  kill -0 "$engine" || exit 1\n'
        "  sleep 5\n"
        "done\n"
        f"curl -fsS {at}/v1/completions -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )


def _rented(
    asked: Asked, settings: Mapping[str, str], what: str, command: str, *, sent: bool = False
) -> File:
    """A workload of its own: one machine, little money, an end. `sent`: what is sent is not the
    job's folder, but one that has it twice."""
    job, bought = asked.job, asked.bought
    count = asked.serving.pools[0].tp if asked.serving is not None else 1
    setup = (job.setup or "").strip() if job is not None else ""
    if asked.serving is not None and not setup:
        _, serve = asked.service("a pipeline")
        known = images.table()
        weights = engines.weights_of(serve, known, settings["model"])
        setup = (
            f"pip install {engines.started(asked.serving.pools[0], serve, known, weights).package}"
        )
    if sent and setup:
        setup = f"cd after\n{setup}"
    markets = ["spot"] if settings["market"] == "spot" else ["spot", "on_demand"]
    usd = _budget(asked, count)
    told = asked.told()
    value = {
        "name": f"{asked.name}-{what}",
        "work": Why(
            {"hours": _HOURS, "on": f"{count}x{bought.accelerator}"},
            "One of the plan's accelerators, for minutes.",
        ),
        "limits": {
            "deadline": "2h",
            "confidence": "80%",  # what spot alone can keep in so short a time
            "budget": Why(f"${usd}", f"Three hours of what the plan's machines cost, for {count}."),
            "accelerators": [bought.accelerator],
            "markets": markets,
            "max_nodes": 1,
            **_places(asked),
        },
        "run": {
            **({"setup": setup} if setup else {}),
            "command": command,
            **({"env": told} if told else {}),
            **({"secrets": dict(job.secrets)} if job is not None and job.secrets else {}),
            "max_duration": Why(_UP, "The machine ends itself then, whatever the pipeline does."),
            "idle": "15m",
            "on_idle": "stop",
        },
    }  # fmt: skip
    return File(text(value))


def _rehearsed(asked: Asked, command: str) -> File:
    told = asked.told()
    value = {
        "name": f"{asked.name}-rehearsal",
        "work": {"hours": 0.1, "on": f"1x{asked.bought.accelerator}"},
        "limits": {
            "accelerators": [asked.bought.accelerator],
            "max_nodes": 1,
            **_places(asked),
        },
        "checkpoint": {"every": "10s"},
        "run": {
            "command": Why(command, "On the runner's processors: the start of the job."),
            **({"env": told} if told else {}),
            "max_duration": "15m",
        },
    }  # fmt: skip
    return File(text(value))


def _places(asked: Asked) -> dict[str, Any]:
    """Where the work may be, its tests may be too."""
    limits = asked.workload.limits
    named = {"providers": limits.providers, "regions": limits.regions, "exclude": limits.exclude}
    return {name: list(each) for name, each in named.items() if each}


def _budget(asked: Asked, count: int) -> int:
    bought = asked.bought
    dearest = max(bought.price_hour.values(), default=0)
    return max(_LEAST_USD, math.ceil(3 * dearest / 1e6 / bought.accelerator_count * count))


def _run(asked: Asked, settings: Mapping[str, str], what: str, folder: str) -> str:
    on = f" --on {shlex.quote(settings['on'])}" if settings["on"] else ""
    tag = shlex.quote(f"ci={asked.name}")
    return f"tradewind run {FOLDER}/{what}.yaml {folder}{on} --tag {tag} --yes"


def _benchmark(asked: Asked, settings: Mapping[str, str]) -> tuple[Step, ...]:
    return (
        Step(
            "This commit and the last, side by side",
            "rm -rf build/compared\n"
            "mkdir -p build/compared/before build/compared/after\n"
            "git archive HEAD^ | tar -x -C build/compared/before\n"
            "git archive HEAD | tar -x -C build/compared/after\n"
            f"cp {FOLDER}/compare.sh build/compared/",
        ),
        Step("Benchmark", _run(asked, settings, "benchmark", "--folder build/compared")),
    )


def _compare(asked: Asked, command: str) -> str:
    """On one machine, one after the other and back, so that neither has all the warm caches."""
    inner = command
    if torchrun.is_torchrun(command):
        inner = torchrun.told(command, {"standalone": "", "nproc-per-node": "1"})
    where = shell.within_quotes(asked.job_path)
    return f"""\
#!/bin/sh
# The job of two commits in turns, each {LIMIT_S} s at the most: microseconds for each step, where
# the job tells of steps, and for the whole of it where not.
set -eu

# Each turn is a start from scratch, and no part of the run.
for name in $(env | sed -n 's/^\\(TRADEWIND_[A-Z_]*\\)=.*/\\1/p'); do
  unset "$name"
done
TRADEWIND_PROGRESS=$PWD/progress
export TRADEWIND_PROGRESS

timed() {{
  rm -rf turn progress
  cp -R "$1" turn
  began=$(date +%s%N)
  code=0
  (cd "turn/{where}" && timeout {LIMIT_S} sh -c {shlex.quote(inner)}) >&2 || code=$?
  took=$((($(date +%s%N) - began) / 1000))
  steps=$(sed -n 's/.*"step": *\\([0-9]*\\).*/\\1/p' progress 2> /dev/null || true)
  if [ "$code" -ne 0 ] && [ "$code" -ne 124 ]; then
    exit "$code"
  elif [ "${{steps:-0}}" -gt 0 ]; then
    echo "step $((took / steps))"
  elif [ "$code" -eq 0 ]; then
    echo "whole $took"
  else
    echo "$1 neither ended in {LIMIT_S} s nor told of a step: --set benchmark='a shorter one'" >&2
    exit 2
  fi
}}

best() {{
  printf '%s\\n' "$@" | sort -k 2n | head -n 1
}}

one=$(timed before)
two=$(timed after)
three=$(timed after)
four=$(timed before)
before=$(best "$one" "$four")
after=$(best "$two" "$three")
if [ "${{before% *}}" != "${{after% *}}" ]; then
  echo "one tells of steps and the other does not: $before, $after" >&2
  exit 2
fi
before=${{before#* }}
after=${{after#* }}
echo "${{one% *}}: before $before µs, after $after µs, $((after * 100 / before)) %"
if [ "$((after * 100))" -gt "$((before * {round(SLOWER * 100)}))" ]; then
  echo "slower than the last commit by more than {round(SLOWER * 100) - 100} %" >&2
  exit 1
fi
"""


def _no_image(asked: Asked) -> str:
    """Why there is none: `tradewind export dockerfile` would refuse it, and a job that waits for it
    would never begin."""
    try:
        _, build = images.chosen(images.table(), asked.chip)
    except Refused as refused:
        return refused.message
    if asked.serving is not None and not build.cuda:
        return f"no image of an engine is known for {asked.chip.name}"
    return ""


def _dockerfile(asked: Asked) -> str:
    """The command that writes it of the same plan."""
    words = ["tradewind", "export", "dockerfile", asked.file_path or f"{asked.job_path}/work.yaml"]
    return shlex.join([*words, *_narrowed(asked), "--out", f"{FOLDER}/image"])


def _narrowed(asked: Asked) -> list[str]:
    """Options of the export that its plan was narrowed by."""
    words = iter(shlex.split(asked.command))
    found = []
    for word in words:
        name, given, _ = word.partition("=")
        if name in _NARROW:
            found += [word] if given else [word, next(words, "")]
    return found


def _image(asked: Asked, tool: str) -> tuple[Step, ...]:
    file = f"{FOLDER}/image/Dockerfile"
    made = _dockerfile(asked)
    name = "".join(each if each.isalnum() else "-" for each in asked.name.lower()).strip("-")
    return (
        Step(
            "Login to the registry",
            f'echo "$REGISTRY_PASSWORD" | {tool} login "${{REGISTRY%%/*}}" -u "$REGISTRY_USER"'
            " --password-stdin",
        ),
        Step(
            "Image",
            f"{_there('-f', file, made)}\n"
            f"tradewind image build {_job(asked)} --file {file} --name {name or 'job'}"
            f" --tool {tool} --json | tee image.json",
        ),
        Step(
            "Pushed",
            'image=$(python -c \'import json; print(json.load(open("image.json"))["image"])\')\n'
            "lower=$(echo \"$REGISTRY\" | tr '[:upper:]' '[:lower:]')\n"
            f'tradewind image push "$image" "$lower/$image" --tool {tool}',
        ),
    )


def _there(what: str, path: str, made: str) -> str:
    """Or it is said what makes it."""
    words = shlex.quote(f"{path} is missing: {made}")
    return f"[ {what} {path} ] || {{ echo {words} >&2; exit 2; }}"


def _deploy(asked: Asked, settings: Mapping[str, str]) -> tuple[Step, ...]:
    if asked.serving is not None:
        folder = "deploy/kubernetes"
        made = f"tradewind export kubernetes {_work(asked)} --out {folder}"
        return (
            Step(
                "Applied to the cluster",
                f"{_there('-d', folder, made)}\nkubectl apply -k {folder}",
            ),
        )
    on = f" --on {shlex.quote(settings['on'])}" if settings["on"] else ""
    return (
        Step(
            "The training itself, left to the passes of the upkeep",
            f"tradewind run {_work(asked)}{on} --detach --attended --yes",
        ),
    )


def _notes(asked: Asked, settings: Mapping[str, str], no_image: str) -> tuple[str, ...]:
    notes = [
        "--out is the repository's root, where its host looks for pipelines",
        f"without an image, which the training does not need: {no_image}; --accelerator NAME plans"
        " for another"
        if no_image
        else f"the image's Dockerfile: {_dockerfile(asked)}",
    ]
    if _narrowed(asked) and asked.serving is None:
        notes.append(
            f"the deployment plans anew, without {shlex.join(_narrowed(asked))}: what is to hold"
            " there too belongs into limits of the workload file"
        )
    if not settings["store"]:
        notes.append(
            "TRADEWIND_STORE: a variable of the pipeline, the store's URL; or --set store=URL"
        )
    if not settings["secrets"]:
        notes.append("--set secrets=NAME,NAME: which variables of the host log in to the clouds")
    if asked.serving is None and not settings["rehearse"]:
        notes.append(
            "the rehearsal starts the job itself: --set rehearse=COMMAND where that needs a GPU"
        )
    if asked.serving is not None:
        notes.append("the deployment applies what `tradewind export kubernetes` wrote into deploy/")
    return tuple(notes)


def _job(asked: Asked) -> str:
    return shlex.quote(asked.job_path)


def _work(asked: Asked) -> str:
    return shlex.quote(asked.file_path or f"{asked.job_path}/work.yaml")
