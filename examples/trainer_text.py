"""Recency Bias with the Hugging Face Trainer (extra transformers): a small BERT learns whether a sentence praises."""

import os
import random
from typing import Any

from transformers import BertConfig, BertForSequenceClassification, TrainingArguments, set_seed
from transformers.utils.logging import disable_progress_bar

from carpediem import AdaptiveSampler, RecencyBias
from carpediem.integrations.transformers import AdaptiveTrainer

EPOCHS, BATCH, PROCESSES = 12, 32, int(os.environ.get("WORLD_SIZE", "1"))  # the batch of one optimizer step
PRAISE, BLAME = ["good", "fine", "great", "lovely"], ["bad", "dull", "awful", "poor"]
WORDS = ["[pad]", "the", "film", "book", "meal", "is", "was", "not", "very", "really", *PRAISE, *BLAME]


def sentence(chance: random.Random) -> dict[str, Any]:
    verdict, negated = chance.choice(PRAISE + BLAME), chance.random() < 0.4
    words = ["the", chance.choice(["film", "book", "meal"]), chance.choice(["is", "was"])]
    words += ["not"] * negated + [chance.choice(["very", "really"])] * chance.randint(0, 1) + [verdict]
    tokens, padding = [WORDS.index(word) for word in words], [0] * (6 - len(words))
    label = int((verdict in PRAISE) != negated)
    return {"input_ids": tokens + padding, "attention_mask": [1] * len(tokens) + padding, "label": label}


def main() -> None:
    chance = random.Random(0)
    train, test = ([sentence(chance) for _ in range(count)] for count in (512, 200))
    set_seed(0)
    disable_progress_bar()
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=8, num_labels=2, **size)
    args = TrainingArguments(
        output_dir="trained",
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH // 2 // PROCESSES,
        gradient_accumulation_steps=2,
        learning_rate=2e-3,
        eval_strategy="epoch",
        save_strategy="epoch",  # the selector too
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    selector = RecencyBias(num_samples=len(train), num_classes=2, epochs=EPOCHS, window=3, warm_up=3)
    sampler = AdaptiveSampler(selector, batch_size=BATCH, seed=0)
    model = BertForSequenceClassification(config)
    trainer = AdaptiveTrainer(model, args, train_dataset=train, eval_dataset=test, sampler=sampler)
    trainer.train()
    right = (trainer.predict(test).predictions.argmax(1) == [item["label"] for item in test]).mean()
    if trainer.is_world_process_zero():
        print(f"{100 * right:.1f}% of the test sentences understood", flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # without waiting for gloo's threads, which may abort the interpreter on its way out
