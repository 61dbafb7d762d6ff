"""An answer for every prompt of a file, each exactly once, however often the job is killed.

    python generate.py                                    # a tiny model with random weights, here
    python generate.py --model Qwen/Qwen3-0.6B            # one of Hugging Face's
    python generate.py --url http://localhost:8000/v1     # a server: vLLM, SGLang, llama.cpp …

Kill it at any time and start it again: it continues with the first prompt that has no answer.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import tradewind.batch as batch

Engine = Callable[[Sequence[str]], list[str]]


def random_model(tokens: int) -> Engine:
    """A Llama of a million random weights over bytes: it says nothing, at the cost of saying it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=257, hidden_size=128, intermediate_size=352, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024,
        bos_token_id=None, eos_token_id=None, pad_token_id=256,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()

    def answer(prompts: Sequence[str]) -> list[str]:
        texts = [list(prompt.encode()) for prompt in prompts]
        longest = max(map(len, texts))
        ids = torch.tensor([[256] * (longest - len(text)) + text for text in texts])
        with torch.inference_mode():
            made = model.generate(
                ids, attention_mask=(ids != 256).long(), max_new_tokens=tokens, do_sample=False
            )
        return [
            bytes(min(b, 255) for b in row[longest:].tolist()).decode("latin-1") for row in made
        ]

    return answer


def hub_model(name: str, tokens: int) -> Engine:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(name, dtype="auto").to(device).eval()

    def answer(prompts: Sequence[str]) -> list[str]:
        given = tokenizer(list(prompts), return_tensors="pt", padding=True).to(device)
        with torch.inference_mode():
            made = model.generate(**given, max_new_tokens=tokens, do_sample=False)
        return tokenizer.batch_decode(
            made[:, given["input_ids"].shape[1] :], skip_special_tokens=True
        )

    return answer


def server(url: str, name: str, tokens: int, at_once: int) -> Engine:
    """An OpenAI-compatible server, asked for many at once: it batches by itself."""
    import urllib3

    pool = urllib3.PoolManager(maxsize=at_once, retries=urllib3.Retry(3, backoff_factor=1))
    headers = {"content-type": "application/json"}
    if os.environ.get("OPENAI_API_KEY"):
        headers["authorization"] = f"Bearer {os.environ['OPENAI_API_KEY']}"
    workers = ThreadPoolExecutor(at_once)

    def one(prompt: str) -> str:
        body = {"model": name, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        made = pool.request(
            "POST", f"{url.rstrip('/')}/completions", body=json.dumps(body), headers=headers
        )
        if made.status != 200:
            raise SystemExit(f"{url} answers {made.status}: {made.data[:300]!r}")
        text: str = made.json()["choices"][0]["text"]
        return text

    return lambda prompts: list(workers.map(one, prompts))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--prompts", default="prompts.jsonl")
    options.add_argument("--model", help="of Hugging Face, or a server's name for it")
    options.add_argument("--url", help="of an OpenAI-compatible server")
    options.add_argument("--tokens", type=int, default=32, help="of an answer, at most")
    options.add_argument("--batch", type=int, default=16)
    given = options.parse_args()
    if given.url:
        engine = server(given.url, given.model or "default", given.tokens, given.batch)
    elif given.model:
        engine = hub_model(given.model, given.tokens)
    else:
        engine = random_model(given.tokens)
    work = batch.open(given.prompts)
    print(f"{work.done:,} of {len(work):,} are done", flush=True)
    for items in work.batches(given.batch):
        work.put(items, engine([item.value["prompt"] for item in items]))
    work.finish()
    print(f"{work.done:,} of {len(work):,} are done", flush=True)
    if "TRADEWIND_RUN" not in os.environ and not work.stopped:
        print(batch.collect("answers.jsonl").path)


if __name__ == "__main__":
    main()
