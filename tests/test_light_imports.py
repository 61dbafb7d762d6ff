"""Starting fast is a matter of what is not imported. `tradewind bench startup` has the seconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "matplotlib", "boto3", "botocore", "yaml", "urllib3", "statistics"}


def loaded(code: str) -> set[str]:
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr))


RUN = "from tradewind.cli.app import run; run({!r})"


@pytest.mark.parametrize(
    ("code", "also_not"),
    [
        ("import tradewind", {"click", "rich", "tradewind.catalog"}),
        (RUN.format(["--help"]), {"rich", "tradewind.catalog", "tradewind.cli.catalog.offers"}),
        (RUN.format(["--version"]), {"rich", "tradewind.catalog"}),
        (RUN.format(["offers", "--all"]), {"tradewind.pictures", "difflib"}),
        (RUN.format(["offers", "--json", "--all"]), {"rich"}),
        (RUN.format(["accelerators", "--help"]), {"rich"}),
        (RUN.format(["cost", "--help"]), {"rich", "msgspec", "tradewind.ledger"}),
        ("import tradewind; tradewind.catalog.load(account=False)", {"click", "rich"}),
        ("import tradewind.pictures", {"click", "rich"}),
        ("import tradewind.torch", {"msgspec", "click"}),
        ("import tradewind.torch; assert tradewind.torch.session", {"click", "rich"}),
        (
            "from tradewind.torch import download, loader, shards, tokens",
            {"click", "rich", "obstore"},
        ),
        (
            "import tradewind.torch as tw; assert tw.hf and tw.accelerate and tw.LightningCallback",
            {"click", "rich", "transformers", "accelerate", "pytorch_lightning", "lightning"},
        ),
        (
            "import tradewind.providers.local.host",
            {"click", "rich", "csv", "tradewind.catalog", "tradewind.providers.local.provider"},
        ),
    ],
)
def test_nothing_heavy_is_imported(code: str, also_not: set[str]) -> None:
    modules = loaded(code)
    heavy = HEAVY - {"statistics"} if "accelerators" in code or "pictures" in code else HEAVY
    assert not modules & (heavy | also_not)


def test_what_the_documentation_names_is_listed_before_it_is_imported() -> None:
    """Tab completion shows nothing else."""
    code = "import tradewind\nassert set(tradewind.__all__) <= set(dir(tradewind)), dir(tradewind)"
    code += "\nassert not {'os', 'sys', 'annotations', 'TYPE_CHECKING'} & set(dir(tradewind))"
    assert not HEAVY & loaded(code)
