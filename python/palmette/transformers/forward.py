"""One step of the model for all beams: on a cache repeated a beam, or on the prompt's cache shared by the beams of a request."""

from __future__ import annotations

import functools
import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from palmette.transformers.attention import BeamCache, Padding, SharedPromptModel
from palmette.transformers.requests import indices
from palmette.transformers.selection import Chosen

logger = logging.getLogger(__name__)

# Decoders that read positions and call the attention function of their configuration, so that beams may stand side by side.
SHARED_PROMPT_MODELS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


class RepeatedPrompt:
    """One row of the model a beam: the prompt's cache is repeated once and reordered a level."""

    places = None

    def __init__(self, model: Any, input_ids: torch.Tensor, model_kwargs: dict[str, Any]) -> None:
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

    No key of the prompt is copied, and beams do not see each other: see `attention`.
    """

    def __init__(
        self, model: Any, input_ids: torch.Tensor, padding: Padding, model_kwargs: dict[str, Any]
    ) -> None:
        self.kwargs = model_kwargs
        key = cache_key(model_kwargs)
        assert key is not None, "a model without a cache is refused before"
        self.key = key
        num_requests, length = input_ids.shape
        self.device = input_ids.device
        self.position = torch.full((num_requests, 1), length, device=self.device)
        mask, added = model_kwargs.get("attention_mask"), None
        if mask is not None:
            # The mask was extended by the next token after the prompt.
            prompt = mask[:, :length].bool()
            self.position = prompt.sum(dim=1, keepdim=True)
            if padding.is_mixed:
                low = torch.finfo(model.dtype).min
                added = torch.zeros(prompt.shape, dtype=model.dtype, device=self.device)
                added = added.masked_fill_(~prompt, low)[:, None, None]
        self.cache = BeamCache(model_kwargs[key], padding.starts, added)
        self.models = SharedPromptModel()
        self.places = np.arange(num_requests)
        self.width = self.past = 1

    def advance(self, model: Any, chosen: Chosen) -> torch.Tensor:
        device = self.device
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
        num_requests, width = ids.shape
        first = torch.arange(num_requests, device=self.device).unsqueeze(1) * self.past
        self.cache.begin_step((parents + first).flatten())
        keep: dict[str, Any] = {"logits_to_keep": width} if "logits_to_keep" in self.kwargs else {}
        outputs = self.models.of(model)(
            input_ids=ids,
            position_ids=self.position.expand(-1, width),
            use_cache=True,
            return_dict=True,
            shared_prompt=self.cache,
            **{self.key: self.cache},
            **keep,
        )
        if self.cache.attended != len(self.cache.layers):
            raise ValueError(
                f"share_prompt: {type(model).__name__} attends in a way of its own in some of its {len(self.cache.layers)} "
                "layers, not by the attention function of its configuration: pass share_prompt=False"
            )
        self.past, self.position = width, self.position + 1
        logits: torch.Tensor = outputs.logits.flatten(0, 1)
        return logits


def beams_on(
    model: Any,
    input_ids: torch.Tensor,
    model_kwargs: dict[str, Any],
    *,
    share_prompt: bool | None,
    padding: Padding,
    num_levels: int,
) -> RepeatedPrompt | SharedPrompt:
    """The beams' steps behind a prompt. `share_prompt` is what is asked for, None where either will do."""
    refusal = None
    if share_prompt is not False:
        refusal = _why_not_shared(model, model_kwargs, input_ids.shape[1], num_levels)
    if share_prompt and refusal:
        raise ValueError(f"share_prompt=True: {refusal}; leave share_prompt out")
    kind = getattr(model.config, "model_type", None)
    if share_prompt is False or (kind not in SHARED_PROMPT_MODELS and not share_prompt):
        return RepeatedPrompt(model, input_ids, model_kwargs)
    if refusal:
        _say_once(f"{type(model).__name__}: {refusal}")
        return RepeatedPrompt(model, input_ids, model_kwargs)
    return SharedPrompt(model, input_ids, padding, model_kwargs)


@functools.lru_cache(maxsize=64)
def _say_once(problem: str) -> None:
    logger.warning("the prompt's keys are repeated for each beam, not shared. %s", problem)


def _why_not_shared(
    model: Any, model_kwargs: dict[str, Any], length: int, num_levels: int
) -> str | None:
    """What keeps beams from sharing the prompt's keys, or None."""
    if getattr(model.config, "is_encoder_decoder", False):
        return "an encoder's keys are repeated for each beam"
    key = cache_key(model_kwargs)
    cache = model_kwargs[key] if key else None
    layers = getattr(cache, "layers", None)
    if not layers:
        return "it keeps no cache of keys (use_cache)"
    if getattr(cache, "offloading", False):
        return "its cache is offloaded"
    implementation = getattr(model.config, "_attn_implementation", None)
    if implementation not in ("sdpa", "eager"):
        return f"its attention is {implementation!r}, not 'sdpa' or 'eager'"
    for number, layer in enumerate(layers):
        window = getattr(layer, "sliding_window", None)
        # As long as nothing has left the window, such a layer is like any other.
        if type(layer).__name__ == "DynamicSlidingWindowLayer" and window is not None:
            if length + num_levels > window:
                return f"layer {number} has a sliding window of {window} tokens, which is full"
        elif type(layer).__name__ != "DynamicLayer":
            return f"the cache of layer {number} is a {type(layer).__name__}"
    own = next((name for name, each in model.named_modules() if "forward" in each.__dict__), None)
    if own is not None:
        return f"its module {own or type(model).__name__!r} has a forward of its own"
    return None


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
