from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.small import REAL
from tradewind.base.errors import InvalidValue, NotFound

NAMES = REAL.names
A100 = ("A100-40GB", "A100-40GB-PCIe", "A100-80GB", "A100-80GB-PCIe")
H100 = ("H100-SXM", "H100-PCIe", "H100-NVL")


@pytest.mark.parametrize(
    ("text", "names", "count"),
    [
        ("a100", A100, None),
        ("A100 80G", ("A100-80GB",), None),
        ("nvidia-tesla-v100", ("V100-16GB", "V100-32GB"), None),
        ("h100:8", H100, 8),
        ("8xH100-SXM", ("H100-SXM",), 8),
        ("8 × a100", A100, 8),
        ("h100x8", H100, 8),
        ("v100:16", ("V100-16GB", "V100-32GB"), 16),
        ("h100:80", H100, 80),
        ("trn1", ("Trainium1",), None),
        ("v5e-16", ("TPU-v5e",), 16),
        ("v5litepod-16", ("TPU-v5e",), 16),
        ("tpu-v6e-8", ("TPU-v6e",), 8),
        ("v5p-8", ("TPU-v5p",), 4),  # named by cores
        ("v4-8", ("TPU-v4",), 4),
        ("trillium", ("TPU-v6e",), None),
        ("trillium-16", ("TPU-v6e",), 16),
        ("tpu7x-8", ("TPU-v7x",), 8),
        ("v5e16", ("TPU-v5e",), 16),
        ("tpu v5e 16", ("TPU-v5e",), 16),
        ("V5LITE_POD", ("TPU-v5e",), None),
        ("tpu-v5-lite-podslice", ("TPU-v5e",), None),
        ("tpu-v5p-slice", ("TPU-v5p",), None),
        ("TPU v5 lite", ("TPU-v5e",), None),
        ("Gaudi 2", ("Gaudi2",), None),
        ("hl-225", ("Gaudi2",), None),
        ("Trainium 2", ("Trainium2",), None),
        ("A100 40 GB", ("A100-40GB",), None),
        ("H200 141GB", ("H200",), None),
        ("NVIDIA GH200 480GB", ("GH200",), None),
        ("NVIDIA B300 SXM6 AC", ("B300",), None),
        ("B200 192GB", ("B200",), None),
        ("AMD Instinct MI300X OAM", ("MI300X",), None),
        ("GB200 NVL72", ("GB200",), None),
        ("Quadro P4000", ("P4000",), None),
        ("RTX PRO 6000 WK", ("RTX-PRO-6000-WS",), None),
        ("RTX_PRO_6000_S", ("RTX-PRO-6000",), None),
        ("inf2:12", ("Inferentia2",), 12),
        ("NVIDIA A100-SXM4-80GB", ("A100-80GB",), None),
        ("NVIDIA H100 80GB HBM3", ("H100-SXM",), None),
        ("NVIDIA GeForce RTX 4090", ("RTX4090",), None),
        ("4090x2", ("RTX4090",), 2),
        ("4x4090", ("RTX4090",), 4),
        ("16 * v100", ("V100-16GB", "V100-32GB"), 16),
        ("rtxa6000", ("RTX-A6000",), None),
        ("RTX 6000 Ada Generation", ("RTX-6000-Ada",), None),
        ("RTX_PRO_6000_WS", ("RTX-PRO-6000-WS",), None),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", ("RTX-PRO-6000",), None),
        ("Q_RTX_6000", ("Quadro-RTX6000",), None),
        ("mi300", ("MI300X",), None),
        ("0.5xA10", ("A10",), 0.5),
        ("l40", ("L40",), None),
        ("t4", ("T4",), None),
        ("A10", ("A10",), None),
    ],
)
def test_spellings(text: str, names: tuple[str, ...], count: float | None) -> None:
    match = NAMES.resolve(text)
    assert (match.names, match.count) == (names, count)


@pytest.mark.parametrize("name", REAL.accelerators)
def test_every_name_means_itself_however_it_is_joined(name: str) -> None:
    for spelling in (
        name,
        name.lower(),
        name.replace("-", " "),
        name.replace("-", ""),
        f"nvidia {name}",
    ):
        assert NAMES.resolve(spelling).names == (name,)
        assert NAMES.resolve(f"{spelling}:4").count == 4


@pytest.mark.parametrize(
    ("text", "choice"), [("6000", "RTX-6000-Ada"), ("trainium", "Trainium2"), ("tpu", "TPU-v5p")]
)
def test_ambiguous_names_list_the_choices(text: str, choice: str) -> None:
    with pytest.raises(NotFound, match="ambiguous") as caught:
        NAMES.resolve(text)
    assert choice in caught.value.choices


def test_a_family_is_ambiguous_where_one_is_needed() -> None:
    assert NAMES.one("h100 nvl") == "H100-NVL"
    with pytest.raises(NotFound, match="ambiguous"):
        NAMES.one("h100")


@pytest.mark.parametrize(
    ("text", "nearest"), [("H1000", "H100"), ("RTX-4091", "RTX4090"), ("trainum1", "Trainium1")]
)
def test_unknown_names_suggest_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(NotFound, match="no accelerator is called") as caught:
        NAMES.resolve(text)
    assert any(choice.startswith(nearest) for choice in caught.value.choices)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "h100:0", "0xh100", "h100:-2", "x" * 200, "v5e-0", ":8", "8xv5e-16", "v5e-16:2"],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        NAMES.resolve(text)


def test_vendor_spellings_mean_one_chip_or_none() -> None:
    assert NAMES.canonical("A100", 80) is None  # SXM or PCIe?
    assert NAMES.canonical("A100 PCIe", 80) == "A100-80GB-PCIe"
    assert NAMES.canonical("V100", 16) == "V100-16GB"
    assert NAMES.canonical("V100") is None
    assert NAMES.canonical("Rubin") is None


@given(st.text(max_size=30))
def test_no_text_breaks_it(text: str) -> None:
    try:
        match = NAMES.resolve(text)
    except (NotFound, InvalidValue):
        return
    assert match.names
    assert set(match.names) <= set(REAL.accelerators)


@pytest.mark.parametrize(
    ("text", "name", "memory_gb", "count"),
    [
        ("H100-SXM-96", "H100-SXM", 96, None),
        ("8xH100-SXM-96GB", "H100-SXM", 96, 8),
        ("H100-SXM5-80GB", "H100-SXM", 80, None),
        ("A100-SXM4-80GB", "A100-80GB", 80, None),
        ("H200-141", "H200", 141, None),
        ("GH200-96", "GH200", 96, None),
        ("GH200-144GB", "GH200", 144, None),
        ("GH200-480GB", "GH200", 96, None),  # of the host
        ("v5e-16", "TPU-v5e", 16, 16),
    ],
)
def test_a_variant_has_the_memory_it_says(
    text: str, name: str, memory_gb: float, count: float | None
) -> None:
    found, number = REAL.variant(text)
    assert (found.name, found.memory_gb, number) == (name, memory_gb, count)


@pytest.mark.parametrize("text", ["H100-SXM-960", "H100-SXM-8", "nonsense-80", "H100-96"])
def test_a_variant_that_cannot_be(text: str) -> None:
    with pytest.raises(NotFound):
        REAL.variant(text)


def test_what_nobody_rents_out_is_not_looked_for() -> None:
    with pytest.raises(NotFound):
        NAMES.resolve("H100-SXM-96")
