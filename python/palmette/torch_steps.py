"""Level steps kept by shape: captured in CUDA graphs, compiled, or as they are.

A step of a beam search over `torch_tables` is a few dozen small kernels of fixed shapes. On a GPU, launching them takes longer
than running them, so a step is captured once for each (level, requests, beams, width) and replayed from then on. The number of
captured shapes is bounded, the least recently used goes first. What cannot be captured runs as it is, and the reason is a
warning, once. On the host nothing is launched and a step runs as it is.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["MODES", "LevelSteps"]

logger = logging.getLogger(__name__)

MODES = ("auto", "plain", "graph", "compile")

Tensors = tuple[torch.Tensor, ...]
# A function of tensors that gives tensors.
Step = Callable[..., Tensors]
# Makes the tensors of a step's result, and a call that writes them anew from what the step reads.
Recorder = Callable[[Callable[[], Tensors]], tuple[Tensors, Callable[[], None]]]

# Bytes of all places that captured steps read their inputs from, at most: logits are copied there.
MAX_INPUT_BYTES = 1 << 30


@dataclass
class Captured:
    """One shape: where its inputs are read, where its results are written, and the call between."""

    inputs: Tensors
    outputs: Tensors
    replay: Callable[[], None]
    nbytes: int


class LevelSteps:
    """Steps of one set of tables, by shape.

    Args:
        mode: `"graph"` captures CUDA graphs, `"compile"` compiles by `torch.compile`, `"plain"` does neither; `"auto"` is
            `"graph"` where the tensors are on a CUDA device and `"plain"` elsewhere.
        max_shapes: captured or compiled shapes that are kept.
        after: times that a shape runs as it is before it is captured.
        recorder: what captures; given by tests.
    """

    def __init__(
        self,
        mode: str = "auto",
        max_shapes: int = 64,
        after: int = 0,
        recorder: Recorder | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"step is {mode!r}; it is one of {', '.join(map(repr, MODES))}")
        if max_shapes < 1:
            raise ValueError(f"max_shapes is {max_shapes}; keep at least 1")
        self.mode, self.max_shapes, self.after = mode, max_shapes, after
        self._recorder = recorder or GraphRecorder()
        self._kept: OrderedDict[Any, Step | Captured] = OrderedDict()
        self._uses: OrderedDict[Any, int] = OrderedDict()
        self._failed: str | None = None
        self._is_too_large_said = False
        # Graphs share one pool of memory, so that one runs at a time.
        self._lock = threading.Lock()
        self._done: torch.cuda.Event | None = None

    def __len__(self) -> int:
        """Shapes that are kept."""
        return len(self._kept)

    def __getstate__(self) -> dict[str, Any]:
        return {"mode": self.mode, "max_shapes": self.max_shapes, "after": self.after}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def failure(self) -> str | None:
        """Why steps run as they are although another mode was wanted; None where they do not."""
        return self._failed

    def run(self, key: Any, step: Step, *inputs: torch.Tensor) -> Tensors:
        """`step(*inputs)`. `key` and the shapes of the inputs say which step it is."""
        mode = self._mode_of(inputs[0])
        nbytes = sum(each.nbytes for each in inputs)
        if mode == "graph" and nbytes > MAX_INPUT_BYTES:
            if not self._is_too_large_said:
                self._is_too_large_said = True
                _say_once(
                    f"the inputs of a step are {nbytes:,} bytes, and at most {MAX_INPUT_BYTES:,} are copied for a graph"
                )
            mode = "plain"
        if mode == "plain":
            return step(*inputs)
        key = (key, *((each.shape, each.dtype) for each in inputs))
        if self.after and not self._is_used_often(key):
            return step(*inputs)
        try:
            with self._lock:
                if mode == "compile":
                    return self._compiled(key, step)(*inputs)
                on_device = inputs[0].device.type == "cuda"
                with torch.cuda.device(inputs[0].device) if on_device else nullcontext():
                    return self._replayed(key, step, inputs, nbytes)
        # Whatever a compiler or a driver raises, the step itself is sound: it runs, or raises what is its own.
        except Exception as error:
            found = step(*inputs)
            lines = str(error).strip().splitlines() or [""]
            self._failed = f"{type(error).__name__}: {lines[0]}"
            self.clear()
            _say_once(f"mode {self.mode!r}: {self._failed}")
            return found

    def clear(self) -> None:
        """Lets go of what is kept."""
        with self._lock:
            self._kept.clear()
            self._uses.clear()

    def _is_used_often(self, key: Any) -> bool:
        with self._lock:
            uses = self._uses[key] = self._uses.pop(key, 0) + 1
            while len(self._uses) > 4 * self.max_shapes:
                self._uses.popitem(last=False)
            return uses > self.after

    def _mode_of(self, tensor: torch.Tensor) -> str:
        if self._failed is not None or self.mode == "plain" or torch.compiler.is_compiling():
            return "plain"
        if torch.is_grad_enabled() and tensor.requires_grad:
            return "plain"
        on_device = tensor.device.type == "cuda"
        if on_device and torch.cuda.is_current_stream_capturing():
            return "plain"  # It becomes a part of the graph that is being made.
        if self.mode == "auto":
            return "graph" if on_device else "plain"
        return self.mode

    def _compiled(self, key: Any, step: Step) -> Step:
        found = self._kept.get(key)
        if found is None or isinstance(found, Captured):
            found = compiled(step)
            self._keep(key, found)
        self._kept.move_to_end(key)
        return found

    def _replayed(self, key: Any, step: Step, inputs: Tensors, nbytes: int) -> Tensors:
        if self._done is not None:
            # Another stream may still run what the last call left to it.
            torch.cuda.current_stream().wait_event(self._done)
        found = self._kept.get(key)
        if not isinstance(found, Captured):
            found = self._capture(step, inputs, nbytes)
            self._keep(key, found)
        self._kept.move_to_end(key)
        for place, given in zip(found.inputs, inputs, strict=True):
            place.copy_(given)
        found.replay()
        outputs = tuple(each.clone() for each in found.outputs)
        if inputs[0].device.type == "cuda":
            self._done = self._done or torch.cuda.Event()
            self._done.record(torch.cuda.current_stream())
        return outputs

    def _capture(self, step: Step, inputs: Tensors, nbytes: int) -> Captured:
        # Ordinary tensors, so that they may be written in and out of inference mode.
        with torch.inference_mode(False), torch.no_grad():
            places = tuple(
                torch.empty(each.shape, dtype=each.dtype, device=each.device) for each in inputs
            )
            for place, given in zip(places, inputs, strict=True):
                place.copy_(given)
            outputs, replay = self._recorder(lambda: step(*places))
        return Captured(places, outputs, replay, nbytes)

    def _keep(self, key: Any, made: Step | Captured) -> None:
        """Keeps one more, and lets go of the least recently used where there are too many."""
        self._kept[key] = made
        while len(self._kept) > self.max_shapes or self._nbytes() > MAX_INPUT_BYTES:
            self._kept.popitem(last=False)

    def _nbytes(self) -> int:
        return sum(each.nbytes for each in self._kept.values() if isinstance(each, Captured))


class GraphRecorder:
    """Captures steps in CUDA graphs over one pool of memory, after a run on a stream of its own as capture wants it.

    One pool serves all, since one graph runs at a time and its results are copied before the next.
    """

    def __init__(self) -> None:
        self._pool: Any = None

    def __call__(self, step: Callable[[], Tensors]) -> tuple[Tensors, Callable[[], None]]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                step()
        torch.cuda.current_stream().wait_stream(side)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            outputs = step()
        return outputs, graph.replay


def compiled(step: Step) -> Step:
    """A step compiled whole for the shapes that it is first called with."""

    def whole(*inputs: torch.Tensor) -> Tensors:
        return step(*inputs)

    # The compiler bounds the shapes of one code object, and runs what is over as it is: each gets an object of its own.
    whole.__code__ = whole.__code__.replace()
    made: Step = torch.compile(whole, fullgraph=True, dynamic=False)
    return made


@functools.lru_cache(maxsize=64)
def _say_once(problem: str) -> None:
    logger.warning("steps of a search run as they are, neither captured nor compiled. %s", problem)
