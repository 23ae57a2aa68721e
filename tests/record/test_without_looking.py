"""On an accelerator a step is checked and kept without waiting for it: the same steps, tried on the host."""

import math

import numpy as np
import pytest
import torch

from carpediem.record import Column, LastLabels, Record, RunningMargin, TimesSeen
from carpediem.record.intake import Handed, moved
from carpediem.record.observed import Observed
from record.material import every_column, full_record, history, same

INDICES, LOGITS, TARGETS = torch.tensor([3, 7, 3]), torch.zeros(3, 4), torch.tensor([0, 3, 0])
NAN = LOGITS.index_fill(1, torch.tensor([2]), math.nan)


@pytest.fixture
def blind(monkeypatch):
    """A record on the host that handles everything as it would on an accelerator."""

    def make(**options):
        record = Record(20, 4, columns=every_column(), **options)
        record._blind = True
        record._observed, record._epoch = torch.tensor(0), torch.tensor(-1)
        return record

    monkeypatch.setattr(Handed, "look", lambda *_: True)
    return make


def of_samples(record):
    """A state but for what an accelerator counts."""
    return {name: value for name, value in record.state_dict().items() if name not in ("faults", "observed")}


@pytest.mark.parametrize(
    ("indices", "logits", "targets", "words"),
    [
        (
            INDICES,
            NAN,
            TARGETS,
            "logits and losses must be finite; 1 batches held others and were not taken in",
        ),
        (INDICES + 17, LOGITS, TARGETS, r"indices must lie in \[0, num_samples\).*; 1 batches held others"),
        (INDICES - 9, LOGITS, TARGETS, "indices must lie in"),
        (INDICES, LOGITS, TARGETS - 1, r"targets and outcomes in \[0, num_classes\)"),
        (INDICES, LOGITS, TARGETS + 1, "targets and outcomes in"),
        (
            INDICES,
            LOGITS,
            torch.tensor([0, 2, 0]),
            "targets must be the labels that the data set gives, which stay",
        ),
        (torch.tensor([9, 8, 9]), LOGITS, torch.tensor([0, 2, 1]), "targets must be the labels"),
    ],
    ids=["nan", "index beyond", "index below", "target below", "target beyond", "other label", "two labels"],
)
def test_a_bad_batch_is_dropped_whole_and_reported_once(blind, indices, logits, targets, words):
    record = blind()
    record.observe(INDICES, LOGITS, TARGETS)
    before = of_samples(record)
    record.observe(indices, logits, targets)
    assert same(before, of_samples(record))
    with pytest.raises(ValueError, match=words):
        record.scores()
    record.report_faults()
    assert same(before, of_samples(record))


def test_good_steps_are_kept_as_on_the_host(blind):
    there, here = blind(), full_record(20, 4)
    for batch in history(20, 4, steps=50, seed=5):
        there.observe(*batch)
        here.observe(*batch)
    for name, values in here.scores().items():
        np.testing.assert_allclose(there.scores()[name], values, rtol=1e-6, atol=1e-6, err_msg=name)


def test_batches_that_may_be_skipped_are_counted(blind):
    record = blind(on_nonfinite="skip")
    for _ in range(3):
        record.observe(INDICES, NAN, TARGETS)
    record.report_faults()
    assert record.skipped == 3


def test_an_epoch_may_be_a_tensor_that_a_captured_step_reads(blind):
    record, epoch = blind(), torch.tensor(0)
    wrong = torch.eye(4)[[1, 1, 1]] * 9
    for number, logits in enumerate((wrong, torch.eye(4)[TARGETS], wrong)):
        epoch.fill_(number)
        record.observe(INDICES, logits, TARGETS, epoch=epoch)
    assert record.scores()["learnt_at"][[3, 7]].tolist() == [1, 1]
    assert record.scores()["turned_at"][[3, 7]].tolist() == [2, 2]


def test_several_steps_of_a_sample_at_once_come_to_the_running_margin_of_one_by_one():
    by_one, at_once = RunningMargin(0.6), RunningMargin(0.6)
    for column in (by_one, at_once):
        column.attach(5, 2, torch.device("cpu"), lambda: None)
        column.tensors["values"].copy_(torch.linspace(-1, 1, 6))
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        step = Observed(torch.randint(5, (9,), generator=generator), 5, 0)
        step.values = torch.rand(9, generator=generator) * 2 - 1
        by_one.keep(step)
        at_once._mix_at_once(step, step.values)
    torch.testing.assert_close(by_one.values, at_once.values)


def test_one_copy_of_bytes_carries_fields_of_every_type():
    generator = torch.Generator().manual_seed(0)
    fields = {
        str(dtype): torch.randint(2, (7,), generator=generator).to(dtype)
        for dtype in (
            torch.bool,
            torch.uint8,
            torch.float64,
            torch.float16,
            torch.int64,
            torch.bfloat16,
            torch.int32,
        )
    }
    fields["strided"] = torch.randn(7, 3, generator=generator)[:, 1]
    there = moved(fields, torch.device("cpu"))
    assert there.keys() == fields.keys()
    for name, values in fields.items():
        assert torch.equal(there[name], values)
        assert there[name].dtype == values.dtype


def test_a_column_of_ones_own_never_sees_what_is_dropped():
    class Touched(Column):
        initial = False

        def keep(self, step):
            self.values[step.indices] = True

    column = Touched()
    column.attach(4, None, torch.device("cpu"), lambda: None)
    for _, part in Observed(torch.tensor([4, 1, 4, 1, 2]), 4, 0).rounds():
        column.keep(part)
    assert column.values.tolist() == [False, True, True, False]


CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@CUDA
def test_both_devices_hold_the_same():
    here, there = full_record(200, 5), full_record(200, 5, device="cuda")
    for batch in history(200, 5, steps=40, seed=1, most=64):
        here.observe(*batch)
        there.observe(*(tensor.cuda() for tensor in batch))
    for name, values in here.scores().items():
        np.testing.assert_allclose(there.scores()[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@CUDA
def test_logits_on_the_device_are_measured_there_for_a_record_on_the_host():
    here, mixed = full_record(200, 5), full_record(200, 5)
    for indices, logits, targets in history(200, 5, steps=40, seed=1, most=64):
        here.observe(indices, logits, targets)
        mixed.observe(indices, logits.cuda(), targets.cuda())
    for name, values in here.scores().items():
        np.testing.assert_allclose(mixed.scores()[name], values, rtol=1e-5, atol=1e-5, err_msg=name)
    with pytest.raises(ValueError, match="targets must lie in"):
        mixed.observe(INDICES, torch.zeros(3, 5).cuda(), TARGETS.cuda() + 5)


@CUDA
def test_observing_never_waits_for_the_device_and_can_be_captured():
    record = full_record(200, 5, device="cuda")
    indices, logits, targets = (tensor.cuda() for tensor in history(200, 5, steps=3, seed=1, most=64)[-1])
    record.observe(indices, logits, targets)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        record.observe(indices, logits, targets)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    before = record.scores()["times_seen"].sum()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        record.observe(indices, logits, targets)
    graph.replay()
    assert record.scores()["times_seen"].sum() == before + len(indices)


def test_windows_and_counts_have_a_row_for_what_is_dropped():
    record = Record(6, 3, columns=[LastLabels(4), TimesSeen()])
    for column in record.columns:
        for tensor in column.tensors.values():
            assert tensor.shape[-1] == 7
