"""Hugging Face's Trainer, resumable by one line."""

import torch
from data import Net, Spirals, fingerprint
from transformers import Trainer, TrainingArguments

import tradewind.torch as tw

torch.manual_seed(1)
trainer = Trainer(
    model=Net(),
    args=TrainingArguments(
        output_dir="out",
        num_train_epochs=30,
        per_device_train_batch_size=16,
        learning_rate=0.01,
        dataloader_num_workers=2,
        eval_strategy="epoch",
        save_strategy="no",  # its own checkpoints are not needed any more
        report_to=[],
        remove_unused_columns=False,
    ),
    train_dataset=Spirals(512),
    eval_dataset=Spirals(128, turn=0.0),
)
trainer = tw.hf(trainer)  # this one
trainer.train()
print("weights", fingerprint(trainer.model))
