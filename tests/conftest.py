import os
import signal

import pytest
import torch
from hypothesis import settings

# A shell without job control starts what runs in the background deaf to Ctrl-C, and so all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The examples are the same in every run, so that a failure seen once is seen again.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40, database=None)
settings.load_profile("suite")

# Two test processes on two cores: a thread pool in each would only get in the other's way.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20)
