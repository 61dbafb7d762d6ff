"""A real llama.cpp server with random weights: `python llama_server.py FOLDER PORT [SLOTS]`.

Run by an interpreter that has `xllamacpp` and `gguf` (PyPI; not among our dependencies). Each word
of `tradewind measure`'s prompts is one token or more; the shape is SHAPE's. Prints the address
when it is up, and serves until its standard input is closed.
"""

from __future__ import annotations

import sys
from pathlib import Path

SHAPE = {"layers": 8, "d_model": 512, "n_heads": 8, "n_kv_heads": 4, "d_ff": 1536, "vocab": 4096}
CONTEXT = 4096


def write(path: Path) -> None:
    """The model: weights of 16 bits, as small as leaves reading them the longest part."""
    import gguf
    import numpy as np

    draw = np.random.default_rng(0)
    width, inner, vocab = SHAPE["d_model"], SHAPE["d_ff"], SHAPE["vocab"]
    head = width // SHAPE["n_heads"]
    narrow = head * SHAPE["n_kv_heads"]
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_name("random-llama")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(width)
    out.add_block_count(SHAPE["layers"])
    out.add_feed_forward_length(inner)
    out.add_head_count(SHAPE["n_heads"])
    out.add_head_count_kv(SHAPE["n_kv_heads"])
    out.add_rope_dimension_count(head)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    pieces = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]
    kinds = [2, 3, 3, *([6] * 256)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    # Pieces of one, two and three letters, with and without the mark of a space before them.
    pairs = [f"{a}{b}" for a in letters for b in letters]
    words = [*letters, *pairs, *(f"▁{word}" for word in (*letters, *pairs))]
    words += [f"▁{a}{b}" for a in pairs for b in "aeiou"]
    pieces += [word.encode() for word in dict.fromkeys(words)][: vocab - len(pieces)]
    kinds += [1] * (len(pieces) - len(kinds))
    assert len(pieces) == vocab
    out.add_tokenizer_model("llama")
    out.add_token_list(pieces)
    out.add_token_scores(
        [0.0 if kind != 1 else float(len(piece)) for piece, kind in zip(pieces, kinds, strict=True)]
    )
    out.add_token_types(kinds)
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)

    def matrix(name: str, rows: int, columns: int) -> None:
        weights = draw.standard_normal((rows, columns), dtype=np.float32) / columns**0.5
        out.add_tensor(name, weights.astype(np.float16))

    def norm(name: str) -> None:
        out.add_tensor(name, np.ones(width, dtype=np.float32))

    matrix("token_embd.weight", vocab, width)
    norm("output_norm.weight")
    matrix("output.weight", vocab, width)
    for layer in range(SHAPE["layers"]):
        norm(f"blk.{layer}.attn_norm.weight")
        norm(f"blk.{layer}.ffn_norm.weight")
        for name, rows, columns in (
            ("attn_q", width, width), ("attn_k", narrow, width), ("attn_v", narrow, width),
            ("attn_output", width, width), ("ffn_gate", inner, width), ("ffn_up", inner, width),
            ("ffn_down", width, inner),
        ):  # fmt: skip
            matrix(f"blk.{layer}.{name}.weight", rows, columns)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def main(folder: Path, port: int, slots: int) -> None:
    import xllamacpp

    path = folder / "random-llama.gguf"
    if not path.exists():
        write(path)
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(path)
    wanted.model_alias = {"random-llama"}
    wanted.port = port
    wanted.n_parallel = slots
    wanted.n_ctx = CONTEXT * slots
    wanted.n_batch = wanted.n_ubatch = 512
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.warmup = True
    wanted.cache_prompt = False
    wanted.endpoint_metrics = True
    server = xllamacpp.Server(wanted)
    print(server.listening_address, flush=True)  # noqa: T201
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 8)
