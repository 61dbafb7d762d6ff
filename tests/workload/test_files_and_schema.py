"""Files from a disk, the examples, the schema, and the command that shows both."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.catalog.small import REAL
from tests.cli.conftest import Cli, cli, home
from tests.workload.making import EXAMPLES, FULL, KNOWN, NOW, TRAIN, as_data, read
from tradewind import workload
from tradewind.base.errors import BadWorkload, NoAccess
from tradewind.catalog import account
from tradewind.workload import fields, schema

__all__ = ["cli", "home"]
VALIDATOR = jsonschema.Draft202012Validator(schema.schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.parent.name)
def test_every_example_is_right(path: Path) -> None:
    made = workload.load(path, now=NOW, known=KNOWN)
    assert made.name == path.parent.name
    assert made.run
    VALIDATOR.validate(as_data(path.read_text()))
    first = path.read_text().splitlines()[0]
    assert (path.parent / first.partition("$schema=")[2]).exists()


def test_there_are_the_examples_that_were_meant() -> None:
    assert [path.parent.name for path in EXAMPLES] == [
        "batch-inference",
        "big-model",
        "continue-70b-eu",
        "finetune-lora",
        "frameworks",
        "jax-tpu",
        "lora-8b-overnight",
        "own-4090s",
        "pretrain-1.3b",
        "resnet",
        "resnet50-imagenet",
        "tiny-gpt",
    ]


def test_the_european_example_stays_in_the_union() -> None:
    path = next(p for p in EXAMPLES if p.parent.name == "continue-70b-eu")
    limits = workload.load(path, now=NOW, known=KNOWN).limits
    allowed = {
        f"{p}/{region}" for p in KNOWN.regions for region in KNOWN.regions[p]
        if limits.allows(p, region)
    }  # fmt: skip
    abroad = ("london", "zurich", "norway", "swiss", "uk", "gb", "iceland", "eu-west-2", "west6")
    assert len(allowed) > 30
    assert not [place for place in allowed if any(word in place.lower() for word in abroad)]
    assert not {"gcp/europe-west2", "aws/eu-central-2"} & allowed


def test_the_machine_of_the_example_is_an_offer() -> None:
    path = next(p for p in EXAMPLES if p.parent.name == "own-4090s").with_name("account.yaml")
    own = account.read(path.read_text(), "account.yaml", REAL.names, REAL.providers)
    assert [row["instance_type"] for row in own.offers] == ["desk"]


def test_the_schema_is_one_and_takes_what_it_shows() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    assert not list(VALIDATOR.iter_errors(as_data(FULL)))
    for section in fields.SECTIONS:
        for field in section.fields:
            described = schema.schema()["properties"]
            described = described if section.flat else described[section.name]["properties"]
            described = described[field.name]
            for example in described["examples"]:
                assert jsonschema.Draft202012Validator(described).is_valid(example)


def test_the_examples_in_the_tables_can_be_read() -> None:
    for section in fields.SECTIONS:
        for field in section.fields:
            base = as_data(FULL)
            if section.name == "work":
                del base["train"]
                base["work"] = {"on": "T4"}
                if field.name in ("step", "steps"):
                    base["work"] |= {"step": "2s", "steps": 10}
                elif field.name != "hours":
                    base["work"]["hours"] = 3
            if section.name in ("serve", "service"):
                del base["train"]
                base["serve"] = {"model": "gpt2-xl", "ttft": "1s"}
                if field.name != "trace":
                    base["serve"] |= {"rate": 2, "input": 100, "output": 10}
            if section.flat:
                del base["train"]
                base["gpus"] = "H100:8"
            part = base if section.flat else base.setdefault(section.name, {})
            if field.name in ("samples", "steps", "epochs", "dataset") and section.name == "train":
                del part["tokens"]
                part |= {"epochs": 1, "dataset": 10} if field.name in ("epochs", "dataset") else {}
            part[field.name] = as_data(field.example)
            assert workload.of(base, now=NOW, known=KNOWN).name
            assert VALIDATOR.is_valid(base)


def test_every_field_lands_in_the_value() -> None:
    from dataclasses import fields as of_class

    for section in fields.SECTIONS:
        attributes = [a for field in section.fields for a in field.attributes]
        assert sorted(attributes) == sorted(f.name for f in of_class(section.make))


# -- files ---------------------------------------------------------------------------------------


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(NoAccess, match="No such file"):
        workload.load(tmp_path / "none.yaml", now=NOW, known=KNOWN)
    with pytest.raises(NoAccess, match="directory"):
        workload.load(tmp_path, now=NOW, known=KNOWN)
    with pytest.raises(NoAccess, match="null byte"):
        workload.load("a\0b", now=NOW, known=KNOWN)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(BadWorkload, match="is not UTF-8 text"):
        workload.load(binary, now=NOW, known=KNOWN)
    marked = tmp_path / "marked.yaml"
    marked.write_bytes(b"\xef\xbb\xbf" + TRAIN.encode())
    assert workload.load(marked, now=NOW, known=KNOWN) == read(TRAIN)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as stream:
        stream.truncate(10**11)  # sparse
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadWorkload, match="is larger than 4 MB"):
        workload.load(huge, now=NOW, known=KNOWN)
    with pytest.raises(BadWorkload, match="is larger than 4 MB"):
        workload.load("/dev/zero", now=NOW, known=KNOWN)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_an_alias_bomb_does_no_harm(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{n}: &{n} [{','.join([f'*{p}'] * 9)}]\n" for p, n in zip("abcde", "bcdef", strict=True)
    )
    with pytest.raises(BadWorkload, match="too many values"):
        read(bomb)


# -- the command ---------------------------------------------------------------------------------


def test_the_command_prints_and_writes_the_schema(cli: Cli, tmp_path: Path) -> None:
    assert cli("schema").json == schema.schema()
    assert cli("schema", "workload", "--out", str(tmp_path / "s.json")).code == 0
    assert json.loads((tmp_path / "s.json").read_text()) == schema.schema()


def test_the_command_checks_a_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(TRAIN + "limits: {deadline: '2026-12-01T08:00Z', exclude: [vast]}")
    ran = cli("schema", "--check", str(path))
    assert ran.code == 0
    assert "2,385 steps of 512 sequences" in ran.out
    assert "done by 2026-12-01 08:00+00:00 (90 % sure); without vast" in ran.out
    path.write_text(TRAIN + "limits: {deadline: '2026-11-01T08:00Z'}")
    ran = cli("schema", "--check", str(path))
    assert ran.code == 2
    assert "is past" in ran.err
    assert cli("schema", "--check", str(tmp_path / "none")).code == 5


def test_machines_of_one_s_own_can_be_named(cli: Cli, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    example = next(p for p in EXAMPLES if p.parent.name == "own-4090s")
    (home / "account.yaml").write_text(example.with_name("account.yaml").read_text())
    path = tmp_path / "work.yaml"
    path.write_text(example.read_text().replace("  budget", "  regions: [own/home]\n  budget"))
    assert cli("schema", "--check", str(path)).code == 0
    (home / "account.yaml").unlink()
    assert cli("schema", "--check", str(path)).code == 2
