"""What a workload file says, and what is refused, with which words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.workload.making import FULL, KNOWN, NOW, TRAIN, WORK, as_data, read
from tradewind import Checkpoint, Data, Job, Limits, Measured, Train, Workload, workload
from tradewind.base.errors import BadWorkload
from tradewind.base.units import Micros
from tradewind.model.shape import Shape, Work
from tradewind.workload import schema
from tradewind.workload.fields import SECTIONS
from tradewind.workload.sections import Field, Section

VALIDATOR = jsonschema.Draft202012Validator(schema.schema())


def test_the_whole_file_is_the_value_that_python_would_make() -> None:
    assert read(FULL) == Workload(
        name="support-bot-8b",
        train=Train(
            model="llama-3.1-8b",
            tokens=10**10,
            sequence=8192,
            global_batch_tokens=4_000_000,
            precision="bf16",
            stack="fsdp-compile",
        ),
        data=Data(
            uri="s3://acme-tokens/v3", size_bytes=40 * 10**9, provider="aws", region="eu-west-1"
        ),
        checkpoint=Checkpoint(every_s=None, keep=3),
        limits=Limits(
            within_s=48 * 3600,
            budget=Micros(2000 * 10**6),
            providers=("aws", "gcp", "azure", "lambda"),
            regions=("eu-*",),
            markets=("spot", "on_demand"),
            max_nodes=16,
        ),
        run=Job(command="torchrun train.py", setup="pip install -r requirements.txt"),
    )


def test_flags_stand_over_the_file_and_data_says_the_same() -> None:
    over = read(FULL, flags={"limits.deadline": "24h", "train.tokens": "1B", "name": "other"})
    assert (over.limits.within_s, over.total_tokens, over.name) == (86_400, 10**9, "other")
    assert over.limits.budget == Micros(2000 * 10**6)
    assert read("", flags={"work.hours": "12", "work.on": "A100-80GB"}) == read(WORK)
    assert workload.of(as_data(FULL), now=NOW, known=KNOWN) == read(FULL)
    with pytest.raises(BadWorkload, match=r"^w\.yaml: limits\.deadline: 'soon' is not"):
        read(FULL, flags={"limits.deadline": "soon"})
    with pytest.raises(BadWorkload, match="a set is no value"):
        workload.of({"train": {"model": {1, 2}}})
    endless: dict[str, Any] = {}
    endless["train"] = endless
    with pytest.raises(BadWorkload, match="nested deeper"):
        workload.of(endless)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-01T08:00+01:00", datetime(2026, 12, 1, 7, tzinfo=UTC)),
        ("2026-12-01 07:00 UTC", datetime(2026, 12, 1, 7, tzinfo=UTC)),
        ("2026-12-01 07:00:30Z", datetime(2026, 12, 1, 7, 0, 30, tzinfo=UTC)),
        ("2026-12-01 08:00 +0100", datetime(2026, 12, 1, 7, tzinfo=UTC)),
    ],
)
def test_a_deadline_may_be_a_moment(text: str, moment: datetime) -> None:
    limits = read(TRAIN + f"limits: {{deadline: '{text}'}}").limits
    assert limits.deadline == moment == limits.deadline_at(NOW)
    VALIDATOR.validate(as_data(TRAIN + f"limits: {{deadline: '{text}'}}"))


def test_spellings_become_our_names() -> None:
    limits = read(
        TRAIN + "limits: {providers: [Google, aws], accelerators: [h200, a100 80g], "
        "regions: [GCP/europe-west4], exclude: lambdalabs, markets: on-demand}"
    ).limits
    assert limits.providers == ("gcp", "aws")
    assert limits.accelerators == ("H200", "A100-80GB")
    assert limits.regions == ("gcp/europe-west4",)
    assert limits.exclude == ("lambda",)
    assert limits.markets == ("on_demand",)


@pytest.mark.parametrize("text", ["10B", "10b tokens", "1e10", "1.0E+10 tokens", "10_000_000_000"])
def test_counts_are_written_in_many_ways(text: str) -> None:
    assert read(train(tokens=text)).total_tokens == 10**10
    VALIDATOR.validate(as_data(train(tokens=text)))


def test_work_by_measurement() -> None:
    made = read("work: {step: 350ms, steps: 20k, on: 8xA100-80GB, memory: 30GB, scales: true}")
    assert made.work == Measured(
        accelerator="A100-80GB",
        count=8,
        step_s=0.35,
        steps=20_000,
        memory_bytes=30 * 10**9,
        scales=True,
    )
    assert made.work.accelerator_hours == pytest.approx(0.35 * 20_000 / 3600 * 8)
    assert made.total_steps == 20_000
    assert made.total_tokens is None


def test_a_model_described_in_the_file() -> None:
    rest = "tokens: 1B, sequence: 2048, global_batch: 64}"
    shape = "{layers: 24, d_model: 2048, n_heads: 16, n_kv_heads: 4, d_ff: 5632, vocab: 32000}"
    made = read(f"train: {{model: {shape}, {rest}").train
    assert made is not None
    assert isinstance(made.model, Shape)
    assert (made.model.head_dim, made.model.n_kv_heads, made.model.gated) == (128, 4, True)
    made = read(
        "train: {model: {params: 25.6e6, forward_flops_per_sample: 8.2e9}, samples: 10, "
        "global_batch: 2}"
    ).train
    assert made is not None
    assert isinstance(made.model, Work)
    assert made.model.params == 25_600_000


def test_paths_start_at_the_file_s_folder() -> None:
    def model(path: str) -> object:
        made = read(TRAIN.replace("llama-3.1-8b", path), folder="jobs/one").train
        return made and made.model

    assert model("config.json") == "jobs/one/config.json"
    assert model("./shape") == "jobs/one/./shape"
    assert model("/etc/shape.yaml") == "/etc/shape.yaml"
    assert model("~/shape.yaml") == "~/shape.yaml"
    assert model("meta-llama/Llama-3.1-8B") == "meta-llama/Llama-3.1-8B"


def train(**fields: str) -> str:
    given = {"model": "llama-3.1-8b", "tokens": "10B", "sequence": "8192", "global_batch": "512"}
    pairs = (given | fields).items()
    return "train:\n" + "".join(f"  {name}: {value}\n" for name, value in pairs if value)


# text, words of the message, whether the schema can see it
# ruff: noqa: E501
BAD: list[tuple[str, str, bool]] = [
    ("", "line 1: train: train .or work, if it was measured. is missing", True),
    ("just words", "expected fields", True),
    ("[1, 2]", "expected fields", True),
    ("limits: {budget: $5}", "w.yaml line 1: train: train .or work", True),
    (TRAIN + WORK, "line 2: work: there is train too", True),
    (TRAIN + "limts: {budget: $5}", "line 2: limts: there is no such field; did you mean 'limits'", True),
    (TRAIN + "own: [{name: box}]", "line 2: own: machines of your own .* account.yaml", True),
    (TRAIN + "name: My Run!", "line 2: name: 'My Run!' is no name", True),
    (TRAIN + "limits: now", "limits: expected fields", True),
    # train
    (train(modle="x", model=""), "train.modle: there is no such field; did you mean 'model'", True),
    (train(model=""), "train.model: it is missing", True),
    (train(model="lama-3.1-8b"), "train.model: no model is called .*did you mean llama", False),
    (train(model="{layers: 2}"), "needs d_model, n_heads, d_ff, vocab", True),
    (train(model="[a]"), "train.model: expected a value, found a list", True),
    (train(tokens="0"), "train.tokens: 0 is not more than 0", True),
    (train(tokens="-5"), "train.tokens: '-5' is negative", True),
    (train(tokens="many"), "train.tokens: 'many' is not a number of tokens", True),
    (train(tokens="1.5"), "is not a whole number", True),
    (train(tokens="1.5e0"), "is not a whole number", True),
    (train(tokens="1e99"), "train.tokens", False),
    (train(tokens="9" * 30), "train.tokens", False),
    (train(tokens=""), "how much training?", True),
    (train(sequence=""), "train.tokens: it counts tokens, so sequence", True),
    (train(sequence="", tokens="", samples="5", global_batch="4M tokens"), "global_batch: it counts tokens", False),
    (train(global_batch=""), "global_batch: it is missing", True),
    (train(global_batch="4M bananas"), "train.global_batch: '4M bananas'", True),
    (train(tokens="", epochs="3"), "epochs of what", True),
    (train(dataset="1k samples"), "it counts only with epochs", True),
    (train(epochs="0", dataset="5"), "train.epochs: 0 is not more", True),
    (train(steps="10"), "train.steps: it makes 5,120 samples, but tokens makes 1,220,703", False),
    (train(samples="10"), "train.samples: it makes 10 samples", False),
    (train(lora="16", qlora="16"), "train.qlora: there is lora too", True),
    (train(lora="0"), "train.lora: 0 is not", True),
    (train(precision="fp7"), "train.precision: 'fp7' is not among the choices .*did you mean", True),
    (train(stack="megatrn"), "did you mean megatron", True),
    (train(optimizer="adamx"), "train.optimizer", True),
    (train(sharding="zero9"), "train.sharding", True),
    (train(activation_checkpointing="some"), "train.activation_checkpointing", True),
    (train(flash_attention="maybe"), "neither true nor false", True),
    (train(micro_batch="1024"), "1024 is more than the 512 of a global batch", False),
    (train(tp="2.5"), "train.tp: '2.5' is not a whole number", True),
    # work
    ("work: {hours: 12}", "work.on: it is missing", True),
    ("work: {on: 1xT4}", "how long", True),
    ("work: {on: 1xT4, hours: 0}", "work.hours: 0 is not more", True),
    ("work: {on: 1xT4, hours: 2, steps: 5}", "give hours, or step and steps", True),
    ("work: {on: 1xT4, step: 2s}", "how many of them", True),
    ("work: {on: 1xT4, steps: 2}", "how long is one", True),
    ("work: {on: 1xT4, step: 2, steps: 2}", "work.step: '2' is not the time of a step", True),
    ("work: {on: 1xT44, hours: 2}", "no accelerator is called 'T44'", False),
    ("work: {on: 8xh100, hours: 2}", "work.on: '8xh100' may be H100-SXM", False),
    ("work: {on: 0xT4, hours: 2}", "work.on", False),
    ("work: {on: 1xT4, hours: 2, memory: 30}", "work.memory: '30' has no unit", True),
    # data and checkpoints
    (TRAIN + "data: {size: 5GB}", "data.uri: it is missing", True),
    (TRAIN + "data: {uri: s3://a, size: 40}", "data.size: '40' has no unit", True),
    (TRAIN + "data: {uri: s3://a, size: 0GB}", "data.size: 0 is not more", True),
    (TRAIN + "data: {uri: words}", "data.uri: 'words' is no address", True),
    (TRAIN + "data: {uri: s3://a, region: aws/eu-wst-1}", "no region of aws is called 'eu-wst-1' .*eu-west-1", False),
    (TRAIN + "data: {uri: s3://a, region: eu-wst-1}", "no region of aws is called", False),
    (TRAIN + "data: {uri: /a, region: eu-west-1}", "whose region", False),
    (TRAIN + "data: {uri: s3://a, region: aws/eu-*}", "is no single region", True),
    (TRAIN + "checkpoint: {every: 30}", "checkpoint.every: '30' has no unit of time", True),
    (TRAIN + "checkpoint: {every: sometimes}", "checkpoint.every", True),
    (TRAIN + "checkpoint: {keep: 0}", "checkpoint.keep: 0", True),
    # limits
    (TRAIN + "limits: {deadline: 48}", "limits.deadline: '48' has no unit of time", True),
    (TRAIN + "limits: {deadline: 0h}", "limits.deadline: 0 is not more", True),
    (TRAIN + "limits: {deadline: -3h}", "negative", True),
    (TRAIN + "limits: {deadline: 9999999d}", "hundred years", False),
    (TRAIN + "limits: {deadline: 2026-12-01}", "has no time and zone", True),
    (TRAIN + "limits: {deadline: '2026-12-01T08:00'}", "has no time zone", True),
    (TRAIN + "limits: {deadline: '2026-13-01T08:00Z'}", "is not a date and time", False),
    (TRAIN + "limits: {deadline: '0001-01-01T00:00+05:00'}", "is not a date and time", False),
    (TRAIN + "limits: {deadline: '2026-11-15T12:59+01:00'}", "is past: it is 2026-11-15 13:00 UTC.01:00 now", False),
    (TRAIN + "limits: {budget: $2,000}", "limits.000: a comma inside braces begins a new field", True),
    (TRAIN + "limits: {budget: 0}", "limits.budget: 0 is not more", True),
    (TRAIN + "limits: {budget: -5}", "limits.budget: '-5' is negative", True),
    (TRAIN + "limits: {budget: 5 euros}", "limits.budget", True),
    (TRAIN + "limits: {confidence: 0.9}", "limits.confidence: '0.9' is not a share", True),
    (TRAIN + "limits: {confidence: 100%}", "limits.confidence", True),
    (TRAIN + "limits: {confidence: 0%}", "limits.confidence", True),
    (TRAIN + "limits: {markets: []}", "limits.markets: an empty list allows nothing", True),
    (TRAIN + "limits: {markets: [sport]}", r"limits.markets\[1\]: 'sport' .*did you mean spot", True),
    (TRAIN + "limits: {markets: {a: b}}", "limits.markets: expected a list", True),
    (TRAIN + "limits: {providers: []}", "limits.providers: an empty list", True),
    (TRAIN + "limits: {providers: [awss]}", r"limits.providers\[1\]: no provider .*did you mean aws", False),
    (TRAIN + "limits: {providers: [zzz*]}", "no provider fits", False),
    (TRAIN + "limits: {providers: [aws], exclude: [aws]}", "every provider that is allowed is excluded", False),
    (TRAIN + "limits: {providers: [aws], regions: [fr-par]}", "providers and regions leave no region", False),
    (TRAIN + "limits: {exclude: ['*']}", "exclude leave", False),
    (TRAIN + "limits: {exclude: [mars]}", "no provider or region is called 'mars'", False),
    (TRAIN + "limits: {regions: [eu-wst-1]}", "no region is called .*eu-west-1", False),
    (TRAIN + "limits: {regions: [moon-*]}", "no region fits 'moon-", False),
    (TRAIN + "limits: {accelerators: [h1000]}", "no accelerator is called 'h1000'", False),
    (TRAIN + "limits: {accelerators: [Z9*]}", "no accelerator fits", False),
    (TRAIN + "limits: {accelerators: [8xH100-SXM]}", "a limit names the kind alone", False),
    (TRAIN + "limits: {max_nodes: 0}", "limits.max_nodes: 0 is not", True),
    (TRAIN + "limits: {max_nodes: few}", "limits.max_nodes", True),
    # run
    (TRAIN + "run: {setup: pip install x}", "run.command: it is missing", True),
    (TRAIN + "run: {command: ''}", "run.command: expected a command", True),
    (TRAIN + "run: {command: \"a\\eb\"}", "cannot be printed", False),
    (TRAIN + "run: {command: x, setup_time: 5}", "run.setup_time: '5' has no unit of time", True),
]  # fmt: skip
_IDS = [f"{n}-{words[:40]}" for n, (_, words, _) in enumerate(BAD)]


@pytest.mark.parametrize(("text", "words", "_"), BAD, ids=_IDS)
def test_what_is_wrong_is_told(text: str, words: str, _: bool) -> None:
    with pytest.raises(BadWorkload, match=words) as caught:
        read(text)
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("w.yaml line ")
    assert all(line.startswith("w.yaml line ") for line in caught.value.message.splitlines())
    assert len(caught.value.problems) >= 1


@pytest.mark.parametrize(("text", "words", "visible"), BAD, ids=_IDS)
def test_the_schema_refuses_what_it_can_see(text: str, words: str, visible: bool) -> None:
    assert VALIDATOR.is_valid(as_data(text) or {}) != visible


def test_everything_wrong_is_told_at_once_with_lines() -> None:
    text = train(tokens="0", tp="x", foo="1") + "limits:\n  budget: 0\n  providers: [awss, gcpp]\n"
    with pytest.raises(BadWorkload) as caught:
        read(text)
    places = [line.split(": ")[:2] for line in caught.value.message.splitlines()]
    assert places == [
        ["w.yaml line 3", "train.tokens"],
        ["w.yaml line 6", "train.tp"],
        ["w.yaml line 7", "train.foo"],
        ["w.yaml line 9", "limits.budget"],
        ["w.yaml line 10", "limits.providers[1]"],
        ["w.yaml line 10", "limits.providers[2]"],
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train: [1, 2\n", "not YAML"),
        ("a: \x01", "not YAML"),
        ("a: \ud800", "not YAML"),
        ("{" * 5000, "nested deeper|not YAML"),
        ("&x [*x]", "contains itself"),
        ("train: 1\ntrain: 2\n", "'train' twice"),
        ("--- 1\n--- 2\n", "not YAML"),
        ("x: " + "y" * 1_000_001, "larger than a million"),
    ],
)
def test_what_is_no_yaml(text: str, words: str) -> None:
    with pytest.raises(BadWorkload, match=words):
        read(text)


def test_a_file_s_words_do_not_steer_the_terminal() -> None:
    with pytest.raises(BadWorkload) as caught:
        read(TRAIN + '"\\e[31mred": 1\nlimits: {"\\x07bell": 2}')
    assert "\x1b" not in str(caught.value)
    assert "\x07" not in str(caught.value)


# -- any text ------------------------------------------------------------------------------------

_WORDS = st.sampled_from(
    "train work limits run data name model tokens 10B 0 -1 48h $5 [ ] { } : , - & * ! | > ' \" # "
    "llama-3.1-8b on hours deadline providers aws eu-* true null ~ <<  8xA100 90% 1e400 nan inf "
    "2026-12-01T08:00Z epochs dataset ٣ ½ \t \x00 \u2028 markets spot".split(" ")
)
_SCALARS = st.one_of(_WORDS, st.integers(), st.floats(), st.booleans(), st.none(), st.text())
_FIELDS = st.sampled_from(
    [name for section in SECTIONS for name in (section.name, *(f.name for f in section.fields))]
)
_TREES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_FIELDS | st.text(), inner, max_size=6)
    ),
    max_leaves=25,
)


@settings(max_examples=150)
@given(st.one_of(st.text(), st.lists(_WORDS).map(" ".join), st.lists(_WORDS).map("\n".join)))
@example("? [a]\n: b")
@example("!!null x: y")
@example("train: !!binary aGVsbG8=")
def test_any_text_gives_a_workload_or_our_error(text: str) -> None:
    for more in ({}, {"known": None, "now": None}):
        try:
            assert isinstance(read(text, **more), Workload)
        except BadWorkload:
            continue


@settings(max_examples=150)
@given(st.dictionaries(_FIELDS, _TREES, max_size=5))
def test_any_data_gives_a_workload_or_our_error(document: dict[str, Any]) -> None:
    try:
        assert isinstance(workload.of(document, now=NOW, known=KNOWN), Workload)
    except BadWorkload:
        return


_UNITS = (
    "k m B T G kB MiB GB TB PB h m min mins minutes s sec d days w weeks ms us hours % tokens token "
    "samples SEQUENCES images K\ttokens Msteps usd dollars USD nodes accelerators h30m d,12h x b".split(
        " "
    )
)
_AMOUNTS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", " ", "$", "us$ ", "USD "]),
    st.sampled_from(["1", "0", "12", "1,000", "1_000", "0.5", ".5", "12.50", "00", "99", "7."]),
    st.sampled_from(["", " ", "  "]),
    st.one_of(st.just(""), st.sampled_from(_UNITS), st.sampled_from(_UNITS).map(str.upper)),
)
_ONE = [(s, f) for s in SECTIONS for f in s.fields]


@settings(max_examples=250)
@given(st.sampled_from(_ONE), st.one_of(_AMOUNTS, _SCALARS, st.lists(_SCALARS, max_size=3)))
def test_what_the_reader_takes_the_schema_takes(one: tuple[Section, Field], value: Any) -> None:
    """Field by field: a schema that refuses what works would be the worse fault."""
    section, field = one
    base = as_data(WORK if section.name == "work" else FULL)
    if section.flat:
        del base["train"]
        base["gpus"] = "H100:8"
    part = base if section.flat else base.setdefault(section.name, {})
    if field.name in ("samples", "steps", "epochs", "dataset", "step"):
        part.pop("tokens", part.pop("hours", None))
        part |= {"epochs": 1, "dataset": 10} if field.name in ("epochs", "dataset") else {}
        part |= {"step": "2s", "steps": 10} if section.name == "work" else {}
    part[field.name] = value
    try:
        workload.of(base, now=NOW, known=KNOWN)
    except BadWorkload:
        return
    assert not list(VALIDATOR.iter_errors(base))


def test_variables_of_the_job() -> None:
    found = read(TRAIN + "run: {command: x, env: {NCCL_DEBUG: INFO, N: 3}}")
    assert found.run is not None
    assert found.run.env == {"NCCL_DEBUG": "INFO", "N": "3"}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("[A]", "expected names with their values"),
        ("{TRADEWIND_RUN: x}", "TRADEWIND_RUN is ours"),
        ("{1A: x}", "'1A' is not the name of a variable"),
    ],
)
def test_variables_that_are_none(env: str, words: str) -> None:
    with pytest.raises(BadWorkload, match=words):
        read(TRAIN + f"run: {{command: x, env: {env}}}")
