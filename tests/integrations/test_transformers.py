"""The Hugging Face Trainer in real processes: training sees the one adaptive stream, evaluation is as it was."""

import pytest
import torch

from carpediem import ActiveBias, AdaptiveSampler, Indexed, RandomBatch, RecencyBias
from integrations.launch import launch, results, steps
from integrations.task import BATCH, EPOCHS, SAMPLES, plain_steps

SCRIPT = "trainer_train.py"
A_STEP = SAMPLES // BATCH  # steps in an epoch


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What one process and what two trained on, and their checkpoints."""
    out = tmp_path_factory.mktemp("trainer")
    both = ["plain --save 10 --workers 2", "halves --accumulate 2 --save 10", "evaluated --evaluate --save 6"]
    launch(1, SCRIPT, out, *both, "bf16 --bf16")
    launch(2, SCRIPT, out, *both, "split --split", "dispatched --dispatch", "padded --samples 101")
    return out


@pytest.fixture(scope="module")
def plain():
    return plain_steps()


def halved(found):
    """Steps of which each two were accumulated, put together."""
    pairs = zip(found[::2], found[1::2], strict=True)
    return [(epoch, first + second) for (epoch, first), (_, second) in pairs]


@pytest.mark.parametrize("name", ["plain", "evaluated"])
def test_one_process_trains_on_the_batches_of_a_plain_loop(out, plain, name):
    assert steps(out, name, 1) == plain


@pytest.mark.parametrize("name", ["plain", "evaluated", "split", "dispatched"])
def test_two_processes_train_on_the_batches_of_one_between_them(out, plain, name):
    assert steps(out, name, 2) == plain


@pytest.mark.parametrize("ranks", [1, 2])
def test_accumulated_steps_make_up_the_batches_of_one(out, plain, ranks):
    assert halved(steps(out, "halves", ranks)) == plain


def test_training_continues_with_the_very_next_batch(out, plain):
    for ranks in (1, 2):
        launch(
            ranks,
            SCRIPT,
            out,
            f"resumed --resume plain-{ranks}:20 --workers 1",  # in the middle of an epoch
            f"halves_resumed --resume halves-{3 - ranks}:10 --accumulate 2",  # and by another number of processes
            f"next_epoch --resume evaluated-{ranks}:18",  # between two epochs
        )
        assert steps(out, "resumed", ranks) == plain[20:]
        assert halved(steps(out, "halves_resumed", ranks)) == plain[10:]
        assert steps(out, "next_epoch", ranks) == plain[18:]


def test_two_processes_evaluate_as_one_does(out):
    first, second = (results(out, "evaluated", ranks)[0]["evaluations"] for ranks in (1, 2))
    assert len(first) == EPOCHS
    assert second == pytest.approx(first)


def test_processes_agree_when_the_last_batch_was_filled_with_repeats(out):
    assert len(steps(out, "padded", 2)) == EPOCHS * (A_STEP + 1)
    first, second = results(out, "padded", 2)
    assert first["known"] == second["known"]


def test_indices_stay_integers_under_mixed_precision(out):
    # The program itself refuses others.
    assert len(steps(out, "bf16", 1)) == EPOCHS * A_STEP


def test_a_checkpoint_holds_one_whole_file_of_ours(out):
    for ranks in (1, 2):
        folder = out / f"plain-{ranks}" / "checkpoint-20"
        assert [file.name for file in folder.glob("carpediem*")] == ["carpediem.pt"]
        state = torch.load(folder / "carpediem.pt", weights_only=True)
        assert state["selector"]["method"] == "RecencyBias"
        assert (state["sampler"]["epoch"], state["sampler"]["position"]) == (3, 0)


# -- what is refused, and what is asked of the framework --------------------------------------------------


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x, labels):
        logits = self.linear(x)
        return torch.nn.functional.cross_entropy(logits, labels), logits


@pytest.fixture
def trainer(tmp_path):
    """Makes a Trainer over 12 samples."""
    from transformers import TrainingArguments

    from carpediem.integrations.transformers import AdaptiveTrainer

    data = [{"x": torch.randn(2), "label": index % 2, "name": str(index)} for index in range(12)]

    def make(sampler, kind=AdaptiveTrainer, model=Model, wrap=lambda data: data, **named):
        options = {"per_device_train_batch_size": 4, "num_train_epochs": 2, "use_cpu": True, "report_to": []}
        options |= {"disable_tqdm": True, "save_strategy": "no", "dataloader_pin_memory": False}
        args = TrainingArguments(output_dir=str(tmp_path), **(options | named))
        return kind(model(), args, train_dataset=wrap(data), eval_dataset=data[:5], sampler=sampler)

    return make


def uniform(samples=12, batch=4, epochs=2):
    return AdaptiveSampler(RandomBatch(samples, 2, epochs), batch_size=batch)


def test_the_model_sees_neither_index_nor_unused_columns(trainer):
    ours = trainer(uniform())
    (batch, *_) = ours.get_train_dataloader()
    assert set(batch) == {"x", "labels", "carpediem_indices"}
    assert batch["carpediem_indices"].dtype == torch.int64
    (batch, *_) = ours.get_eval_dataloader()
    assert set(batch) == {"x", "labels"}


def test_evaluation_is_the_trainers_own(trainer):
    from transformers import Trainer

    ours = trainer(uniform())
    ours.train()
    theirs = Trainer(ours.model, ours.args, eval_dataset=ours.eval_dataset)
    assert ours.evaluate()["eval_loss"] == theirs.evaluate()["eval_loss"]
    assert (
        ours.predict(ours.eval_dataset).predictions == theirs.predict(ours.eval_dataset).predictions
    ).all()


def test_a_batch_of_another_size_is_refused_with_the_sum(trainer):
    with pytest.raises(ValueError, match="4 of the loader × 1 processes × 3 accumulated = 12, got 4"):
        trainer(uniform(), gradient_accumulation_steps=3).train()


def test_more_epochs_than_the_selector_knows_are_refused_before_training(trainer):
    with pytest.raises(ValueError, match="num_train_epochs must be at most the selector's epochs = 2, got 3"):
        trainer(uniform(), num_train_epochs=3).train()


def test_fewer_epochs_than_the_selector_knows_are_told_of_once(trainer):
    with pytest.warns(
        UserWarning,
        match="num_train_epochs is 1.5, fewer than the selector's epochs = 3, .* build .* with epochs=2",
    ) as told:
        trainer(AdaptiveSampler(ActiveBias(12, 2, 3, warm_up=1), batch_size=4), num_train_epochs=1.5).train()
    assert len([one for one in told if "num_train_epochs" in str(one.message)]) == 1


def test_fewer_epochs_of_what_does_not_decay_are_fine(trainer):
    assert trainer(uniform(epochs=3), num_train_epochs=1).train().global_step == 3


@pytest.mark.parametrize("steps", [2, -1])
def test_steps_that_end_a_training_and_epochs_that_agree_are_not(trainer, steps):
    ours = trainer(uniform(epochs=2), num_train_epochs=2, max_steps=steps)
    assert ours.train().global_step == (steps if steps > 0 else 6)


def test_a_method_that_weights_the_loss_is_refused(trainer):
    selector = ActiveBias(12, 2, 2, warm_up=1, mode="reweight")
    with pytest.raises(
        ValueError, match="ActiveBias re-weights the loss, which a Trainer leaves to the model"
    ):
        trainer(AdaptiveSampler(selector, batch_size=4))


def test_a_data_set_that_is_indexed_already_is_refused_at_once(trainer):
    with pytest.raises(
        TypeError, match="train_dataset must be the data set itself, got it wrapped in Indexed"
    ):
        trainer(uniform(), wrap=Indexed)


@pytest.mark.parametrize(
    ("form", "held"),
    [
        (lambda loss, scores: {"loss": loss, "scores": scores}, "loss, scores"),
        (lambda loss, scores: (loss,), "a tuple of 1"),
        (lambda loss, scores: loss[None], "a Tensor"),
    ],
)
def test_an_output_without_logits_is_refused_with_what_it_holds(trainer, form, held):
    class Scoring(Model):
        def forward(self, x, labels):
            return form(*super().forward(x, labels))

    with pytest.raises(
        ValueError, match=rf"must hold logits, .* got {held}; override report\(indices, labels"
    ):
        trainer(uniform(), model=Scoring).train()


def test_labels_that_the_trainer_cannot_tell_are_asked_for(trainer):
    class Targeted(Model):
        def forward(self, x, target):
            return super().forward(x, target)

    def renamed(data):
        return [{"x": sample["x"], "target": sample["label"]} for sample in data]

    with pytest.raises(
        ValueError, match=r"label_names must name .* Targeted.forward .*label_names=\['targets'\]"
    ):
        trainer(uniform(), model=Targeted, wrap=renamed).train()
    named = trainer(uniform(), model=Targeted, wrap=renamed, label_names=["target"])
    assert named.train().global_step == 6


def test_logits_that_lie_elsewhere_are_reported_by_an_own_report(trainer):
    from carpediem.integrations.transformers import AdaptiveTrainer

    class Scoring(Model):
        def forward(self, x, labels):
            loss, scores = super().forward(x, labels)
            return {"loss": loss, "scores": scores}

    class Scored(AdaptiveTrainer):
        def report(self, indices, labels, outputs):
            super().report(indices, labels, {"logits": outputs["scores"]})

    sampler = AdaptiveSampler(RecencyBias(12, 2, 2, window=1, warm_up=1), batch_size=4)
    assert (sampler.selector.history.uncertainty() == 1).all()
    trainer(sampler, kind=Scored, model=Scoring).train()
    assert (sampler.selector.history.uncertainty() == 0).any()


def test_what_is_no_sampler_is_refused(trainer):
    with pytest.raises(TypeError, match=r"sampler must be a carpediem\.AdaptiveSampler, got RandomBatch"):
        trainer(RandomBatch(12, 2, 2))


def test_a_checkpoint_of_another_trainer_is_refused(trainer, tmp_path):
    trainer(uniform(), save_strategy="epoch").train()
    (tmp_path / "checkpoint-3" / "carpediem.pt").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"checkpoint-3 has no carpediem\.pt, so it was not written by"
    ):
        trainer(uniform()).train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


def test_a_trainer_of_ones_own_becomes_adaptive_by_the_mixin(trainer):
    from transformers import Trainer

    from carpediem.integrations.transformers import AdaptiveTrainerMixin

    class Doubling(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **named):
            assert set(inputs) == {"x", "labels"}
            loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **named)
            return (2 * loss, outputs) if return_outputs else 2 * loss

    class Both(AdaptiveTrainerMixin, Doubling):
        seen = ()

        def report(self, indices, labels, outputs):
            super().report(indices, labels, outputs)
            self.seen = (*self.seen, *indices.tolist())

    ours = trainer(uniform(), kind=Both)
    ours.train()
    assert sorted(ours.seen) == sorted([*range(12)] * 2)
    assert set(ours.evaluate()) >= {"eval_loss"}
    assert len(ours.seen) == 24
