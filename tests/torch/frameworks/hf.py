"""A training by Hugging Face's Trainer: `python hf.py FOLDER`."""

from __future__ import annotations

from typing import Any

from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments

import tradewind.torch as tw
from tests.torch.frameworks.common import Net, Samples, begun, data, parsed, stepped, written


class Words(TrainerCallback):
    def __init__(self, given: Any) -> None:
        self.given = given

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        stepped(self.given, state.global_step)


def main() -> None:
    given = parsed()
    begun(3)
    more: dict[str, Any] = {"eval_strategy": "no", "save_strategy": "no"}
    callbacks: list[Any] = [Words(given)]
    if given.best:
        more = {
            "eval_strategy": "steps",
            "eval_steps": 7,
            "save_strategy": "steps",
            "save_steps": 7,
            "save_total_limit": 2,
            "load_best_model_at_end": True,
            "metric_for_best_model": "loss",
        }
        callbacks.append(EarlyStoppingCallback(early_stopping_patience=3))
    if given.stream:
        more["max_steps"] = 26 * given.epochs
    if given.fsdp:
        more |= {"fsdp": True, "fsdp_config": {"fsdp_version": 2}}
    trainer: Any = Trainer(
        model=Net(),
        args=TrainingArguments(
            output_dir=str(given.folder / "out"),
            num_train_epochs=given.epochs,
            per_device_train_batch_size=given.batch,
            gradient_accumulation_steps=given.accumulate,
            dataloader_num_workers=given.workers,
            learning_rate=0.02,
            warmup_steps=5,
            logging_steps=5,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            remove_unused_columns=False,
            seed=5,
            **more,
        ),
        train_dataset=data(given),
        eval_dataset=Samples(20, noise=0.0),
        callbacks=callbacks,
    )
    trainer = tw.hf(
        trainer,
        folder=given.folder / "checkpoints",
        every_steps=given.every_steps,
        every_s=given.every_s,
    )
    trainer.train(resume_from_checkpoint=given.resume or None)
    state = trainer.state
    print("log", [{k: v for k, v in row.items() if _same(k)} for row in state.log_history])  # noqa: T201
    print("ended", state.global_step, state.best_metric)  # noqa: T201
    written(given, trainer.accelerator.unwrap_model(trainer.model), trainer.args.process_index)


def _same(key: str) -> bool:
    return "per_second" not in key and "runtime" not in key


if __name__ == "__main__":
    main()
