"""`makefile`: the plain commands as targets, for one machine."""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.export import engines, images, launch, registry, shell
from tradewind.export.asked import Asked
from tradewind.export.exported import Exported, File, Setting

TAKES = (registry.TRAINING, registry.SERVICE)
SETTINGS: tuple[Setting, ...] = (engines.MODEL,)


def export(asked: Asked, settings: Mapping[str, str]) -> Exported:
    if asked.serving is not None:
        return _service(asked, settings)
    plan, job = shell.one_machine("makefile", asked)
    variables = "".join(
        f"export {name} := {_value(each)}\n" for name, each in launch.variables(plan, job).items()
    )
    setup = (job.setup or "").strip() or "true"
    text = (
        f"# The job's folder.\nJOB_FOLDER ?= {_value(asked.job_path)}\n{variables}\n"
        ".PHONY: help check setup run\n\n"
        "help:\n"
        "\t@echo 'make setup   once on each machine'\n"
        "\t@echo 'make run     the job; it resumes, if its script does'\n\n"
        f"{_check(shell.counted(asked.chip, plan.accelerator_count) + shell.needed(job))}"
        f'setup:\n\tcd "$(JOB_FOLDER)" && {_line(setup)}\n\n'
        f'run: check\n\tcd "$(JOB_FOLDER)" && {_line(launch.command(plan, job))}\n'
    )
    return Exported({"Makefile": File(text)})


def _service(asked: Asked, settings: Mapping[str, str]) -> Exported:
    pool = shell.one_pool("makefile", asked)
    _, serve = asked.service("makefile")
    known = images.table()
    weights = engines.weights_of(serve, known, settings["model"])
    engine = engines.started(pool, serve, known, weights)
    text = (
        "# A replica; several on a machine have a port and accelerators of their own each.\n"
        f"PORT ?= {engines.PORT}\n\n"
        ".PHONY: help check setup serve\n\n"
        "help:\n"
        "\t@echo 'make setup   installs the engine'\n"
        "\t@echo 'make serve   one replica, on PORT, on accelerators of CUDA_VISIBLE_DEVICES'\n\n"
        f"{_check(shell.counted(asked.chip, pool.tp))}"
        f"setup:\n\tpip install {engine.package}\n\n"
        "serve: check\n\texec "
        + _line(engines.shell(engine)).replace(f"--port={engines.PORT}", '--port="$(PORT)"')
        + "\n"
    )
    return Exported({"Makefile": File(text)})


def _check(script: str) -> str:
    lines = [line for line in script.splitlines() if line]
    comments = "".join(f"{line}\n" for line in lines if line.startswith("#"))
    commands = [line for line in lines if not line.startswith("#")]
    if not commands:
        return "check:\n\t@true\n\n"
    joined = _line("\n".join(commands), joined=" ")
    return f"{comments}check:\n\t@{joined}\n\n"


def _line(script: str, joined: str = " && ") -> str:
    """Make gives each line to a shell of its own; a script of several becomes one. What ends in
    a word that others follow (`then`, `do`) takes no sign."""
    lines = [line.strip() for line in script.splitlines() if line.strip()]
    if joined == " ":
        lines = [line if line.endswith(("then", "do", "{")) else f"{line};" for line in lines]
    return joined.join(lines).replace("$", "$$")


def _value(text: str) -> str:
    return text.replace("$", "$$").replace("#", "\\#")
