"""Commands on our pages that no test runs as they stand there, and why. All others are run.

An excuse that fits no command is an error, and so is a command that is neither run nor excused.
What is excused is still read: `tradewind …` must be a command with these options, `make …` a
target, an extra in `pip install` one of ours, a script a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Excuse:
    page: str
    """A pattern of file names."""
    command: str
    """What it begins with: a regular expression."""
    why: str

    def fits(self, page: str, command: str) -> bool:
        return fnmatchcase(page, self.page) and re.match(self.command, command) is not None


EXCUSES = [
    Excuse("*", r"make ", "`.ci/run` is made of these; tests do not call what calls them"),
    Excuse("docs/commands/measure.md", r"tradewind ", "needs a server; tests/cli/test_measure.py"),
    Excuse("docs/commands/load.md", r"tradewind load ", "needs a server; tests/cli/test_load.py"),
    Excuse(
        "docs/*serv*.md",
        r"(tradewind (serve|services) ?|tradewind services$|curl )",
        "HAProxy and an engine; tests/system/test_services.py",
    ),
    Excuse(
        "examples/batch-inference/README.md",
        r"(python generate|tradewind (run|get) )",
        "imports of a minute; tests/batch kills what it is made of",
    ),
    Excuse("docs/commands/doctor.md", r"tradewind doctor", "a computer's own; tests/cli"),
    Excuse("*", r"tradewind verify ", "four starts of a script; tests/cli/test_verify.py"),
    Excuse("*", r"tradewind demo", "minutes; tests/system/test_demo.py"),
    Excuse("*", r"(\S*/)?pip install ", "needs a package index; the extras are looked up"),
    Excuse("*", r"(python3 -m venv|\. \.venv)", "a test is in such a place already"),
    # Figures of a machine, which take minutes, or measurements that are not in the package.
    Excuse(
        "docs/benchmarks.md", r"tradewind (bench|sim) ", "minutes; tests/cli runs each in small"
    ),
    Excuse("docs/benchmarks.md", r"python tools/leave_out_spot.py ", "an hour, on measured series"),
    Excuse(
        "docs/commands/bench.md",
        r"tradewind bench (recovery|chaos|loader|estimate|inference|spot|controller --provider)",
        "minutes, or measurements; tests/cli and tests/bench run each in small",
    ),
    Excuse("docs/commands/bench.md", r"PYTHONPATH=src\S* python3 -m tradewind.bench", "a GPU"),
    Excuse(
        "docs/commands/schedule.md",
        r"tradewind schedule --trace",
        "measurements; tests/cli/test_schedule.py",
    ),
    Excuse(
        "docs/commands/run.md",
        r"tradewind run work.yaml --local --window",
        "depends on the hour; tests/lifecycle/test_windows.py",
    ),
    Excuse("docs/budgets.md", r"tradewind cost --warn", "needs a webhook; tests/cli/test_cost.py"),
    Excuse("docs/commands/calibrate.md", r"tradewind calibrate", "measurements; half an hour"),
    Excuse(
        "docs/commands/sim.md", r"tradewind sim faults --seeds", "a minute; tests/sim has seeds"
    ),
    # Others' computers.
    Excuse(
        "docs/commands/catalog.md", r"tradewind catalog refresh", "asks providers; tests/catalog"
    ),
    Excuse("docs/commands/catalog.md", r"tradewind catalog build", "needs tables; tests/catalog"),
    Excuse(
        "docs/commands/setup.md", r"tradewind setup (?!.*--print)", "an account; tests/providers"
    ),
    Excuse("docs/commands/teardown.md", r"tradewind teardown", "an account; tests/providers"),
    Excuse(
        "docs/aws.md",
        r"(tradewind (setup (?!.*--print)|teardown|init|doctor|run|sweep)|aws iam|cd )",
        "an account; tests/system/test_aws.py",
    ),
    Excuse(
        "docs/clouds/*",
        r"(tradewind (setup|teardown|doctor|run|watch|sweep)|export )",
        "an account; tests/providers",
    ),
    Excuse(
        "docs/gcp.md",
        r"(tradewind (setup (?!.*--print)|teardown|init|doctor|run|sweep)|gcloud |export |cd )",
        "a project; tests/providers/gcp",
    ),
    Excuse("docs/aws.md", r"aws ssm ", "an account, and AWS's own tool; tests/supervisor"),
    Excuse("docs/commands/run.md", r"tradewind run .*--on aws", "an account; tests/system"),
    Excuse("docs/commands/ssh.md", r"tradewind ssh", "a machine; tests/api/test_shell.py"),
    Excuse("docs/commands/tick.md", r"\* \* \* \* \* ", "a line for cron, with a bucket"),
    Excuse("*", r"tradewind get .*--weights", "a checkpoint; tests/torch/test_weights.py"),
    # What is there to be swept is a matter of luck.
    Excuse(
        "docs/commands/sweep.md", r"tradewind sweep --yes", "tests/cli/test_upkeep.py leaves things"
    ),
    # The reader's own script.
    Excuse("docs/telemetry.md", r"python train.py &|tradewind top", "tests/cli/test_top.py"),
    Excuse(
        "docs/strategies.md", r"(python|torchrun) ", "by hand; tests/system/test_docs.py has most"
    ),
    # Whole trainings, killed and resumed.
    *(
        Excuse(page, r"tradewind run examples/tiny-gpt", "tests/torch/test_tiny_gpt.py")
        for page in ("README.md", "docs/get-started.md")
    ),
    *(
        Excuse(
            f"examples/{name}/README.md",
            r"(cd |pip |python |torchrun |tradewind (run|get) )",
            where,
        )
        for name, where in (
            ("tiny-gpt", "tests/torch/test_tiny_gpt.py, killed"),
            ("gpt-memmap", "tests/cli/test_verify.py, killed"),
            ("resnet", "tests/system/test_examples.py, killed"),
            ("finetune-lora", "tests/system/test_examples.py, killed"),
            ("big-model", "tests/system/test_examples.py, killed"),
            ("frameworks", "tests/system/test_frameworks.py, killed"),
            ("jax-tpu", "tests/system/test_gcp_tpu.py, taken"),
        )
    ),
]


def excuse(page: str, command: str) -> Excuse | None:
    return next((each for each in EXCUSES if each.fits(page, command)), None)
