"""Tree attention: all beams' keys behind the prompt's, one mask over them. The slow double of the merged attention.

A step attends over the prompt and over every key that any beam of the request ever had, and a mask lets each beam see its
own. Tests compare the package with it, and `bench/transformers_beams.py` times it as the baseline that others have.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from palmette.transformers.forward import cache_key
from palmette.transformers.requests import indices
from palmette.transformers.selection import Chosen


@contextlib.contextmanager
def tree_attention() -> Iterator[None]:
    """`beam_search` by tree attention, in this block."""
    module = importlib.import_module("palmette.transformers.beam_search")
    ours = module.beams_on
    module.beams_on = TreePrompt
    try:
        yield
    finally:
        module.beams_on = ours


class TreePrompt:
    """One row of the model a request: its beams stand side by side and share the prompt's keys and values.

    The attention mask [requests, 1, beams, keys] lets a beam see the prompt and its own codes; a beam's codes lie at
    one key a level. Keys of beams that ended stay where they are, unseen. No cache is copied or reordered.
    """

    def __init__(
        self, model: Any, input_ids: torch.Tensor, model_kwargs: dict[str, Any], **_: Any
    ) -> None:
        self.kwargs = model_kwargs
        key = cache_key(model_kwargs)
        if key is None:
            raise ValueError(
                "share_prompt=True needs a model with a cache: leave use_cache on, or share_prompt out"
            )
        self.key = key
        num_requests, length = input_ids.shape
        mask = model_kwargs.get("attention_mask")
        # The mask was extended by the next token after the prompt.
        self.prompt = (
            torch.ones((num_requests, length), dtype=torch.bool, device=input_ids.device)
            if mask is None
            else mask[:, :length].bool()
        )
        # Attention wants the mask in the type of the queries.
        self.dtype: torch.dtype = model.dtype
        self.position = self.prompt.sum(dim=1, keepdim=True)
        self.seen = torch.zeros((num_requests, 1, 0), dtype=torch.bool, device=input_ids.device)
        self.places = np.arange(num_requests)
        self.width = 1

    def advance(self, model: Any, chosen: Chosen) -> torch.Tensor:
        device = self.prompt.device
        if isinstance(chosen.tokens, torch.Tensor):
            return self._forward(model, chosen.parents.to(device), chosen.tokens.to(device))
        counts = chosen.counts
        num_requests, width = len(counts), int(counts.max())
        request = np.repeat(np.arange(num_requests), counts)
        slot = np.arange(len(request)) - (np.cumsum(counts) - counts)[request]
        places = request * width + slot
        # Slots without a beam repeat the request's first one; nobody reads them.
        parent, token = (
            np.zeros(num_requests * width, np.int64),
            np.zeros(num_requests * width, np.int64),
        )
        parent[places], token[places] = self.places[chosen.parents] % self.width, chosen.tokens
        self.places, self.width = places, width
        return self._forward(
            model,
            indices(parent, device).view(num_requests, width),
            indices(token, device).view(num_requests, width),
        )

    def _forward(self, model: Any, parents: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Logits [requests * width, V] after tokens [requests, width] that continue the beams of those numbers."""
        device, (num_requests, width) = self.prompt.device, ids.shape
        ancestors = self.seen.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.seen.shape[2]))
        own = torch.eye(width, dtype=torch.bool, device=device).expand(num_requests, -1, -1)
        self.seen = torch.cat((ancestors, own), dim=2)
        allowed = torch.cat((self.prompt[:, None].expand(-1, width, -1), self.seen), dim=2)
        mask = torch.zeros(allowed.shape, dtype=self.dtype, device=device).masked_fill_(
            ~allowed, torch.finfo(self.dtype).min
        )
        keep: dict[str, Any] = {"logits_to_keep": width} if "logits_to_keep" in self.kwargs else {}
        outputs = model(
            input_ids=ids,
            attention_mask=mask[:, None],
            position_ids=self.position.expand(-1, width),
            use_cache=True,
            return_dict=True,
            **{self.key: self.kwargs[self.key]},
            **keep,
        )
        self.kwargs[self.key] = outputs[self.key]
        self.position = self.position + 1
        logits: torch.Tensor = outputs.logits.flatten(0, 1)
        return logits
