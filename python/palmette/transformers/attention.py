"""Attention of beams that share a prompt: two softmaxes, merged by their log-sums.

A beam attends to the prompt, which all beams of its request read, and to the few tokens of its own. The prompt's keys are
read where the prompt's pass left them, by all beams of a request as the rows of one product; a beam's own tokens
are a product of a few columns. With `a` and `b` the log-sums of the two, the whole is `sigmoid(a - b)` of the first and the
rest of the second: what one softmax over both gives. No beam sees another's keys, and no mask says so.

The model's own code stays: it gets a cache whose layers hand out the beams' own tokens, and an attention function that is
registered with transformers.

Letters: R requests, W beams a request, H heads, K key heads, G = H / K, P tokens of the prompt, n tokens of a beam, D a head.
"""

from __future__ import annotations

import copy
import functools
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface
from transformers.cache_utils import Cache, DynamicLayer

#: The name by which transformers knows the attention function. It has no mask function, so models make no masks.
IMPLEMENTATION = "palmette_shared_prompt"

#: Arguments of attention functions that say nothing here: beams stand at given positions, and a window is not full.
LEFT_OUT = ("dropout", "position_ids", "position_embeddings", "cache_position", "sliding_window")

logger = logging.getLogger(__name__)


class BeamLayer(DynamicLayer):
    """One layer's keys and values: the prompt's a request, as they are, and a beam's own, moved with the beams.

    `prompt_keys`, `prompt_values`: [R, K, P, D]. `keys`, `values`: [R * W, K, n, D], None before the first step.
    `parents`: int64 [R * W], the row of the step before that each beam continues.
    """

    def __init__(self, prompt_keys: torch.Tensor, prompt_values: torch.Tensor) -> None:
        super().__init__()
        self.prompt_keys, self.prompt_values = prompt_keys, prompt_values
        self.parents = torch.zeros(0, dtype=torch.int64)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Puts each beam's new token [R, K, W, D] behind those of the beam that it continues."""
        self.keys = self._extended(self.keys, key_states)
        self.values = self._extended(self.values, value_states)
        return self.keys, self.values

    def _extended(self, own: torch.Tensor | None, new: torch.Tensor) -> torch.Tensor:
        new = new.transpose(1, 2).flatten(0, 1).unsqueeze(2)
        if own is None:
            return new
        return torch.cat((own.index_select(0, self.parents.to(own.device)), new), dim=2)

    def get_seq_length(self) -> int:
        own = 0 if self.keys is None else int(self.keys.shape[2])
        return int(self.prompt_keys.shape[2]) + own


@dataclass(frozen=True)
class Padding:
    """What of the prompts is no text.

    `starts`: each prompt's first token where all padding is on the left and every prompt has a token, None where there is no
    padding, or another kind. `is_mixed`: it is of another kind, so that a mask has to say it.
    """

    starts: list[int] | None = None
    is_mixed: bool = False

    @classmethod
    def from_mask(cls, mask: torch.Tensor | None) -> Padding:
        """Of an attention mask [R, P]. It comes to the host: call it before there is something to wait for."""
        if mask is None or mask.dim() != 2 or mask.numel() == 0:
            return cls()
        text = mask.bool().cpu().numpy()
        if text.all():
            return cls()
        starts = text.argmax(axis=1)
        is_left = text.any(axis=1).all() and (
            text == (np.arange(text.shape[1]) >= starts[:, None])
        ).all()
        return cls(starts.tolist()) if is_left else cls(is_mixed=True)


class BeamCache(Cache):
    """The cache of a search: a `BeamLayer` for each layer of the prompt's cache.

    `starts`: each prompt's first token, None where none is padded. `mask`: [R, 1, 1, P], what is added to the scores of the
    prompt's tokens where padding is not all on the left, else None.
    `attended`: calls of the attention function below in this step.
    """

    def __init__(
        self, prompt: Any, starts: list[int] | None, mask: torch.Tensor | None
    ) -> None:
        self.beams = [BeamLayer(layer.keys, layer.values) for layer in prompt.layers]
        super().__init__(layers=list(self.beams))
        self.starts, self.mask = starts, mask
        self.attended = 0

    def begin_step(self, parents: torch.Tensor) -> None:
        self.attended = 0
        for layer in self.beams:
            layer.parents = parents


def shared_prompt_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    shared_prompt: BeamCache,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function of a step: `query` [R, H, W, D], `key` and `value` of a `BeamLayer`; gives [R, W, H, D]."""
    more = [
        name
        for name, value in kwargs.items()
        if name not in LEFT_OUT and isinstance(value, (torch.Tensor, float))
    ]
    if more:
        raise ValueError(
            f"share_prompt: {type(module).__name__} attends with {', '.join(more)}, which is not known here: pass share_prompt=False"
        )
    num_requests, num_heads, width, size = query.shape
    layer = shared_prompt.beams[module.layer_idx]
    key_heads = key.shape[1]
    groups = num_heads // key_heads
    scaling = size**-0.5 if scaling is None else scaling
    shape = (num_requests, key_heads, groups, width)

    whole, prompt_sums = _to_prompts(
        query.reshape(num_requests, key_heads, groups * width, size), layer, shared_prompt, scaling
    )
    rows = query.transpose(1, 2).reshape(num_requests * width, key_heads, groups, size)
    scores = torch.matmul(rows, key.transpose(-1, -2)).float() * scaling
    own_sums = torch.logsumexp(scores, dim=-1)
    own = torch.matmul((scores - own_sums.unsqueeze(-1)).exp().to(value.dtype), value)

    whole = whole.view(*shape, -1).permute(0, 3, 1, 2, 4)
    prompt_sums = prompt_sums.reshape(shape).permute(0, 3, 1, 2)
    share = torch.sigmoid(prompt_sums - own_sums.view(prompt_sums.shape)).unsqueeze(-1)
    merged = torch.lerp(own.view(whole.shape).float(), whole.float(), share)
    shared_prompt.attended += 1
    return merged.to(query.dtype).reshape(num_requests, width, num_heads, -1), None


def _to_prompts(
    query: torch.Tensor, layer: BeamLayer, cache: BeamCache, scaling: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of each request's rows to its prompt; a padded prompt is read from its first token on."""
    keys, values = layer.prompt_keys, layer.prompt_values
    if cache.starts is None:
        return attention_with_log_sums(query, keys, values, cache.mask, scaling)
    parts = []
    for request, start in enumerate(cache.starts):
        one = slice(request, request + 1)
        parts.append(
            attention_with_log_sums(
                query[one], keys[one, :, start:], values[one, :, start:], None, scaling
            )
        )
    whole, sums = zip(*parts, strict=True)
    return torch.cat(whole), torch.cat(sums)


AttentionInterface.register(IMPLEMENTATION, shared_prompt_attention)


def attention_with_log_sums(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention [R, K, rows, D] and the log of each row's sum of exponentials, float32 [R, K, rows]."""
    kernel = _kernel(query, values, mask)
    if kernel is not None:
        try:
            return kernel(query, keys, values, mask, scaling)
        except (RuntimeError, NotImplementedError) as error:
            _say_once(f"attention of {query.dtype} heads of {query.shape[-1]} on {query.device.type}: {error}")
    scores = torch.matmul(query, keys.transpose(-1, -2)).float() * scaling
    if mask is not None:
        scores = scores + mask
    sums = torch.logsumexp(scores, dim=-1)
    return torch.matmul((scores - sums.unsqueeze(-1)).exp().to(values.dtype), values), sums


def _kernel(query: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None) -> Any:
    """A kernel that never writes the scores down and gives the log-sums, or None."""
    if values.shape[-1] != query.shape[-1]:
        return None
    if query.device.type == "cpu":
        return _flash_on_host if hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu") else None
    if query.device.type == "cuda" and mask is None:
        half = query.dtype in (torch.float16, torch.bfloat16)
        return _flash_on_device if half else _efficient_on_device
    return None


def _flash_on_host(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, scaling: float
) -> tuple[torch.Tensor, torch.Tensor]:
    if mask is not None:
        mask = mask.to(query.dtype).expand(-1, -1, query.shape[2], -1)
    attended, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, keys, values, 0.0, False, attn_mask=mask, scale=scaling
    )
    return attended, sums


def _flash_on_device(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, scaling: float
) -> tuple[torch.Tensor, torch.Tensor]:
    attended, sums, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
        query, keys, values, 0.0, False, False, scale=scaling
    )
    return attended, sums


def _efficient_on_device(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, scaling: float
) -> tuple[torch.Tensor, torch.Tensor]:
    attended, sums, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        query, keys, values, None, True, 0.0, False, scale=scaling
    )
    # The sums of rows are padded to a multiple of 32.
    return attended, sums[..., : query.shape[2]]


@functools.lru_cache(maxsize=64)
def _say_once(problem: str) -> None:
    logger.warning("the prompt's attention writes its scores down, because a kernel refused. %s", problem)


class SharedPromptModel:
    """A model's modules with the attention function above: copies of those that read the configuration, made once.

    The model itself stays as it is, so that other threads may use it meanwhile; weights are those of the model.
    """

    def __init__(self) -> None:
        self.made: dict[int, tuple[Any, Any]] = {}
        self.config: Any = None

    def of(self, model: Any) -> Any:
        if self.config is None:
            self.config = copy.copy(model.config)
            self.config._attn_implementation = IMPLEMENTATION
        return self._copy(model, model.config)

    def _copy(self, module: Any, config: Any) -> Any:
        known = self.made.get(id(module))
        if known is not None:
            return known[1]
        children = {
            name: None if child is None else self._copy(child, config)
            for name, child in module._modules.items()
        }
        copied = module
        if module.__dict__.get("config") is config or any(
            child is not module._modules[name] for name, child in children.items()
        ):
            copied = object.__new__(type(module))
            copied.__dict__.update(module.__dict__)
            copied.__dict__["_modules"] = children
            if copied.__dict__.get("config") is config:
                copied.__dict__["config"] = self.config
        # The module is kept with its copy, so that its number stays its own.
        self.made[id(module)] = (module, copied)
        return copied
