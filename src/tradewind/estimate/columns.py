"""A model as the columns that the formulas take. Pure, but for the calibration it looks up."""

from __future__ import annotations

import math

from tradewind.base.errors import InvalidValue
from tradewind.estimate import samples, shapes
from tradewind.model.profile import Profile
from tradewind.model.shape import Shape, Work

Model = Shape | Work | Profile

# A profile counts FLOPs without an efficiency and bytes as if no kernel were fused. These bring it
# to what the same model gives by its shape (transformers) or by its measurements (ResNet-50).
_CONVOLUTION = 0.55  # rate of a convolution against that of a plain matrix product
_ATTENTION = 0.9  # of fused attention, counted without the half that a causal mask saves
_FUSED_BYTES, _EAGER_BYTES = 0.4, 0.6  # of the bytes counted, caches included
_CONVOLUTION_BYTES = 1.1  # and so much more where all is convolution, whose norms do not fuse
_FUSED_KEPT, _EAGER_KEPT = 0.85, 1.15  # of the activations counted
_LAUNCH = 1e-4  # seconds for each block of layers, what the work hides left out
_SIZES = {"float64": 8, "float32": 4}  # others are 2
# What stands in a transformer's columns where there is none.
_NO_SHAPE = {
    "layers": 0, "d_model": 1, "n_heads": 1, "n_kv_heads": 1, "head_dim": 1, "d_ff": 0,
    "vocab": 0, "causal": 0,
}  # fmt: skip


def of_model(model: Model, *, fused: bool = True) -> dict[str, float]:
    if isinstance(model, Shape):
        return of_shape(model)
    return of_work(model) if isinstance(model, Work) else of_profile(model, fused=fused)


def of_shape(shape: Shape | Work) -> dict[str, float]:
    """layers, widths, heads, experts … of a transformer.

    An encoder-decoder counts as one stack of both its halves, with the attention across in those of
    the decoder.
    """
    if isinstance(shape, Work):
        raise InvalidValue(f"{shape.name} is no transformer and has no shape")
    sparse = shape.experts > 0
    layers = shape.layers + shape.decoder_layers
    dense_share = shape.dense_layers / layers if sparse else 1
    attending = shape.attention_layers or layers
    # A decoder behind an encoder also attends to that: its heads are spread over all layers.
    across = (layers + shape.decoder_layers) / layers
    mixing = attending * across * shapes.attention_matrices(shape) + shape.mixer_params
    windowed = shape.layers - shape.full_attention_layers if shape.sliding_window else 0
    latent = shape.qk_nope_head_dim + shape.qk_rope_head_dim + shape.v_head_dim
    return {
        "layers": layers,
        "d_model": shape.d_model,
        "n_heads": shape.n_heads * across,
        "n_kv_heads": shape.n_kv_heads * across,
        # Latent attention's keys are wider than its values.
        "head_dim": latent / 2 if shape.latent else shape.head_dim,
        # Layers without experts are spread over all of them, and so are experts.
        "d_ff": shape.d_ff * dense_share,
        "gated": float(shape.gated),
        "vocab": max(shape.vocab, shape.classes, 1),
        "tied": float(shape.tied),
        "causal": float(shape.kind == "decoder"),
        "experts": shape.experts * (1 - dense_share) if sparse else 0,
        "experts_per_token": shape.experts_per_token * (1 - dense_share) if sparse else 0,
        "d_ff_expert": (shape.d_ff_expert or shape.d_ff) if sparse else 0,
        "d_ff_shared": shape.d_ff_shared * (1 - dense_share) if sparse else 0,
        "hybrid": float(shape.attention_layers > 0),
        "mixing": mixing / layers,
        "attending": attending / layers,
        "window": shape.sliding_window,
        "windowed": min(windowed / layers, 1),
    }


def of_work(work: Work) -> dict[str, float]:
    found = samples.coefficients(work)
    return _NO_SHAPE | {
        "work_params": work.params,
        "work_flops": found["flops"],
        "work_bytes": found["bytes"],
        "work_launch": found["launch"],
        "work_kept": work.activation_bytes_per_sample,
    }


def of_profile(profile: Profile, *, fused: bool) -> dict[str, float]:
    if profile.forward_only:
        raise InvalidValue(
            f"the profile of {profile.name} has no backward pass",
            hint="profile it again without --forward-only",
        )
    narrower = 2 / _SIZES.get(profile.dtype, 2)
    flops = (
        profile.matmul_flops_per_sample
        + profile.attention_flops_per_sample / _ATTENTION
        + profile.convolution_flops_per_sample / _CONVOLUTION
    )
    passing = max(profile.peak_bytes_per_sample - profile.saved_bytes_per_sample, 0)
    moved, kept = (_FUSED_BYTES, _FUSED_KEPT) if fused else (_EAGER_BYTES, _EAGER_KEPT)
    convolved = profile.convolution_flops_per_sample / max(profile.flops_per_sample, 1)
    moved += _CONVOLUTION_BYTES * convolved
    return _NO_SHAPE | {
        "d_model": _width(profile),
        "work_params": profile.parameters,
        "work_matrix": flops,
        "work_bytes": moved * narrower * profile.moved_bytes_per_sample,
        "work_kept": kept * narrower * profile.saved_bytes_per_sample,
        # A loss makes copies of logits that nobody keeps; fused kernels make fewer.
        "work_passing": narrower * passing * (0.4 if fused else 1.0),
        "work_launch": _LAUNCH * len(profile.layers),
        "trained": profile.trainable_parameters / max(profile.parameters, 1) or 1,
    }


def _width(profile: Profile) -> float:
    """Of the matrices, for narrow ones run slower: the side of a square one as a layer's mean.

    A layer of the profile may be a whole block of some dozen square matrices.
    """
    work = sum(layer.forward_flops for layer in profile.layers)
    if not work:
        return 1024.0
    mean = sum(layer.parameters * layer.forward_flops for layer in profile.layers) / work
    return max(64.0, math.sqrt(mean / 12))


def parameters(model: Model) -> int:
    return model.parameters if isinstance(model, Profile) else shapes.parameters(model)


def step_flops(model: Model, sequence: int) -> float:
    """Of a training step without recompute, for one sample."""
    if isinstance(model, Profile):
        return float(model.flops_per_sample)
    each = 3.0 * sum(shapes.forward_flops_per_token(model, sequence))
    return each if isinstance(model, Work) else each * sequence
