"""Beam search over a catalog as `custom_generate`: the prompt once, then a step a level."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from palmette._tables import check_choices
from palmette.torch_tables import Tables
from palmette.transformers.attention import Padding
from palmette.transformers.forward import beams_on
from palmette.transformers.heads import CutHeads
from palmette.transformers.requests import constraints_of
from palmette.transformers.results import BeamResult
from palmette.transformers.selection import DeviceSelection, Selection
from palmette.transformers.settings import check_arguments, check_width


def beam_search(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: Any = None,
    stopping_criteria: Any = None,
    generation_config: Any = None,
    *,
    constraint: Any,
    beam_width: int | Sequence[int] = 50,
    num_results: int | None = None,
    filters: Sequence[Any] | None = None,
    scores: str = "vocabulary",
    share_prompt: bool | None = None,
    tables: Tables | None = None,
    **model_kwargs: Any,
) -> BeamResult:
    """Exact beam search over a catalog, as `custom_generate` of `model.generate`:

        model.generate(ids, attention_mask=mask, do_sample=False, custom_generate=beam_search, constraint=c, beam_width=50)

    `beam_width`: beams kept, one number or one a level; a request that has fewer valid items keeps fewer. `num_results`:
    results a request, the last level's width by default. `filters`: a filter or item set a request (None: all items).
    `scores`: `"vocabulary"` sums log-softmax over the whole vocabulary, `"catalog"` over the tokens of the level's codes,
    for which the output layer is cut to those rows. Ties are ordered by beam, then token.

    Prompts are computed once a request (padded on the left, as `generate` wants). With `share_prompt` the beams of a
    request attend to one copy of the prompt's keys and values, each besides to its own codes, and the two are merged by
    their log-sums; otherwise the cache is repeated a beam and reordered a level. Default: shared for the models of
    `SHARED_PROMPT_MODELS`, with the same scores up to rounding; where one of these cannot share, a warning says why, once.
    Encoder–decoder models run the encoder once and repeat its keys once.

    `tables`: the constraint's `device_tables`, or a generation of `LiveDeviceTables`, on the model's device. Beams are then chosen there, without waiting for the
    device until the end: rows are as many as beams, those without an item scored -inf and left out of the result.
    """
    check_arguments(generation_config, logits_processor, stopping_criteria, constraint)
    widths = _widths(beam_width, num_results, constraint.num_levels)
    check_choices(filters, input_ids.shape[0])
    if scores not in ("vocabulary", "catalog"):
        raise ValueError(f'scores are "vocabulary" or "catalog", not {scores!r}')
    if tables is not None and scores == "catalog":
        raise ValueError(
            'tables= choose beams by scores over the vocabulary: leave out scores="catalog", or tables'
        )
    allowed = constraints_of(constraint, filters)
    selection = (
        Selection(constraint, allowed, widths, input_ids.shape[0])
        if tables is None
        else DeviceSelection(constraint, allowed, widths, input_ids.shape[0], tables)
    )
    with torch.inference_mode(), _decoding(model):
        heads = CutHeads(model, constraint) if scores == "catalog" else None
        # Before the prompt's pass, so that nothing waits for it on a device.
        padding = Padding.from_mask(model_kwargs.get("attention_mask"))
        outputs, model_kwargs = _prefill(
            heads.model(0) if heads else model, input_ids, generation_config, model_kwargs
        )
        if heads is None:
            check_width(outputs.logits.shape[-1], constraint.num_tokens)
        chosen = selection.step(outputs.logits[:, -1], heads)
        del outputs
        beams = beams_on(
            model,
            input_ids,
            model_kwargs,
            share_prompt=share_prompt,
            padding=padding,
            num_levels=constraint.num_levels,
        )
        for level in range(1, constraint.num_levels):
            if chosen.is_empty:
                break
            logits = beams.advance(heads.model(level) if heads else model, chosen)
            chosen = selection.step(logits, heads, beams.places)
    return selection.result(input_ids.device)


def _widths(beam_width: int | Sequence[int], num_results: int | None, num_levels: int) -> list[int]:
    widths = [beam_width] * num_levels if isinstance(beam_width, int) else list(beam_width)
    if len(widths) != num_levels:
        raise ValueError(
            f"{len(widths)} beam widths for items of {num_levels} levels: give one number, or one a level"
        )
    if num_results is not None:
        widths[-1] = num_results if isinstance(beam_width, int) else min(num_results, widths[-1])
    if min(widths) < 1:
        raise ValueError(f"beam widths are at least 1, not {min(widths)}")
    return widths


def _prefill(
    model: Any, input_ids: torch.Tensor, generation_config: Any, model_kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The prompt's forward pass, and the arguments that the next one needs."""
    outputs = model._prefill(input_ids, generation_config, model_kwargs)
    encoder_decoder = bool(getattr(model.config, "is_encoder_decoder", False))
    return outputs, model._update_model_kwargs_for_generation(
        outputs, model_kwargs, is_encoder_decoder=encoder_decoder
    )


def _decoding(model: Any) -> contextlib.AbstractContextManager[Any]:
    optimize: Callable[[], Any] | None = getattr(model, "_optimize_model_for_decode", None)
    return optimize() if optimize else contextlib.nullcontext()
