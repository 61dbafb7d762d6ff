"""Profiles against figures computed by hand, and everything a user may get wrong."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch warns where there is no numpy
    pytest.importorskip("torch")

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tests.torch import bad, models
from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.cli.plan.profile import command
from tradewind.model.profile import Profile, from_json
from tradewind.torch.profiling.inputs import InputSpec, parse_input
from tradewind.torch.profiling.profile import profile

ROOT = Path(__file__).parent.parent.parent
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command as `tradewind` would run it: exit code, standard output, standard error."""
    import click

    monkeypatch.chdir(ROOT)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code, said = 0, ""
        try:
            command.main(list(arguments), standalone_mode=False)
        except TradewindError as error:
            code, said = error.exit_code, str(error)
        except click.ClickException as error:
            code, said = error.exit_code, error.format_message()
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return code, out, err + said

    return call


# -- figures -------------------------------------------------------------------------------------


def test_an_mlp_by_hand() -> None:
    p = profile(models.mlp)
    weights = 16 * 32 + 32 * 32 + 32 * 4
    assert p.parameters == p.trainable_parameters == weights + 32 + 32 + 4
    assert p.parameter_bytes == 4 * p.parameters
    assert p.forward_flops_per_sample == 2 * weights
    # Nothing is propagated to the inputs of the first layer.
    assert p.backward_flops_per_sample == 4 * weights - 2 * 16 * 32
    assert p.matmul_flops_per_sample == p.flops_per_sample
    assert (p.attention_flops_per_sample, p.convolution_flops_per_sample, p.flops_fixed) == (0,) * 3
    # The inputs of the second and third layer; the ReLU keeps its result, which is the former.
    assert p.saved_bytes_per_sample == 4 * (32 + 32)
    assert p.saved_bytes_fixed == 0
    assert (p.batch, p.input, p.dtype, p.warnings) == (8, "float32[8,16]", "float32", ())
    assert [(x.name, x.kind, x.parameters, x.forward_flops) for x in p.layers] == [
        ("0", "Linear", 544, 1024),
        ("1", "ReLU", 0, 0),
        ("2", "Linear", 1056, 2048),
        ("3", "Linear", 132, 256),
    ]
    assert [x.saved_bytes for x in p.layers] == [0, 128, 0, 128]


def test_bytes_moved_by_hand() -> None:
    p = profile(models.bare, inputs=[parse_input("float32[8,16]")], forward_only=True)
    # addmm reads the input, the weight and the bias, and writes the output.
    assert p.moved_bytes_per_sample == 4 * (16 + 4)
    assert p.moved_bytes_fixed == 4 * (16 * 4 + 4)
    trained = profile(models.bare, inputs=[parse_input("float32[8,16]")])
    # Then: sum, its gradient (one number, expanded), x.T @ grad, the sum of grad for the bias.
    forward = (16 + 4) + 4
    backward = 16 + 0 + 0
    assert trained.moved_bytes_per_sample == 4 * (forward + backward)


def test_peak_memory_by_hand() -> None:
    p = profile(models.bare, inputs=[parse_input("float32[1000,16]")], forward_only=True)
    assert p.peak_bytes_fixed == 4 * (16 * 4 + 4)
    assert p.peak_bytes_per_sample == 4 * (16 + 4)


def test_a_conv_net_by_hand() -> None:
    p = profile(models.conv_net)
    first = 2 * (3 * 3 * 3) * 8 * 32 * 32
    second = 2 * (3 * 3 * 8) * 16 * 16 * 16
    head = 2 * 16 * 10
    assert p.parameters == (3 * 9 * 8 + 8) + (8 * 9 * 16) + (16 * 10 + 10)
    assert p.forward_flops_per_sample == first + second + head
    assert p.backward_flops_per_sample == first + 2 * second + 2 * head
    assert p.convolution_flops_per_sample == 2 * first + 3 * second
    assert p.matmul_flops_per_sample == 3 * head
    # Both ReLUs' results, one of them the second convolution's input, and the head's input.
    assert p.saved_bytes_per_sample == 4 * (8 * 32 * 32 + 16 * 16 * 16 + 16)


def test_a_transformer_by_hand() -> None:
    p = profile(models.tiny_llama)
    vocab, width, depth, heads, kv, hidden, length = 1000, 64, 3, 4, 2, 160, 32
    attention = width * width * 2 + 2 * width * (width // heads * kv)
    block = attention + 3 * width * hidden
    assert p.parameters == 2 * vocab * width + depth * (block + 2 * width) + width
    scores = 2 * length * length * width  # Q·K of all heads
    matmul = 2 * length * (depth * block + vocab * width)
    assert p.forward_flops_per_sample == matmul + depth * 2 * scores
    assert p.backward_flops_per_sample == 2 * matmul + depth * 5 * scores
    assert p.attention_flops_per_sample == depth * 7 * scores
    assert p.matmul_flops_per_sample == 3 * matmul
    assert [x.name for x in p.layers] == [
        *("embed", "layers.0", "layers.1", "layers.2", "norm", "head", "(rest)")
    ]
    assert sum(x.parameters for x in p.layers) == p.parameters
    assert sum(x.forward_flops for x in p.layers) == p.forward_flops_per_sample
    assert sum(x.saved_bytes for x in p.layers) == p.saved_bytes_per_sample
    assert not p.warnings


def test_the_batch_changes_no_figure_per_sample() -> None:
    small, large = profile(models.tiny_llama), profile(models.tiny_llama, batch=5)
    assert (small.batch, large.batch) == (2, 5)
    assert replace(small, batch=5, input=large.input) == large


def test_a_batch_of_one_is_not_run() -> None:
    """There, copies are free that cost at any other size."""
    assert profile(models.tiny_llama, batch=1) == profile(models.tiny_llama)


def test_half_the_width_is_half_the_bytes() -> None:
    full, half = profile(models.mlp), profile(models.mlp, dtype="bf16")
    assert half.dtype == "bfloat16"
    assert half.parameter_bytes * 2 == full.parameter_bytes
    assert half.saved_bytes_per_sample * 2 == full.saved_bytes_per_sample
    assert half.forward_flops_per_sample == full.forward_flops_per_sample


def test_forward_only() -> None:
    p, trained = profile(models.tiny_llama, forward_only=True), profile(models.tiny_llama)
    assert p.forward_only
    assert p.forward_flops_per_sample == trained.forward_flops_per_sample
    assert p.backward_flops_per_sample == p.saved_bytes_per_sample == p.saved_bytes_fixed == 0
    assert p.peak_bytes_per_sample < trained.peak_bytes_per_sample
    assert p.attention_flops_per_sample * 7 == trained.attention_flops_per_sample * 2


def profiled_alone(name: str, folder: Path) -> tuple[Profile, str]:
    """In a process of its own, which may not take much memory."""
    script = (
        "import resource, sys\n"
        "from tradewind.cli.plan.profile import command\n"
        f"command.main(['tests.torch.models:{name}', '--out', {str(folder / 'p.json')!r}],"
        " standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.splitlines()[-1]) < 2 * 1024 * 1024  # kB
    return from_json((folder / "p.json").read_text(), "p.json"), done.stdout


@pytest.mark.slow
def test_seventy_billion_parameters_need_no_memory(tmp_path: Path) -> None:
    p, shown = profiled_alone("wide_llama", tmp_path)
    width, hidden, depth, vocab = 32_768, 106_496, 5, 128_256
    block = (2 + 2 / 8) * width**2 + 3 * width * hidden
    assert p.parameters == depth * block + (2 * depth + 1) * width + 2 * vocab * width
    assert p.parameters > 70e9
    assert p.parameter_bytes == 2 * p.parameters
    # 2 FLOPs for each parameter but the embedding's and the norms', and attention, per token.
    matmul = depth * block + vocab * width
    assert p.forward_flops_per_sample == 8192 * (2 * matmul + depth * 4 * width * 8192)
    assert len(p.layers) == depth + 4
    assert "5 × Block" in shown


@pytest.mark.system  # a minute: eighty layers, three times
def test_llama_of_seventy_billion_parameters(tmp_path: Path) -> None:
    p, shown = profiled_alone("llama_70b", tmp_path)
    assert p.parameters == 70_553_706_496
    assert p.parameter_bytes == 2 * p.parameters
    # 2 FLOPs for each parameter but the embedding's and the norms', and attention, per token.
    matmul = p.parameters - 128_256 * 8192 - 161 * 8192
    assert p.forward_flops_per_sample == 8192 * (2 * matmul + 80 * 4 * 8192 * 8192)
    assert len(p.layers) == 80 + 4
    assert "70.55B bfloat16 parameters" in shown
    assert "80 × Block" in shown


# -- what a model may be -------------------------------------------------------------------------


def linear(**kwargs: Any) -> nn.Module:
    return nn.Linear(4, 4, **kwargs)


def given(module: Callable[[], nn.Module], *shape: int) -> Profile:
    return profile(lambda: (module(), torch.zeros(shape)))


def test_devices_are_ignored() -> None:
    expected = given(linear, 2, 4)
    assert given(lambda: linear(device="cuda"), 2, 4) == expected
    assert given(lambda: linear().cuda(), 2, 4) == expected
    assert given(lambda: linear().to("cuda:1"), 2, 4) == expected
    assert given(lambda: linear(device="meta"), 2, 4) == expected

    def inside() -> Any:
        with torch.device("cuda"):
            return nn.Linear(4, 4), torch.zeros(2, 4)

    assert profile(inside).parameters == expected.parameters

    class Moving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = linear()

        def forward(self, x: Tensor) -> Any:
            x = x.to("cuda", torch.float32) + torch.ones(4, device="cuda")
            return self.line(x.to(device="cuda"))

    assert given(Moving, 2, 4).forward_flops_per_sample == expected.forward_flops_per_sample


def test_conversions_keep_shared_parameters_shared() -> None:
    def tied() -> nn.Module:
        first, second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        second.weight = first.weight
        return nn.Sequential(first, second).to(torch.float64).half()

    p = given(lambda: tied().float(), 2, 4)
    assert (p.parameters, p.dtype) == (16, "float32")
    assert [x.parameters for x in p.layers] == [16, 0]


def test_a_conversion_that_changes_nothing_does_not_stop_the_next() -> None:
    def moved() -> Any:
        return linear().cuda().float(), torch.zeros(2, 4)

    assert profile(moved, dtype="bf16").parameter_bytes == 2 * 20
    assert given(lambda: linear().cuda().half().bfloat16().float(), 2, 4).parameter_bytes == 4 * 20


def test_a_model_built_at_import_has_real_tensors() -> None:
    real = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    inputs = torch.zeros(3, 4)
    p = profile(lambda: (real, inputs))
    assert p.parameters == 4 * 8 + 8 + 16
    assert p.buffers_bytes == 4 * 16 + 8
    assert p == replace(
        profile(lambda: (nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), torch.zeros(3, 4))),
        name=p.name,
    )


def test_copied_layers_cost_what_the_original_does() -> None:
    layers = nn.Sequential(linear(), linear())
    assert given(lambda: copy.deepcopy(layers), 2, 4) == given(
        lambda: copy.deepcopy(nn.Sequential(linear(), linear())), 2, 4
    )
    assert given(lambda: copy.deepcopy(layers), 2, 4).saved_bytes_fixed == 0


def test_dropout_keeps_a_byte_for_each_element() -> None:
    p = given(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1)), 2, 4)
    assert p.saved_bytes_per_sample == 4


def test_attention_with_dropout_is_fused() -> None:
    def encoder(dropout: float) -> Profile:
        layer = nn.TransformerEncoderLayer
        return given(lambda: layer(16, 2, 32, dropout, batch_first=True), 2, 64, 16)

    plain, dropped = encoder(0.0), encoder(0.1)
    assert dropped.attention_flops_per_sample == plain.attention_flops_per_sample > 0
    masks = 64 * (16 + 32 + 16)  # after attention, in the MLP, after it
    extra = dropped.saved_bytes_per_sample - plain.saved_bytes_per_sample
    # A dropped-out ReLU is kept in two versions, one for each of its readers.
    assert extra == masks + 4 * 64 * 32

    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = linear()

        def forward(self, x: Tensor) -> Tensor:
            q = self.line(x).unsqueeze(1)
            return functional.scaled_dot_product_attention(q, q, q, None, 0.1)

    assert given(Direct, 2, 8, 4).attention_flops_per_sample == 7 * 2 * 8 * 8 * 4


def test_rms_norm_keeps_its_input_only() -> None:
    p = given(lambda: nn.Sequential(linear(), nn.RMSNorm(4)), 2, 4)
    assert 4 * 4 <= p.saved_bytes_per_sample <= 4 * (4 + 2)


def test_autocast_for_a_gpu_is_one() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = linear(bias=False), linear(bias=False)

        def forward(self, x: Tensor) -> Any:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return self.second(self.first(x))

    p = given(Mixed, 2, 4)
    assert p.saved_bytes_per_sample == 2 * (4 + 4)  # both inputs, the first one a copy
    assert p.saved_bytes_fixed == 2 * 16  # the second weight's


def test_numbers_from_small_tensors_serve_to_build() -> None:
    rates: list[float] = []

    def build() -> Any:
        rates.extend(x.item() for x in torch.linspace(0, 0.3, 4))
        model = linear(dtype=torch.float32)
        nn.init.trunc_normal_(model.weight)
        return model, torch.zeros(2, 4)

    assert profile(build).parameters == 20
    assert rates == pytest.approx([0, 0.1, 0.2, 0.3])


def test_recurrent_nets_count() -> None:
    p = profile(lambda: (nn.LSTM(4, 8, batch_first=True), torch.zeros(2, 5, 4)))
    assert p.forward_flops_per_sample == 2 * 5 * 4 * 8 * (4 + 8)


def test_checkpointing_is_seen() -> None:
    class Deep(nn.Module):
        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(3)
            )

        def forward(self, x: Tensor) -> Any:
            for block in self.blocks:
                x = block(x) if self.kept else checkpoint(block, x, use_reentrant=False)
            return x

    kept, again = given(lambda: Deep(True), 2, 8), given(lambda: Deep(False), 2, 8)
    assert kept.saved_bytes_per_sample == 4 * (3 * 32 + 2 * 8)
    assert again.saved_bytes_per_sample == 4 * (2 * 8)
    assert again.forward_flops_per_sample == kept.forward_flops_per_sample
    assert again.backward_flops_per_sample > kept.backward_flops_per_sample


def test_outputs_like_hugging_faces() -> None:
    class Output(dict[str, Any]):
        def __getattr__(self, name: str) -> Any:
            return self.get(name)

    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(50, 8), nn.Linear(8, 50, bias=False)

        def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Output:
            logits = self.head(self.embed(input_ids))
            out = Output(logits=logits, hidden=logits.detach())
            if labels is not None:
                out["loss"] = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            return out

    tokens = parse_input("input_ids=int64[2,16]:vocab=50")
    plain = profile(Causal, inputs=[tokens])
    lossy = profile(Causal, inputs=[tokens, parse_input("labels=int64[2,16]")])
    assert plain.forward_flops_per_sample == lossy.forward_flops_per_sample == 2 * 16 * 8 * 50
    assert plain.backward_flops_per_sample == 2 * plain.forward_flops_per_sample
    assert lossy.saved_bytes_per_sample > plain.saved_bytes_per_sample  # the log-probabilities
    assert plain.input == "input_ids=int64[2,16]"
    with pytest.raises(InvalidValue, match=r"vocab=51, but the largest embedding .* 50 rows"):
        profile(Causal, inputs=[parse_input("input_ids=int64[2,16]:vocab=51")])


def test_outputs_of_every_shape() -> None:
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = linear()

        def forward(self, x: Tensor, scale: float) -> Any:
            out = self.line(x)
            return {"first": out, "more": [out * scale, (out.argmax(-1), None, "words")]}

    p = profile(lambda: (Several(), (torch.zeros(2, 4), 2.0)))
    assert p.backward_flops_per_sample == p.forward_flops_per_sample


def test_fixed_inputs_stay() -> None:
    class Adding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = linear()

        def forward(self, x: Tensor, table: Tensor) -> Any:
            return self.line(x) + self.line(table).sum(0)

    specs = [parse_input("float32[2,4]"), parse_input("float32[2,4]:fixed")]
    p = profile(Adding, inputs=specs)
    assert p.forward_flops_per_sample == 2 * 16
    assert p.flops_fixed == 2 * (2 * 16) * 2  # forward and backward


def test_figures_that_do_not_grow_in_proportion_are_told() -> None:
    p = profile(bad.quadratic)
    assert p.forward_flops_per_sample == (2 * 2 * 16 + 2 * 2 * 2 * 4) // 2  # at batch 2
    assert "forward FLOPs are not in proportion to the batch" in p.warnings[0]


def test_operators_without_a_formula_are_told() -> None:
    @torch.library.custom_op("tradewind_tests::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    @doubled.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    doubled.register_autograd(lambda ctx, grad: grad * 2)

    class Custom(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = linear()

        def forward(self, x: Tensor) -> Any:
            return doubled(self.line(x))

    assert "tradewind_tests::doubled" in given(Custom, 2, 4).warnings[0]


def test_nothing_of_pytorch_stays_changed() -> None:
    before = nn.Module._apply, torch._C._get_mkldnn_enabled()
    with pytest.raises(InvalidValue):
        profile(bad.raises)
    profile(models.mlp)
    assert (nn.Module._apply, torch._C._get_mkldnn_enabled()) == before
    assert type(torch.zeros(1)) is Tensor


# -- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("int64[8,1024]:vocab=50257", InputSpec("int64", (8, 1024), vocab=50257)),
        ("float32[8,3,224,224]", InputSpec("float32", (8, 3, 224, 224))),
        (" bf16[ 8, 3 ] ", InputSpec("bfloat16", (8, 3))),
        ("ids=long[8]:fixed,vocab=3", InputSpec("int64", (8,), "ids", 3, True)),
        ("float32[]:fixed", InputSpec("float32", (), fixed=True)),
    ],
)
def test_inputs_are_read(text: str, spec: InputSpec) -> None:
    assert parse_input(text) == spec
    assert parse_input(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not an input"),
        ("8,1024", "is not an input"),
        ("int64", "is not an input"),
        ("int64[8", "is not an input"),
        ("int65[8]", "did you mean int64"),
        ("words[8]", "no type 'words'"),
        ("int64[]", "no leading size"),
        ("int64[8,]", "'' is not a size"),
        ("int64[8,0]", "'0' is not a size"),
        ("int64[-8]", "'-8' is not a size"),
        ("int64[8.5]", "'8.5' is not a size"),
        ("int64[٣]", "is not a size"),
        ("int64[9999999999,9999999999]", "more than 2\\^50"),
        ("int64[8]:", "no option ''"),
        ("int64[8]:vocabulary=3", "no option"),
        ("int64[8]:vocab=0", "vocab is '0'"),
        ("int64[8]:vocab=x", "vocab is 'x'"),
        ("float32[8]:vocab=3", "only whole numbers have a vocabulary"),
    ],
)
def test_bad_inputs_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        parse_input(text)


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        (["float32[8,16]", "float32[4,16]"], "different batches"),
        (["float32[8,16]:fixed"], "no input has a batch"),
        (["x=float32[8,16]", "x=float32[8,16]"], "two inputs have the same name"),
    ],
)
def test_inputs_that_do_not_agree_are_refused(specs: list[str], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        profile(models.bare, inputs=[parse_input(text) for text in specs])


# -- the command ---------------------------------------------------------------------------------


def test_the_command_shows_and_writes(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "new" / "mlp.json"
    code, shown, said = cli("tests.torch.models:mlp", "--out", str(out))
    assert code == 0
    assert "1.732K float32 parameters" in shown
    assert "3.328 kFLOP" in shown
    assert f"written: {out}" in said
    assert from_json(out.read_text(), "x") == profile(models.mlp, name="tests.torch.models:mlp")
    code, shown, _ = cli("tests.torch.models:mlp", "--json", "--batch", "3")
    assert json.loads(shown)["input"] == "float32[3,16]"
    code, shown, _ = cli(
        *("tests.torch.models:bare", "--input", "fp32[6,16]", "--dtype", "bf16"),
        *("--forward-only", "--json"),
    )
    assert (json.loads(shown)["dtype"], json.loads(shown)["forward_only"]) == ("bfloat16", True)


def test_what_the_model_prints_is_no_output(cli: Cli) -> None:
    code, shown, said = cli("tests.torch.bad:talks", "--json")
    assert json.loads(shown)["parameters"] == 8
    assert "building" in said
    code, _, said = cli("tests.torch.bad:quadratic")
    assert (code, "warning: forward FLOPs" in said) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("tests.torch.models", 2, "does not name a factory"),
        (":mlp", 2, "does not name a factory"),
        ("tests.torch.models:", 2, "does not name a factory"),
        ("tests/torch/models.py:mlp", 2, "write tests.torch.models:mlp"),
        ("tests.torch.model:mlp", 3, "did you mean tests.torch.models?"),
        ("test.torch.models:mlp", 3, "there is no module 'test.torch'"),
        ("nowhere_at_all:mlp", 3, "there is no module 'nowhere_at_all'"),
        ("tests.torch.models:mlps", 3, "did you mean mlp?"),
        ("tests.torch.bad:nothing_like_it", 3, "it has Branching"),
        ("tests.torch.bad:NOT_CALLABLE", 2, "is a int, which cannot be called"),
        ("tests.torch.models:Llama", 2, "needs vocab, width"),
        ("tests.torch.models:bare", 2, "without example inputs"),
        ("tests.torch.models:bare --input float32[8,17]", 2, "RuntimeError: a and b must have"),
        ("tests.torch.models:mlp --batch 0", 2, "0 is not in the range"),
        ("tests.torch.models:mlp --dtype int4", 2, "'int4' is not one of"),
        ("tests.torch.models:mlp --out /proc/mlp.json", 5, "/proc/mlp.json cannot be written"),
        ("tests.torch.models:mlp --out tests", 5, "tests cannot be written"),
        ("tests.torch.bad:raises", 2, "KeyError: 'no such size: huge'"),
        ("tests.torch.bad:raises", 2, "tests/torch/bad.py, line 15: raise KeyError("),
        ("tests.torch.bad:leaves", 2, "it ended the program, with 0"),
        ("tests.torch.bad:gives_a_number", 2, "gave a int"),
        ("tests.torch.bad:four_parts", 2, "returned (Linear, FakeTensor, NoneType"),
        ("tests.torch.bad:odd_inputs", 2, "returned a str for example inputs"),
        ("tests.torch.bad:odd_loss", 2, "returned a str for the loss function"),
        ("tests.torch.bad:scalar_inputs", 2, "no tensor with a leading size"),
        ("tests.torch.bad:vector_loss", 2, "the loss is [4], not one number"),
        ("tests.torch.bad:frozen", 2, "depends on a trainable parameter"),
        ("tests.torch.bad:lazy", 2, "needs a model without lazy modules"),
        ("tests.torch.bad:branching", 2, "aten._local_scalar_dense.default (`.item()`"),
        ("tests.torch.bad:branching", 2, ": if x.sum() > 0:"),
        ("tests.torch.bad:picking", 2, "shape depends on values"),
        ("tests.torch.bad:wrong_shapes", 2, "at batch 2: RuntimeError: a and b must have"),
        ("tests.torch.bad:wrong_shapes", 2, ": return x @ torch.zeros(5, 5)"),
    ],
)
def test_what_goes_wrong_is_told(cli: Cli, arguments: str, code: int, said: str) -> None:
    got, out, told = cli(*arguments.split())
    assert said in told
    assert (got, out) == (code, "")


def test_files_of_the_users_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_net.py").write_text(
        "import torch\ndef net():\n    return torch.nn.Linear(2, 2)"
    )
    (tmp_path / "own_broken.py").write_text("def net(:\n    pass\n")
    (tmp_path / "own_needy.py").write_text("import a_package_nobody_has\n")
    path = list(sys.path)
    assert cli("own_net:net", "--input", "float32[4,2]")[0] == 0
    code, _, said = cli("own_broken:net")
    assert (code, "SyntaxError" in said, "own_broken.py, line 1: def net(:" in said) == (
        2,
        True,
        True,
    )
    code, _, said = cli("own_needy:net")
    assert code == 2
    assert "ModuleNotFoundError: No module named 'a_package_nobody_has'" in said
    assert "own_needy.py, line 1" in said
    assert sys.path == path


def test_without_torch_it_says_what_to_install() -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\n"
        "from tradewind.cli.plan.profile import command\n"
        "import tradewind.torch.profiling.profile, tradewind.torch.profiling.inputs\n"
        "from tradewind.base.errors import MissingExtra\n"
        "try:\n    command.main(['a:b'], standalone_mode=False)\n"
        "except MissingExtra as error:\n    print(error.exit_code, error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "7 pip install 'tradewind[torch]'\n"


# -- the file ------------------------------------------------------------------------------------


def test_a_profile_survives_its_file() -> None:
    for p in (profile(models.tiny_llama), profile(bad.quadratic)):
        assert from_json(p.to_json(), "x") == p


def changed(**changes: Any) -> str:
    document = {**profile(models.mlp).document(), **changes}
    return json.dumps({key: value for key, value in document.items() if value != "gone"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "something"}, "is not a profile"),
        ({"format": 2}, "format 2; this Tradewind reads 1"),
        ({"format": "gone"}, "format None"),
        ({"parameters": "gone"}, "'parameters' is missing"),
        ({"parameters": -1}, "parameters is -1"),
        ({"parameters": 1.5}, "parameters is 1.5"),
        ({"parameters": True}, "parameters is True"),
        ({"parameters": 0}, "trainable_parameters is more than parameters"),
        ({"batch": 0}, "batch is 0"),
        ({"name": 3}, "name is 3"),
        ({"forward_only": 1}, "forward_only is 1"),
        ({"warnings": [1]}, "warnings is"),
        ({"layers": {}}, "layers is {}"),
        ({"layers": [3]}, r"layers\[0\] is not an object"),
        ({"layers": [{"name": "x"}]}, r"layers\[0\]: the field 'kind' is missing"),
        ({"surprise": 1}, "no field 'surprise'"),
    ],
)
def test_malformed_profiles_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadFile, match=said):
        from_json(changed(**changes), "file.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 100_000])
def test_what_is_no_profile_at_all_is_refused(text: str) -> None:
    with pytest.raises(BadFile, match=r"file\.json"):
        from_json(text, "file.json")
