"""A training step recorded once and replayed: one CUDA graph a run, one stream a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from carpediem.lab.learner import Learner

WARM_UP_STEPS = 3  # uncaptured steps, in which kernels are compiled and chosen


class Track:
    """Where a run's steps happen: called in place on the CPU, replayed on a stream of its own on a CUDA device.

    The recorded step is the very `Learner.step` that the CPU runs.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.step: Callable[[], None] = learner.step
        self._stream: torch.cuda.Stream | None = None
        if learner.network.device.type == "cuda":
            self._stream = torch.cuda.Stream(learner.network.device)
            if learner.data.is_resident:
                self.step = self._recorded()

    def beside(self) -> AbstractContextManager[object]:
        """Work inside goes to the run's stream."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def wait(self) -> None:
        """Returns when the run's work so far is done."""
        if self._stream is not None:
            self._stream.synchronize()

    def _recorded(self) -> Callable[[], None]:
        learner, graph = self.learner, torch.cuda.CUDAGraph()
        before = learner.state_dict()
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UP_STEPS):
                learner.rewind()
                learner.step()
            learner.rewind()
        torch.cuda.synchronize()
        graph.register_generator_state(learner.generator)
        with torch.cuda.graph(graph, stream=self._stream):
            learner.step()
        torch.cuda.synchronize()
        # The steps above trained on nothing in particular: all they did is undone.
        learner.load_state_dict(before)
        torch.cuda.synchronize()
        return graph.replay
