from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_light_imports import loaded
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.estimate import registry
from tradewind.estimate.shapes import forward_flops_per_token, parameters
from tradewind.model.shape import Shape, Work

# Counts as published: in model cards, papers, and the totals that the hubs show of the weights.
# Falcon's and Qwen3's files hold a tied head twice; here it is counted once, as it is trained.
EXACT = {
    "gpt2-small": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200, "gpt-j-6b": 6_050_882_784, "gpt-neox-20b": 20_554_567_680,
    "pythia-70m": 70_426_624, "pythia-160m": 162_322_944, "pythia-410m": 405_334_016,
    "pythia-1b": 1_011_781_632, "pythia-1.4b": 1_414_647_808, "pythia-2.8b": 2_775_208_960,
    "pythia-6.9b": 6_857_302_016, "pythia-12b": 11_846_072_320,
    "opt-125m": 125_239_296, "opt-350m": 331_196_416, "opt-1.3b": 1_315_758_080,
    "opt-2.7b": 2_651_596_800, "opt-6.7b": 6_658_473_984, "opt-13b": 12_853_473_280,
    "opt-30b": 29_974_540_288,
    "bloom-560m": 559_214_592, "bloom-1b1": 1_065_314_304, "bloom-1b7": 1_722_408_960,
    "bloom-3b": 3_002_557_440, "bloom-7b1": 7_069_016_064, "bloom-176b": 176_247_271_424,
    "mpt-125m": 125_311_488, "mpt-350m": 355_985_408, "mpt-760m": 760_470_528,
    "mpt-1b": 1_315_950_592, "mpt-3b": 2_651_837_440, "mpt-7b": 6_658_859_008,
    "mpt-13b": 12_853_954_560, "mpt-30b": 29_975_214_080, "mpt-70b": 64_862_437_376,
    "llama-7b": 6_738_415_616, "llama-13b": 13_015_864_320, "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672, "llama-2-7b": 6_738_415_616, "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192, "llama-3-8b": 8_030_261_248, "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248, "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800, "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824, "llama-3.3-70b": 70_553_706_496,
    "tinyllama-1.1b": 1_100_048_384,
    "mistral-7b": 7_241_732_096, "mistral-7b-v0.3": 7_248_023_552,
    "mistral-nemo-12b": 12_247_782_400, "mistral-small-22b": 22_247_282_688,
    "mistral-small-24b": 23_572_403_200, "mistral-large-123b": 122_610_069_504,
    "mixtral-8x7b": 46_702_792_704, "mixtral-8x22b": 140_630_071_296,
    "qwen2-0.5b": 494_032_768, "qwen2-1.5b": 1_543_714_304, "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648, "qwen2.5-0.5b": 494_032_768, "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688, "qwen2.5-7b": 7_615_616_512, "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352, "qwen2.5-72b": 72_706_203_648,
    "qwen1.5-moe-a2.7b": 14_315_784_192, "qwen3-0.6b": 596_049_920, "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096, "qwen3-8b": 8_190_735_360, "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264, "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gemma-2b": 2_506_172_416, "gemma-7b": 8_537_680_896, "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984, "gemma-2-27b": 27_227_128_320, "gemma-3-1b": 999_885_952,
    "phi-1.5": 1_418_270_720, "phi-2": 2_779_683_840, "phi-3-mini": 3_821_079_552,
    "phi-3-medium": 13_960_238_080, "phi-4": 14_659_507_200, "phi-4-mini": 3_836_021_760,
    "deepseek-llm-7b": 6_910_365_696, "deepseek-moe-16b": 16_375_728_128,
    "deepseek-v2-lite": 15_706_484_224, "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
    "falcon-7b": 6_921_720_704, "gpt-oss-20b": 20_914_757_184, "gpt-oss-120b": 116_829_156_672,
    "starcoder-15b": 15_517_456_384, "starcoder2-3b": 3_030_371_328,
    "starcoder2-7b": 7_173_923_840, "starcoder2-15b": 15_957_889_024,
    "stablelm-3b-4e1t": 2_795_443_200, "stablelm-2-1.6b": 1_644_515_328,
    "stablelm-base-alpha-3b": 3_638_525_952,
    "stablelm-base-alpha-7b": 7_869_358_080,
    "smollm2-135m": 134_515_008, "smollm2-360m": 361_821_120, "smollm2-1.7b": 1_711_376_384,
    "olmo-1b": 1_176_764_416, "olmo-7b": 6_888_095_744, "olmo-2-7b": 7_298_617_344,
    "dbrx-132b": 131_596_523_520, "command-r-35b": 34_980_831_232,
    "command-r-plus-104b": 103_810_674_688, "yi-6b": 6_061_035_520, "yi-9b": 8_829_407_232,
    "yi-34b": 34_388_917_248, "internlm2-7b": 7_737_708_544, "internlm2-20b": 19_861_149_696,
    "chatglm2-6b": 6_243_584_000, "chatglm3-6b": 6_243_584_000, "glm-4-9b": 9_399_951_360,
    "bert-base": 109_482_240, "bert-large": 335_141_888, "bert-base-cased": 108_310_272,
    "roberta-base": 124_645_632, "roberta-large": 355_359_744, "distilbert-base": 66_362_880,
    "electra-base": 108_891_648, "electra-large": 334_092_288,
    "deberta-v3-base": 183_831_552, "deberta-v3-large": 434_012_160,
    "t5-small": 60_506_624, "t5-base": 222_903_552, "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336, "t5-11b": 11_307_321_344, "t5-v1.1-small": 76_961_152,
    "flan-t5-base": 247_577_856, "flan-t5-large": 783_150_080, "flan-t5-xl": 2_849_757_184,
    "flan-t5-xxl": 11_135_332_352, "bart-base": 139_420_416, "bart-large": 406_291_456,
    "whisper-tiny": 37_760_640, "whisper-base": 72_593_920, "whisper-small": 241_734_912,
    "whisper-medium": 763_857_920, "whisper-large": 1_543_304_960,
    "whisper-large-v3": 1_543_490_560, "whisper-large-v3-turbo": 808_878_080,
    "wav2vec2-base": 94_371_712, "wav2vec2-large": 315_438_720,
    "vit-s-16": 22_050_664, "vit-b-16": 86_567_656, "vit-b-32": 88_224_232,
    "vit-l-16": 304_326_632, "vit-l-32": 306_535_400, "vit-h-14": 632_045_800,
    "resnet-18": 11_689_512, "resnet-34": 21_797_672, "resnet-50": 25_557_032,
    "resnet-101": 44_549_160, "resnet-152": 60_192_808, "vgg-16": 138_357_544,
    "efficientnet-b0": 5_288_548, "convnext-tiny": 28_589_128, "ssd300-vgg16": 35_641_826,
    "stable-diffusion-1.5": 859_520_964, "stable-diffusion-2.1": 865_910_724,
    "stable-diffusion-xl": 2_567_463_684,
}  # fmt: skip

# Published to a few digits only.
ROUNDED = {
    "gpt3-125m": 125e6, "gpt3-760m": 760e6, "gpt3-6.7b": 6.7e9, "gpt3-175b": 175e9,
    "opt-66b": 65.7e9, "opt-175b": 175e9, "llama-2-34b": 33.7e9,
    "llama-4-scout-17b-16e": 107.8e9, "llama-4-maverick-17b-128e": 400e9,
    "qwen2-57b-a14b": 57.4e9, "qwen3-coder-480b-a35b": 480e9, "deepseek-llm-67b": 67.4e9,
    "kimi-k2": 1026e9, "falcon-40b": 41.3e9, "falcon-180b": 178.6e9,
    "gemma-3-4b": 3.88e9, "gemma-3-12b": 11.77e9, "gemma-3-27b": 27.0e9,
    "nemotron-4-15b": 15.6e9, "nemotron-4-340b": 341e9, "nemotron-3-nano-30b-a3b": 31.6e9,
    "nemotron-3-8b": 8.54e9, "stablelm-2-12b": 12.1e9,
    "olmo-2-1b": 1.48e9, "olmo-2-13b": 13.7e9, "olmo-2-32b": 32.2e9,
    "grok-1-314b": 314e9, "internlm-7b": 7.32e9, "internlm2-1.8b": 1.89e9,
    "glm-4.5-355b-a32b": 355e9, "glm-4.5-air-106b-a12b": 106e9,
    "xlm-roberta-base": 278e6, "xlm-roberta-large": 560e6, "deberta-v3-small": 141e6,
    "vit-ti-16": 5.72e6, "bert-base-multilingual-cased": 178e6, "dit-xl-2": 675e6,
}  # fmt: skip

# GPT-3's paper rounds its small ones away from what its own table of layers and widths gives.
LOOSE = {"gpt3-350m": 350e6, "gpt3-1.3b": 1.3e9, "gpt3-2.7b": 2.7e9, "gpt3-13b": 13e9}


@pytest.mark.parametrize(("name", "count"), EXACT.items(), ids=EXACT)
def test_counts_that_are_published_exactly(name: str, count: int) -> None:
    assert parameters(registry.find(name)) == pytest.approx(count, rel=0.001)


def test_nearly_all_of_them_agree_to_the_last_weight() -> None:
    off = {name for name, count in EXACT.items() if parameters(registry.find(name)) != count}
    assert off == {"stablelm-base-alpha-3b", "stablelm-base-alpha-7b"}


@pytest.mark.parametrize(("name", "count"), ROUNDED.items(), ids=ROUNDED)
def test_counts_that_are_published_roughly(name: str, count: float) -> None:
    assert parameters(registry.find(name)) == pytest.approx(count, rel=0.01)


@pytest.mark.parametrize(("name", "count"), LOOSE.items(), ids=LOOSE)
def test_counts_of_gpt3(name: str, count: float) -> None:
    assert parameters(registry.find(name)) == pytest.approx(count, rel=0.02)


def test_every_model_is_found_by_its_own_name_and_makes_sense() -> None:
    known = registry.names()
    assert len(known) == len(set(known)) > 250
    for name in known:
        model = registry.find(name)
        assert model.name == name
        assert parameters(model) > 1e6
        assert forward_flops_per_token(model, 512).total > 0
        if isinstance(model, Work):
            assert 0 < model.activation_bytes_per_sample < model.moved_bytes_per_sample
            assert model.input
            assert model.note  # none of its bytes are published


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("llama3-8b", "llama-3-8b"),
        ("LLAMA 3.1 8B", "llama-3.1-8b"),
        ("llama_3.1_8b", "llama-3.1-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("llama2-70b", "llama-2-70b"),
        ("huggyllama/llama-7b", "llama-7b"),
        ("gpt3-175b", "gpt3-175b"),
        ("GPT-3 175B", "gpt3-175b"),
        ("gpt2", "gpt2-small"),
        ("openai-community/gpt2-xl", "gpt2-xl"),
        ("qwen3_30b_a3b", "qwen3-30b-a3b"),
        ("Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b"),
        ("gpt oss 120b", "gpt-oss-120b"),
        ("nemotron_3_nano", "nemotron-3-nano-30b-a3b"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano-30b-a3b"),
        ("nemotron-15b", "nemotron-4-15b"),
        ("tiny-llama", "tinyllama-1.1b"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"),
        ("Phi-3-mini-4k-instruct", "phi-3-mini"),
        ("microsoft/phi-1_5", "phi-1.5"),
        ("Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3.1-8b"),
        ("gemma-2-9b-it", "gemma-2-9b"),
        ("google/gemma-2b", "gemma-2b"),
        ("bigscience/bloom", "bloom-176b"),
        ("command-r+", "command-r-plus-104b"),
        ("01-ai/Yi-34B", "yi-34b"),
        ("allenai/OLMo-2-1124-7B", "olmo-2-7b"),
        ("google/t5-v1_1-xl", "t5-v1.1-xl"),
        ("bert_base_squad", "bert-base"),
        ("google-bert/bert-large-uncased", "bert-large"),
        ("FacebookAI/roberta-base", "roberta-base"),
        ("ViT-B/16", "vit-b-16"),
        ("google/vit-base-patch16-224", "vit-b-16"),
        ("DiT-XL/2", "dit-xl-2"),
        ("resnet50", "resnet-50"),
        ("ConvNets/resnet50v1.5", "resnet-50"),
        ("runwayml/stable-diffusion-v1-5", "stable-diffusion-1.5"),
        ("SDXL", "stable-diffusion-xl"),
        ("  openai/whisper-large-v3 ", "whisper-large-v3"),
        ("deepseekv3", "deepseek-v3"),
        ("DeepSeekV3-Base", "deepseek-v3"),
        ("llama31-8b-instruct", "llama-3.1-8b"),
        ("qwen2_5_7b", "qwen2.5-7b"),
        ("mixtral8x7b", "mixtral-8x7b"),
        ("gptoss-120b", "gpt-oss-120b"),
    ],
)
def test_spellings(text: str, name: str) -> None:
    assert registry.find(text).name == name


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("8b", "llama-3.1-8b"), ("llama", "llama-2-7b"), ("llama-3", "llama-3-70b"),
        ("qwen-7b", "qwen2.5-7b"), ("mixtral", "mixtral-8x22b"), ("BERT", "bert-large"),
        ("resnet", "resnet-50"), ("175b", "opt-175b"), ("405b", "llama-3.1-405b"),
    ],
)  # fmt: skip
def test_an_ambiguous_name_lists_its_choices(text: str, among: str) -> None:
    with pytest.raises(NotFound, match="ambiguous") as caught:
        registry.find(text)
    assert among in caught.value.choices


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("lama-3.1-8b", "llama-3.1-8b"), ("mistrall-7b", "mistral-7b"), ("resnet-51", "resnet-50"),
        ("someone/llama-3.1-9b", "llama-3.1-8b"),
    ],
)  # fmt: skip
def test_a_misspelt_name_gets_a_suggestion(text: str, meant: str) -> None:
    with pytest.raises(NotFound, match="no model is called") as caught:
        registry.find(text)
    assert meant in caught.value.choices
    assert caught.value.hint is not None
    assert meant in caught.value.hint


@pytest.mark.parametrize("text", ["", "  ", "!!!", "/", "llama" * 100])
def test_what_is_no_name_at_all(text: str) -> None:
    with pytest.raises(InvalidValue):
        registry.find(text)


@given(
    st.text(max_size=60) | st.text(string.ascii_lowercase + string.digits + "-./_ ", max_size=20)
)
def test_any_text_is_found_or_refused_in_our_words(text: str) -> None:
    try:
        model = registry.find(text)
    except (NotFound, InvalidValue):
        return
    assert model.name in registry.names()


def test_a_note_says_where_a_model_is_not_the_published_one() -> None:
    assert "llm-foundry" in registry.find("mpt-7b").note
    assert "Mamba" in registry.find("nemotron-3-nano").note
    assert registry.find("llama-3.1-8b").note == ""


def test_windows_and_other_habits_of_families() -> None:
    def shape(name: str) -> Shape:
        found = registry.find(name)
        assert isinstance(found, Shape)
        return found

    assert shape("mistral-7b").sliding_window == 4096
    assert shape("mistral-7b-v0.2").sliding_window == 0
    assert (shape("gemma-2-9b").sliding_window, shape("gemma-2-9b").full_attention_layers) == (
        4096,
        21,
    )
    assert (shape("gemma-3-27b").sliding_window, shape("gemma-3-27b").full_attention_layers) == (
        1024,
        10,
    )
    assert shape("falcon-7b").n_kv_heads == 1
    assert shape("falcon-7b").parallel_block
    assert shape("deepseek-v3").dense_layers == 3
    assert shape("whisper-large-v3-turbo").decoder_layers == 4
    assert shape("bloom-176b").positions == "alibi"


def test_looking_a_model_up_imports_nothing_heavy() -> None:
    modules = loaded("from tradewind.estimate import registry; registry.find('llama-3.1-8b')")
    assert not modules & {"numpy", "torch", "yaml", "difflib", "click", "rich", "tradewind.catalog"}
