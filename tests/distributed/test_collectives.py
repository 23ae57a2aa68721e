"""How often the processes talk to each other."""

import subprocess
import sys

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
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "2"] * 6
