"""Each shape of input that others may have written, mutated: a value or one of our errors, in 2 s
and 200 MB."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.base.shapes import SHAPES


@pytest.mark.parametrize(
    ("names", "many"),
    [
        (",".join(SHAPES), 40),
        *(pytest.param(each, 3000, marks=pytest.mark.long) for each in SHAPES),
    ],
)
def test_every_shape_of_input_is_read_or_refused(names: str, many: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.base.shapes", names, "0", str(many)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-800:]
