"""The call of `generate` that runs a logits processor: where its prompt ends, and if a draft is being checked.

`generate` hands a processor rows of tokens and nothing else: neither where the prompt ends, nor when another one begins. Both
are known to the call itself, which is found on this thread's stack by its code and by the list of processors that it prepared.
Loops that do not go through `generate` have none, and are watched instead (`palmette._text_start`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from transformers import GenerationMixin

GENERATE = inspect.unwrap(GenerationMixin.generate).__code__


@dataclass(frozen=True)
class RunningGenerate:
    """A call of `generate`, the outermost that runs the processor.

    `prompt`: int64 [rows, tokens], the rows that it began with. `max_length`: tokens at which it stops, prompt included;
    `min_length`: before which it allows no end token.
    `is_assisted`: drafts are checked, whose rows grow and shrink. `is_draft`: the present call is an assistant's own
    `generate`, whose tokens may be those of another vocabulary.
    """

    prompt: torch.Tensor
    max_length: int | None
    min_length: int
    is_assisted: bool
    is_draft: bool

    def is_other_vocabulary(self, input_ids: torch.Tensor, num_scored: int, num_tokens: int) -> bool:
        """Whether an assistant writes in tokens of its own: its rows do not begin with the prompt, or it scores fewer tokens."""
        length = self.prompt.shape[1]
        return self.is_draft and (
            num_scored < num_tokens
            or input_ids.shape[1] < length
            or input_ids.shape[0] != self.prompt.shape[0]
            or not torch.equal(input_ids[:, :length].cpu(), self.prompt.cpu())
        )


def running_generate(processor: Any) -> RunningGenerate | None:
    """The call of `generate` on this thread that runs the processor; None where there is none."""
    calls = [names for names in _calls(sys._getframe(1)) if _prepared(names, processor)]
    if not calls:
        return None
    names = calls[-1]
    mode = getattr(names.get("generation_mode"), "value", None)
    return RunningGenerate(
        prompt=names["input_ids"],
        max_length=getattr(names.get("generation_config"), "max_length", None),
        min_length=getattr(names.get("generation_config"), "min_length", None) or 0,
        is_assisted=mode == "assisted_generation",
        is_draft=len(calls) > 1,
    )


def _calls(frame: FrameType | None) -> Iterator[dict[str, Any]]:
    """The variables of the calls of `generate` on the stack, the innermost first."""
    while frame is not None:
        if frame.f_code is GENERATE:
            yield frame.f_locals
        frame = frame.f_back


def _prepared(names: dict[str, Any], processor: Any) -> bool:
    prepared = names.get("prepared_logits_processor")
    return (
        prepared is not None
        and isinstance(names.get("input_ids"), torch.Tensor)
        and any(each is processor for each in prepared)
    )
