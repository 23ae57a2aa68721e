"""How often the processes talk to each other, and where what they say must lie."""

import pytest
import torch

from carpediem import RandomBatch
from carpediem.distributed import _settings
from processes import python

CODE = """if True:
    import os
    from collections import Counter

    import torch
    import torch.distributed as dist

    from carpediem import AdaptiveSampler, RecencyBias
    from carpediem.distributed import synchronise

    calls = Counter()

    def counting(name, collective):
        def call(*arguments, **options):
            calls[name] += 1
            return collective(*arguments, **options)

        return call

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    for name in ("all_gather", "all_gather_object", "all_reduce", "broadcast", "barrier"):
        setattr(dist, name, counting(name, getattr(dist, name)))
    selector = RecencyBias(100, 4, 6, window=1, warm_up=1)
    sampler = AdaptiveSampler(selector, batch_size=5)
    synchronise(sampler)
    for epoch in range(6):
        calls.clear()
        stream = iter(sampler)
        next(stream)
        print(sum(calls.values()), end=" ")
        for _ in range(19):  # what is left after the first index, in fives
            indices = torch.tensor([next(stream) for _ in range(5)])
            selector.observe(indices, torch.randn(5, 4), torch.zeros(5, dtype=torch.int64))
        print(sum(calls.values()), end=" ")
    print(flush=True)
    os._exit(0)
"""


def test_an_epoch_costs_two_collectives_at_its_start_and_none_a_step():
    # At the first start there is nothing to exchange, and one is enough to know it.
    assert python("-c", CODE).stdout.split() == ["1", "1"] + ["2", "2"] * 5


APART = """if True:
    import warnings

    import torch
    import torch.distributed as dist

    from carpediem import AdaptiveSampler, RandomBatch, RecencyBias
    from carpediem.distributed import synchronise

    def warnings_of(selector, together=False):
        sampler = AdaptiveSampler(selector, batch_size=4, rank=1, world_size=2)
        if together:
            sampler.share(0, 1)
            synchronise(sampler)
            sampler.share(1, 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(4):
                indices = torch.tensor(list(sampler))
                selector.observe(indices, torch.eye(2)[indices % 2], indices % 2)
        return [str(one.message) for one in caught]

    make = lambda: RecencyBias(12, 2, 6, window=1, warm_up=1)
    print(len(warnings_of(make())))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    found = warnings_of(make())
    print(len(found), "call carpediem.distributed.synchronise(sampler)" in found[0])
    print(len(warnings_of(make(), together=True)), len(warnings_of(RandomBatch(12, 2, 6))))
    dist.destroy_process_group()
"""


def test_ranks_that_were_not_made_one_are_told_so_once():
    assert python("-c", APART).stdout.splitlines() == ["0", "1 True", "0 0"]


ALIKE = """if True:
    import sys
    import warnings

    import torch.distributed as dist

    from carpediem import AdaptiveSampler, RecencyBias
    from carpediem.distributed import synchronise

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    make = lambda: RecencyBias(12, 2, 6, window=1, warm_up=1)
    for what in (AdaptiveSampler(make(), batch_size=4, rank=1, world_size=2), "x"):
        try:
            synchronise(what)
        except (TypeError, ValueError) as error:
            print(error)
    synchronise(AdaptiveSampler(make(), batch_size=4, rank=1, world_size=2).selector)  # of a framework that shares out
    sampler = AdaptiveSampler(make(), batch_size=4)
    synchronise(sampler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            list(sampler)
    print(len(caught), "has not observed a single step up to epoch 1" in str(caught[0].message))
    dist.destroy_process_group()
"""


def test_what_is_made_one_has_the_share_of_its_process_and_is_warned_where_nothing_is_observed():
    assert python("-c", ALIKE).stdout.splitlines() == [
        "the sampler of rank 0 must have rank = 0 and world_size = 1, got 1 and 2; build it with rank=dist.get_rank(), "
        "world_size=dist.get_world_size(), or hand in its selector alone where a framework shares out the stream",
        "sampler must be an AdaptiveSampler or a Selector, got str",
        "1 True",
    ]


WIRE = """if True:
    import sys

    import torch.distributed as dist
    import torch.testing._internal.distributed.fake_pg  # registers the backend

    from carpediem.distributed import _wire

    for backend in sys.argv[1:]:
        dist.init_process_group(None if backend == "none" else backend, store=dist.HashStore(), rank=0, world_size=1)
        print(_wire(None).type)
        dist.destroy_process_group()
"""


def test_what_is_exchanged_lies_where_the_groups_backends_can_reach_it():
    # torch's own stand-in for a backend of one device, since nccl itself is there with a GPU alone.
    unnamed = "cuda" if torch.cuda.is_available() else "cpu"
    expected = {"gloo": "cpu", "none": unnamed, "cuda:fake": "cuda", "cuda:fake,cpu:gloo": "cpu"}
    assert python("-c", WIRE, *expected).stdout.split() == list(expected.values())


NCCL = """if True:
    import sys

    import torch
    import torch.distributed as dist

    from carpediem import ActiveBias, AdaptiveSampler, OnlineBatch, RecencyBias
    from carpediem.distributed import merge, synchronise

    torch.cuda.set_device(0)
    dist.init_process_group(sys.argv[1], store=dist.HashStore(), rank=0, world_size=1)

    def trained(method, device, together):
        options = {"window": 1} if method is RecencyBias else {}
        selector = method(60, 3, 4, warm_up=1, device=device, **options)
        sampler = AdaptiveSampler(selector, batch_size=20)
        if together:
            synchronise(sampler)
        random = torch.Generator().manual_seed(0)
        for epoch in range(3):
            indices = sampler.next_epoch()  # the first time there is nothing to exchange
            for batch in indices.split(20):
                logits = torch.randn(20, 3, generator=random).to("cuda", torch.bfloat16)
                selector.observe(batch, logits, (batch % 3).to("cuda"))
        merge(sampler)
        return selector.state_dict()

    for method in (RecencyBias, OnlineBatch, ActiveBias):
        for device in ("cpu", "cuda"):
            alone, together = (trained(method, device, how) for how in (False, True))
            assert alone.keys() == together.keys()
            for name, value in alone.items():
                if isinstance(value, torch.Tensor):  # but for the column that takes what must not be kept
                    torch.testing.assert_close(together[name][..., :60], value[..., :60], msg=name)
                else:
                    assert together[name] == value, name
    dist.destroy_process_group()
"""


@pytest.mark.skipif(
    not (torch.cuda.is_available() and torch.distributed.is_nccl_available()), reason="needs a CUDA device"
)
@pytest.mark.parametrize("backend", ["nccl", "cuda:nccl", "cpu:gloo,cuda:nccl"])
def test_observations_travel_over_nccl_from_selectors_on_host_and_device(backend):
    python("-c", NCCL, backend)


@pytest.mark.parametrize("shape", [(9,), (2, 9), (9, 2)])
def test_what_a_device_dropped_in_another_order_is_no_difference_between_ranks(shape):
    selector = RandomBatch(8)
    values = torch.zeros(shape)
    selector.add_state("values", values)
    selector.add_state("steps", torch.zeros(()))
    before = _settings(selector)
    samples = values.movedim(shape.index(9), 0)
    samples[8] = 1  # where what must not be kept goes
    assert _settings(selector) == before
    samples[7] = 1
    assert _settings(selector) != before
