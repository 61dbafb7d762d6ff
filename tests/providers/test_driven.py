"""What plans take a run to be able to launch is what the folders can."""

from __future__ import annotations

from tradewind import catalog as catalogs
from tradewind.catalog import driven, files
from tradewind.providers import registry
from tradewind.providers.aws.limits import images
from tradewind.providers.aws.limits.zones import TypeFacts


def test_the_providers_are_those_with_a_folder() -> None:
    sold = catalogs.load(files.PACKAGED, account=False).providers
    assert {name for name in registry.RENTED if name in sold} == set(driven.rented())


def test_plans_and_launches_agree() -> None:
    for gpu, maker in (("V100", "NVIDIA"), ("T4", "NVIDIA"), ("V520", "AMD"), ("L40S", "NVIDIA")):
        kind = TypeFacts(
            name="x", vcpus=8, memory_mib=1, architecture="x86_64", gpus=1, gpu=gpu, gpu_maker=maker
        )
        assert bool(images.undriven(kind)) == bool(driven.undriven("aws", gpu, maker))
