"""What leaves the computer, or comes onto it: no secrets in what others read, nothing overwritten
unasked, and nothing that the reader's own programs would carry out."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, a_machine, commits, found, requested, submitted
from tradewind.api import outputs, shell
from tradewind.base import csvfile, endpoints
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.cli.runs import costdata, get, run, show
from tradewind.ledger import focus
from tradewind.ledger.postings import cost_of
from tradewind.model import sensitive
from tradewind.model.outputs import OutputFile
from tradewind.model.workload import Data
from tradewind.planning import document
from tradewind.store.memory import MemoryStore
from tradewind.supervisor import secretfiles
from tradewind.torch.weights import export

TOKEN = "hf_" + "a1B2" * 9
URI = "https://me:pa55word@example.org/data"


def test_an_address_of_data_has_no_password() -> None:
    with pytest.raises(ValueError, match="a URL with a password"):
        Data(uri=URI)


def test_a_plan_that_is_shown_has_none_either() -> None:
    assert sensitive.redacted_all({"data": [{"uri": URI}]}) == {
        "data": [{"uri": "•••example.org/data"}]
    }


def test_a_tag_holds_no_token() -> None:
    assert run._tags(["team=nlp", "key=a"]) == {"team": "nlp", "key": "a"}
    with pytest.raises(click.UsageError, match="looks like a Hugging Face token") as error:
        run._tags([f"x={TOKEN}"])
    assert TOKEN not in str(error.value)


def test_tokens_of_older_journals_are_not_shown() -> None:
    spec = replace(SPEC, tags={"team": "nlp", "x": TOKEN}, job={"data": {"uri": URI}})
    events = (submitted(spec), requested(), found(replace(a_machine(), ended_s=9000)))
    shown = [show._shown(json.decode(json.encode(each))) for each in commits(*events)]
    billed = focus.rows(cost_of("run-1", events, now=10_000).postings)
    for text in (str(shown), str(billed)):
        assert TOKEN not in text
        assert "pa55word" not in text
        assert "nlp" in text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("prod.env", True),
        (".s3cfg", True),
        (".boto", True),
        (".streamlit/secrets.toml", True),
        ("app/.streamlit/secrets.toml", True),
        ("example.env", False),
        ("secrets.toml", False),
        ("env.py", False),
    ],
)
def test_the_usual_files_with_secrets_are_not_packed(name: str, secret: bool) -> None:
    assert secretfiles.is_secret(name, Path(name)) is secret


def test_weights_overwrite_no_config_unasked(tmp_path: Path) -> None:
    mine = tmp_path / "config.json"
    mine.write_text('{"mine": true}')
    (kept, *_) = export._with_config(tmp_path, None, "model", b"{}", force=False)
    assert "--force" in kept
    assert mine.read_text() == '{"mine": true}'
    export._with_config(tmp_path, None, "model", b"{}", force=True)
    assert mine.read_text() == "{}"


def test_a_config_that_somebody_has_changed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    file = OutputFile(name="c", path="config.json", size=2, sha256="0" * 64)
    each = SimpleNamespace(rank=0, path="config.json", size=2, file=file)
    monkeypatch.setattr(outputs, "listed", lambda *_: [each])
    store = MemoryStore()
    store.create("runs/r/outputs/files/0000/c", b"{}")
    with pytest.raises(BadFile, match="is not what the machine has brought"):
        get._config(SimpleNamespace(store=store, id="r", state=None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["local-../../../../..", "local-a/b", "aws-evil", "aws-", "ssh-..", "-x", "local-\n"]
)
def test_a_shell_is_opened_on_no_machine_that_cannot_be(name: str) -> None:
    with pytest.raises((BadFile, InvalidValue)) as error:
        shell.command(replace(a_machine(), machine_id=name))
    assert "bug" not in error.value.message


def test_no_cell_is_a_formula(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    formulas = ("=1+1", "@x", "+cmd|' /C calc'!A0", "-x")
    assert [csvfile.cell(each) for each in formulas] == [f"'{each}" for each in formulas]
    assert [csvfile.cell(each) for each in ("-1.5", "a=b", "")] == ["-1.5", "a=b", ""]
    monkeypatch.setattr(focus, "rows", lambda _: [dict.fromkeys(focus.COLUMNS, "=x")])
    path = tmp_path / "bill.csv"
    costdata.focus([], None, None, str(path))
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert set(row.values()) == {"'=x"}


@pytest.mark.parametrize("number", ["1e308", "-1e300", "1" + "0" * 400, "9" * 5000])
def test_a_saved_plan_with_a_number_without_end_is_none(number: str) -> None:
    text = f'{{"kind": "tradewind plan", "format": {number}}}'
    with pytest.raises(BadFile, match="larger than any number in a plan"):
        document.read(text, "plan.json")


@pytest.mark.parametrize("endpoint", ["http:/x", "x", "https://", "http://[", "://x"])
def test_an_endpoint_that_is_none_is_said_to_be(endpoint: str) -> None:
    with pytest.raises(InvalidValue, match="is no address"):
        endpoints.check(endpoint, {})
    endpoints.check("", {})
    endpoints.check("https://minio.example", {})


def test_each_promise_names_a_test_that_there_is() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs/security.md").read_text()
    named = re.findall(r"`(tests/[^`]+)`", page)
    assert len(named) > 15
    assert [each for each in named if not (root / each).exists()] == []
