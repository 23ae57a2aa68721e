"""Trainings with the Trainer that write down every batch: trainer_train.py OUT "OPTIONS" "OPTIONS"…"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

import torch
from safe_workers import fork_workers_elsewhere
from task import BATCH, EPOCHS, SAMPLES, adaptive, network, problem
from torch import nn
from torch.nn import functional as F
from transformers import TrainingArguments

from carpediem.integrations.transformers import AdaptiveTrainer


class Samples(torch.utils.data.Dataset):
    """Dictionaries, with a column that no model takes and no collator can stack."""

    def __init__(self, samples):
        self.x, self.y = problem(samples)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return {"features": self.x[index], "label": int(self.y[index]), "text": ["word"] * (index % 3)}


class Classifier(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.linear = network(dtype)

    def forward(self, features, labels=None):
        logits = self.linear(features.to(self.linear.weight.dtype))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class Recording(AdaptiveTrainer):
    def report(self, indices, labels, outputs):
        assert indices.dtype == torch.int64
        super().report(indices, labels, outputs)
        print(json.dumps([self.adaptive_sampler.selector.epoch, indices.tolist()]), file=self.book)


def parsed(line):
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", type=int, default=0, help="save every so many optimizer steps")
    parser.add_argument("--resume", default="", help="NAME-RANKS:STEP of the checkpoint to go on from")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--dispatch", action="store_true")
    parser.add_argument("--split", action="store_true")
    return parser.parse_args(shlex.split(line))


def train(out, options):
    world = int(os.environ.get("WORLD_SIZE", "1"))
    name = f"{options.name}-{world}"
    args = TrainingArguments(
        output_dir=str(out / name),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH // options.accumulate // (1 if options.split else world),
        gradient_accumulation_steps=options.accumulate,
        learning_rate=0.5,
        lr_scheduler_type="constant",
        optim="sgd",
        max_grad_norm=0.0,
        bf16=options.bf16,
        use_cpu=True,
        dataloader_num_workers=options.workers,
        save_strategy="steps" if options.save else "no",
        save_steps=options.save or 500,
        eval_strategy="epoch" if options.evaluate else "no",
        accelerator_config={"dispatch_batches": options.dispatch or None, "split_batches": options.split},
        ddp_find_unused_parameters=False,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Recording(
        Classifier(torch.float32 if options.bf16 else torch.float64),
        args,
        train_dataset=Samples(options.samples),
        eval_dataset=Samples(40),
        sampler=adaptive(options.samples),
    )
    resume = None
    if options.resume:
        source, step = options.resume.split(":")
        resume = str(out / source / f"checkpoint-{step}")
    with (out / f"{name}-{args.process_index}.jsonl").open("w", buffering=1) as trainer.book:
        trainer.train(resume_from_checkpoint=resume)
    found = {
        "known": trainer.adaptive_sampler.selector.history.uncertainty().tolist(),
        "evaluations": [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry],
    }
    (out / f"{name}-{args.process_index}.json").write_text(json.dumps(found))
    trainer.accelerator.wait_for_everyone()


if __name__ == "__main__":
    if "WORLD_SIZE" in os.environ:
        fork_workers_elsewhere("transformers.trainer", "carpediem.integrations.transformers")
    for line in sys.argv[2:]:
        train(Path(sys.argv[1]), parsed(line))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    os._exit(0)  # without waiting for gloo's threads, which may abort the interpreter on its way out
