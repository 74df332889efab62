"""One step of the model for all beams: on a cache repeated a beam, or on the prompt's cache shared by the beams of a request."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from palmette.transformers.requests import indices
from palmette.transformers.selection import Chosen

# Decoders whose attention is a function of masks and position ids alone, so that beams may stand side by side in one row.
SHARED_PROMPT_MODELS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


class RepeatedPrompt:
    """One row of the model a beam: the prompt's cache is repeated once and reordered a level."""

    places = None

    def __init__(
        self, model: Any, input_ids: torch.Tensor, outputs: Any, model_kwargs: dict[str, Any]
    ) -> None:
        self.encoder_decoder = bool(getattr(model.config, "is_encoder_decoder", False))
        self.ids = input_ids
        self.kwargs = model_kwargs
        self.counts: npt.NDArray[np.int64] | None = None

    def advance(self, model: Any, chosen: Chosen) -> torch.Tensor:
        device = self.ids.device
        if isinstance(chosen.tokens, torch.Tensor):
            num_requests, past = len(chosen.tokens), len(self.ids) // len(chosen.tokens)
            parent = (
                (
                    chosen.parents
                    + torch.arange(num_requests, device=chosen.parents.device).unsqueeze(1) * past
                )
                .flatten()
                .to(device)
            )
            token = chosen.tokens.flatten().to(device)
        else:
            parent, token = indices(chosen.parents, device), indices(chosen.tokens, device)
        moved = self.counts is None or not np.array_equal(chosen.counts, self.counts)
        self._reorder_cache(model, parent, moved)
        if moved:  # Everything but the cache is the same for all beams of a request.
            self._reorder_arguments(parent, len(self.ids))
        self.counts = chosen.counts
        self.ids = torch.cat((self.ids[parent], token[:, None]), dim=1)
        inputs = model.prepare_inputs_for_generation(
            self.ids, next_sequence_length=1 if cache_key(self.kwargs) else None, **self.kwargs
        )
        outputs = model(**inputs, return_dict=True)
        self.kwargs = model._update_model_kwargs_for_generation(
            outputs, self.kwargs, is_encoder_decoder=self.encoder_decoder
        )
        logits: torch.Tensor = outputs.logits[:, -1]
        return logits

    def _reorder_cache(self, model: Any, parent: torch.Tensor, moved: bool) -> None:
        key = cache_key(self.kwargs)
        if key is None:
            return
        cache = self.kwargs[key]
        if hasattr(model, "_reorder_cache"):
            self.kwargs[key] = model._reorder_cache(cache, parent)
        elif not moved and hasattr(cache, "self_attention_cache"):
            cache.self_attention_cache.reorder_cache(parent)
        else:
            cache.reorder_cache(parent)

    def _reorder_arguments(self, parent: torch.Tensor, num_rows: int) -> None:
        for name, value in self.kwargs.items():
            if name == "encoder_outputs":
                self.kwargs[name] = type(value)(
                    {key: _rows_of(each, parent, num_rows) for key, each in value.items()}
                )
            elif name != cache_key(self.kwargs):
                self.kwargs[name] = _rows_of(value, parent, num_rows)


class SharedPrompt:
    """One row of the model a request: its beams stand side by side and share the prompt's keys and values.

    The attention mask [requests, 1, beams, keys] lets a beam see the prompt and its own codes; a beam's codes lie at
    one key a level. Keys of beams that ended stay where they are, unseen. No cache is copied or reordered.
    """

    def __init__(
        self, model: Any, input_ids: torch.Tensor, outputs: Any, model_kwargs: dict[str, Any]
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


def can_share_prompt(model: Any, outputs: Any) -> bool:
    """True for decoders known to read masks and positions alone, with plain attention and a cache that only grows."""
    key = cache_key(outputs)
    if getattr(model.config, "model_type", None) not in SHARED_PROMPT_MODELS or key is None:
        return False
    if getattr(model.config, "_attn_implementation", None) not in ("sdpa", "eager"):
        return False
    return all(
        type(layer).__name__ == "DynamicLayer" for layer in getattr(outputs[key], "layers", [None])
    )


def cache_key(arguments: Any) -> str | None:
    """The name that this version of transformers gives the cache."""
    return next(
        (name for name in ("cache", "past_key_values") if arguments.get(name) is not None), None
    )


def _rows_of(value: Any, parent: torch.Tensor, num_rows: int) -> Any:
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    dim = 1 if value.dim() == 3 and value.shape[0] != num_rows and value.shape[1] == num_rows else 0
    if value.shape[dim] != num_rows:
        return value
    return value.index_select(dim, parent.to(value.device))
