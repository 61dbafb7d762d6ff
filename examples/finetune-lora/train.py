"""Teaches a language model to answer questions, by adapters: the model itself stays as it is.

    python train.py                              one process
    torchrun --nproc-per-node 2 train.py         two, with DistributedDataParallel
    tradewind run work.yaml --local --yes        on machines that may be taken away

The model beside it is tiny and reads bytes, so that this takes a minute on a processor. With
`--base meta-llama/Llama-3.1-8B --data chats.jsonl --length 2048` it is the real thing. Checkpoints
hold the adapters alone, because the session is told so: `frozen=False`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

import tradewind.torch as tw

HERE = Path(__file__).parent
ASKED = ("{}", "Please: {}", "I have a question. {}", "{} In short.", "Quickly: {}")
UNSEEN = "Do you know this? {}"
"""How people ask, and how somebody asks whom it has not heard before."""


class Bytes:
    """A tokenizer for models that read bytes. Zero ends a text."""

    eos_token_id = 0

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: list[int]) -> str:
        return bytes(tokens).partition(b"\0")[0].decode(errors="replace")


class Answers(Dataset[Any]):
    """Questions with their answers, asked in one of several ways. Only the answers are learned."""

    def __init__(
        self, pairs: list[dict[str, str]], ways: tuple[str, ...], tokenizer: Any, length: int
    ) -> None:
        self.pairs, self.ways, self.tokenizer, self.length = pairs, ways, tokenizer, length

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        pair, end = self.pairs[index], self.tokenizer.eos_token_id
        way = self.ways[int(torch.randint(len(self.ways), ()))]
        asked = self.tokenizer.encode(question(way.format(pair["question"])))
        answer = [*self.tokenizer.encode(pair["answer"]), end]
        room = self.length
        tokens = (asked + answer)[:room]
        labels = ([-100] * len(asked) + answer)[:room]
        fill = room - len(tokens)
        return {
            "input_ids": torch.tensor(tokens + [end] * fill),
            "attention_mask": torch.tensor([1] * len(tokens) + [0] * fill),
            "labels": torch.tensor(labels + [-100] * fill),
        }


def question(text: str) -> str:
    return f"Question: {text}\nAnswer: "


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", default=str(HERE / "base"), help="a folder, or a name on the Hub")
    parser.add_argument("--data", type=Path, default=HERE / "answers.jsonl")
    parser.add_argument("--rank", type=int, default=8, help="of the adapters")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8, help="of all processes together")
    parser.add_argument("--length", type=int, default=192, help="tokens of a question and answer")
    parser.add_argument("--rate", type=float, default=4e-3)
    return parser.parse_args()


def main() -> None:
    given = options()
    ranks, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if ranks > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = ranks == 1 or dist.get_rank() == 0
    if device.type == "cpu":
        torch.set_num_threads(1)  # a process for each core is faster, and sums come out the same
    torch.manual_seed(1)

    toy = Path(given.base).is_dir() and not (Path(given.base) / "tokenizer.json").exists()
    tokenizer: Any = Bytes() if toy else AutoTokenizer.from_pretrained(given.base)
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    base = AutoModelForCausalLM.from_pretrained(given.base, dtype=kind).to(device)
    adapters = LoraConfig(
        r=given.rank, lora_alpha=2 * given.rank, lora_dropout=0.1, target_modules="all-linear"
    )
    adapted = get_peft_model(base, adapters)
    model: nn.Module = DistributedDataParallel(adapted) if ranks > 1 else adapted

    pairs = [json.loads(line) for line in given.data.read_text().splitlines()]
    unseen = Answers(pairs[::4], (UNSEEN,), tokenizer, given.length)
    loader = DataLoader(
        Answers(pairs, ASKED, tokenizer, given.length),
        batch_size=given.batch // ranks,
        shuffle=True,
        drop_last=True,
    )
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=given.rate, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, given.steps)
    session = tw.session(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        data=loader,
        config=given,
        frozen=False,
    )
    if first and not session.resumed:
        print(f"{sum(p.numel() for p in trained):,} of", end=" ")
        print(f"{sum(p.numel() for p in model.parameters()):,} parameters are trained")
        print(
            f"before: loss {loss_on(adapted, unseen, device):.3f}, asked in new words", flush=True
        )
    for batch in session.batches(max_steps=given.steps):
        loss = model(**{name: each.to(device) for name, each in batch.items()}).loss
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        session.step(loss=loss)
        if first and session.step_number % 50 == 0:
            print(f"step {session.step_number}  loss {loss.item():.3f}", flush=True)
    if first:
        print(f"after: loss {loss_on(adapted, unseen, device):.3f}, asked in new words")
        finish(adapted, tokenizer, [UNSEEN.format(pair["question"]) for pair in pairs[::11]])
    session.finish()
    if ranks > 1:
        dist.destroy_process_group()


@torch.no_grad()
def loss_on(model: Any, pairs: Answers, device: torch.device) -> float:
    """The training's random numbers are as if this had not been asked."""
    model.eval()
    with torch.random.fork_rng():
        losses = [
            model(**{name: each[None].to(device) for name, each in pairs[n].items()}).loss.item()
            for n in range(len(pairs))
        ]
    model.train()
    return sum(losses) / len(losses)


def finish(model: Any, tokenizer: Any, questions: list[str]) -> None:
    """What there is to take away: the adapters, which are small."""
    model.eval()
    for asked in questions:
        tokens = torch.tensor([tokenizer.encode(question(asked))], device=model.device)
        with torch.no_grad():
            said = model.generate(input_ids=tokens, max_new_tokens=80, do_sample=False)
        print(f"{asked} {tokenizer.decode(said[0, tokens.shape[1] :].tolist())}")
    model.save_pretrained("adapters")
    trained = (p for p in model.parameters() if p.requires_grad)
    numbers = b"".join(each.detach().float().cpu().numpy().tobytes() for each in trained)
    print("weights", hashlib.sha256(numbers).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
