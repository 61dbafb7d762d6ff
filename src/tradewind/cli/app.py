"""The top command, and how errors and exit codes reach the user.

0  done            3  no such name, or nothing matches     6  an outside source failed
1  a bug of ours   4  a damaged or malformed file          7  an extra is missing
2  bad usage       5  no access to a file or account     130  interrupted
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.version import __version__
from tradewind.cli.base import Group
from tradewind.cli.terminal import guarded

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMPLETE = "_TRADEWIND_COMPLETE"
"""Set by the shell's completion (`tradewind completion`), whichever of our names was typed."""

# The short helps stand here so that `tradewind --help` imports no command.
COMMANDS = {
    "demo": "See it all working on this computer, in three minutes.",
    "plan": "The cheapest way to finish in time: where, on what, how, for how much.",
    "export": "Write a plan as files that do the same without us: images, manifests, scripts.",
    "import": "A workload file from one of SkyPilot, dstack, Slurm, Docker or SageMaker.",
    "image": "Build images of exported Dockerfiles, and push them.",
    "run": "Run a workload: rent machines, survive interruptions, account for it.",
    "serve": "Bring a service up: replicas behind one address, as many as its load needs.",
    "services": "Services: those that are up, and what each does, costs and says.",
    "ps": "Status of runs: where, how far, for how much.",
    "show": "One run: its legs as a timeline, its events with their reasons.",
    "report": "A page about a run, to share: timeline, progress, loss, money.",
    "top": "Live metrics of trainings: speed, GPU use, bottleneck.",
    "exporter": "Metrics of runs for Prometheus, and a dashboard for Grafana.",
    "logs": "Print the logs of a run's job.",
    "get": "Fetch a run's output files, or the weights that it has trained.",
    "ssh": "A shell on one of a run's machines, or a command there.",
    "stop": "Cancel a run: it saves, stops and terminates its machines.",
    "resume": "Resume a run that was stopped or failed, from its checkpoint.",
    "watch": "Run a controller: replace interrupted machines until runs end.",
    "tick": "One controller pass over all runs, for cron, a CI job or a function.",
    "interrupt": "Interrupt a run's machines, to test that it survives.",
    "doctor": "Check the computer, store and accounts, and find leftovers.",
    "sweep": "Clean up: terminate machines that belong to no run, delete leftovers.",
    "offers": "Search offers of all providers, cheapest first.",
    "accelerators": "Facts about accelerators, who sells them and for how much.",
    "compare": "Compare instance types side by side.",
    "estimate": "Does a model fit in memory, and how fast does it train.",
    "measure": "Throughput and latency of a server, under a short load.",
    "load": "Open-loop load on a server: latency percentiles, goodput, errors.",
    "profile": "Count what a PyTorch model of your own costs, without a GPU.",
    "verify": "Kill a training script, resume it, and check that it is bit-exact.",
    "calibrate": "Refit the estimator to measurements.",
    "init": "Choose the store for runs, and check that it is safe.",
    "setup": "Set up an account at a cloud for a store.",
    "teardown": "Remove what setup has made at a cloud.",
    "own": "Buy or rent: what a team's use costs either way.",
    "commit": "Which reservations and savings plans to buy.",
    "carbon": "Energy and CO2e of a workload, by place.",
    "schedule": "When to run: cheaper hours and days, and windows for what can wait.",
    "place": "Where one workload belongs: in a cloud, serverless, at the edge.",
    "cost": "What runs cost, what was predicted, and what on demand would have.",
    "schema": "Print the JSON Schema of workload files, or check one.",
    "catalog": "Manage the price catalog: doctor, rates, refresh, build.",
    "sim": "Put simulated runs through everything that can go wrong.",
    "bench": "Measure our claims on your machine.",
    "explain": "Explain an error, an exit code, a state of a run or a term.",
    "completion": "Shell completion of commands, options and names of runs.",
}

FOLDERS = {
    name: folder
    for folder, names in {
        "bench": "bench",
        "catalog": "catalog offers accelerators compare",
        "clouds": "init setup teardown doctor",
        "demo": "demo",
        "economics": "own commit carbon schedule place",
        "export": "export import image",
        "help": "explain completion",
        "plan": "plan estimate measure load calibrate profile verify schema",
        "runs": (
            "run ps show report top exporter logs get ssh stop resume watch tick interrupt cost"
            " sweep"
        ),
        "services": "serve services",
        "sim": "sim",
    }.items()
    for name in names.split()
}
"""Where the code of a command lies: the folder of its topic."""

SAME = {
    "launch": "run",
    "apply": "run",
    "status": "ps",
    "queue": "ps",
    "down": "stop",
    "cancel": "stop",
    "start": "resume",
    "check": "doctor",
    "cost-report": "cost",
    "show-gpus": "accelerators",
    "attach": "watch",
}
"""What SkyPilot and dstack call commands that do the same here. They are not listed; docs/from-
skypilot.md has them."""

ELSEWHERE = {
    "up": "`tradewind run FILE` runs a workload, `tradewind serve FILE` brings a service up",
    "exec": "`tradewind ssh RUN -- COMMAND` runs a command on a machine of a run that goes on",
    "autostop": "machines end with their job, and when it is idle: `tradewind run --idle 20m`",
    "jobs": "`tradewind run -d FILE` is a managed job, `tradewind ps` lists them, `logs`, `stop`",
    "rm": "a finished run costs only what it keeps: `tradewind sweep` removes leftovers",
    "delete": "`tradewind stop RUN` ends a run, `tradewind sweep` removes leftovers",
    "destroy": "`tradewind stop RUN` ends a run, `tradewind sweep` removes leftovers",
    "gpus": "`tradewind offers h100:8` lists prices, `tradewind accelerators` what there is",
}
"""Of theirs that are not the same here, what does it."""


class LazyGroup(Group):
    """Knows its commands by name and imports one only to run it, to show its own help or to
    complete what stands behind it."""

    removes = ("teardown", "sweep")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        module = f"tradewind.cli.{FOLDERS[cmd_name]}.{cmd_name}"
        command: click.Command = import_module(module).command
        if COMPLETE in os.environ:
            from tradewind.cli.help.completing import equip

            equip(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[1:2] and args[1] in ("setup", "teardown") and args[0] not in COMMANDS:
            args = [args[1], args[0], *args[2:]]  # as it was once: `tradewind CLOUD setup`
        if args[0] in SAME:
            args = [SAME[args[0]], *args[1:]]
        elif args[0] in ELSEWHERE:
            raise click.UsageError(f"there is no {args[0]!r} here: {ELSEWHERE[args[0]]}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=words) for name, words in COMMANDS.items()]
        found = [item for item in found if item.value.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples="""
    # what can be rented, cheapest first
    tradewind offers h100:8
    # what the work in a file costs, and where it is best
    tradewind plan work.yaml
    # do it on this computer, as if it were rented
    tradewind run work.yaml --local
    """,
)
@click.version_option(__version__, prog_name="tradewind")
def command() -> None:
    """Finish GPU work on time, for the least money, on any cloud."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code; nothing escapes it."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no × shows a question mark, not an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if COMPLETE in os.environ:
        return _complete()
    with guarded():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        result: Any = command.main(
            list(arguments), prog_name="tradewind", standalone_mode=False, color=_colour()
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except TradewindError as error:
        from tradewind.cli.help import topics

        _complain(error.message, error.hint, topics.more(error.message))
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return 0
    except click.ClickException as error:
        from tradewind.cli.help.usage import show

        show(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted", None)
        return 130
    except (BrokenPipeError, SystemExit):
        # The reader (`head`) has what it wanted. click makes a SystemExit of that, and of nothing
        # else when it does not stand alone.
        _hush()
        return 0
    except OSError as error:
        # Files have errors of their own by now: what is left is our output (a full disk).
        _complain(f"the output cannot be written: {error.strerror or error}", None)
        _hush()
        return NoAccess.exit_code
    except Exception as error:
        if os.environ.get("TRADEWIND_DEBUG"):
            raise
        _complain(
            f"this is a bug in Tradewind: {type(error).__name__}: {error}",
            "run it again with TRADEWIND_DEBUG=1 for the traceback, and please report it",
        )
        return 1


def _complete() -> int:
    """Someone is typing: whatever goes wrong, nothing may be printed between their words."""
    with suppress(Exception, SystemExit), open(os.devnull, "w") as nowhere:  # noqa: PTH123
        with redirect_stderr(nowhere):
            command.main([], prog_name="tradewind", complete_var=COMPLETE, standalone_mode=False)
        sys.stdout.flush()
    return 0


def _hush() -> None:
    """Python would try to flush standard output again at exit, and complain."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _colour() -> bool | None:
    """click does not ask for NO_COLOR itself. None: on a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def _complain(message: str, hint: str | None, more: str | None = None) -> None:
    colour = _colour()
    click.secho("error: ", fg="red", bold=True, nl=False, err=True, color=colour)
    click.echo(message, err=True)
    for label, words in (("hint: ", hint), ("more: ", more)):
        if words:
            click.secho(label, fg="cyan", nl=False, err=True, color=colour)
            click.echo(words, err=True)
