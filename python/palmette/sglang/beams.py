"""SGLang's beam search over the items of catalogs and the texts of grammars, and over nothing else.

**Items.** Start the server with a file that says which catalogs there are, and how the model spells their codes:

    PALMETTE_CATALOGS=catalogs.json python -m sglang.launch_server --model-path MODEL --page-size 1

    {"shop": {"path": "shop.palm", "code_tokens": ["<a_{}>", "<b_{}>", "<c_{}>", "<d_{}>"]}}

A request names it in its `custom_params`, which hold a text:

    {"beam_width": 128, "n": 128, "custom_params": {"palmette": "{\\"filter\\": {\\"match\\": {\\"brand\\": \\"Fernhollow\\"}}}"}}

with the keys of `palmette._catalog_requests`. It finds the best items that meet its filter, fewer where there are fewer, and keeps the
generation of a live catalog that it began with (`item_beams`).

**Texts.** With `--grammar-backend palmette` a request with `beam_width` may have a grammar (`text_beams`).

SGLang takes the best candidates of each beam before it compares beams, and lets a search with fewer survivors than beams end early;
both lose results. So four calls are changed, by SGLang's own registry of hooks: the check of a request, which begins its search; the
look for candidates, which hands whole rows of logits through; the choice among them; and the question whether a request is a beam
search, since one that names items and wants no beams is refused and not answered with any text. Other requests go their old way.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from sglang.srt.beam_search.beam_group import BeamGroup

from palmette._catalog_requests import ARGUMENT
from palmette.sglang.groups import ConstrainedGroup, WholeRows
from palmette.sglang.item_beams import ItemGroup, items_of
from palmette.sglang.text_beams import KINDS, TextGroup, grammar_of

_COORDINATOR = "sglang.srt.beam_search.coordinator"

# The grammar backend of this process's server.
_BACKEND: weakref.ref[Any] | None = None


def validate_and_init(check: Callable[..., str | None], coordinator: Any, req: Any, recv_req: Any) -> str | None:
    """SGLang's check of a beam request, which begins the search of a constrained one: an error, or None."""
    params = req.sampling_params
    try:
        items = items_of(coordinator, req)
        text = grammar_of(_BACKEND and _BACKEND(), req) if items is None and _BACKEND is not None else None
        if items is None and text is None:
            return check(coordinator, req, recv_req)
        _check_hooks()
    except (ValueError, OSError) as error:  # palmette.Error is a ValueError
        return str(error)
    req.sampling_params = copy.copy(params)
    if items is not None:
        # An item has as many tokens as the catalog has levels, whatever the request says.
        req.sampling_params.max_new_tokens = items.tables.num_levels
    else:
        for member in KINDS:
            setattr(req.sampling_params, member, None)
    refusal = check(coordinator, req, recv_req)
    if refusal is not None:
        return refusal
    if text is not None:
        req.beam_group = TextGroup(req.beam_group, *text)
        return None
    assert items is not None
    room, needed = req.beam_group.max_new_tokens, items.tables.num_levels
    if room < needed:
        coordinator.retire_group(req)
        req.beam_group = None
        return f"An item has {needed} tokens, and the model's context has room for {room}: shorten the prompt."
    req.beam_group = ItemGroup(req.beam_group, items)
    return None


def rows_topk_logprobs(
    take: Callable[..., Any], pieces: Sequence[torch.Tensor], num_candidates: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """SGLang's look for each row's best candidates; of a constrained search the rows themselves."""
    if isinstance(num_candidates, WholeRows):
        rows = [piece for piece in pieces if piece.shape[0]]
        return rows[0] if len(rows) == 1 else torch.cat(rows), None
    found: tuple[torch.Tensor, torch.Tensor | None] = take(pieces, num_candidates)
    return found


def select_group(
    choose: Callable[..., Any],
    coordinator: Any,
    group: BeamGroup,
    top_logprobs: torch.Tensor,
    top_tokens: torch.Tensor | None,
    tick: int,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """SGLang's choice of the next beams."""
    if isinstance(group, ConstrainedGroup):
        return group.choose(top_logprobs, tick)
    chosen: tuple[torch.Tensor, torch.Tensor | None] = choose(coordinator, group, top_logprobs, top_tokens, tick)
    return chosen


def request_beam_width(width: Callable[[Any], int], recv_req: Any) -> int:
    """Beams of a request: one that names items goes to the check of beam searches, which refuses it where it wants no beams."""
    found = width(recv_req)
    return max(found, 2) if ARGUMENT in (recv_req.sampling_params.custom_params or {}) else found


HOOKS: dict[str, Callable[..., Any]] = {
    f"{_COORDINATOR}._rows_topk_logprobs": rows_topk_logprobs,
    f"{_COORDINATOR}.BeamCoordinator._select_group": select_group,
    f"{_COORDINATOR}.BeamCoordinator.request_beam_width": request_beam_width,
    f"{_COORDINATOR}.BeamCoordinator.validate_and_init": validate_and_init,
}
"""What is around each of SGLang's functions."""


def register() -> None:
    """Registers the hooks, which SGLang applies once all plug-ins are loaded."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in HOOKS.items():
        if not any(known is hook for _, known, _ in HookRegistry._hooks[target]):
            HookRegistry.register(target, hook, HookType.AROUND)


def serve(backend: Any) -> None:
    """Lets beams have grammars of a backend, in the process that has the scheduler."""
    global _BACKEND
    from sglang.srt.plugins.hook_registry import HookRegistry

    register()
    HookRegistry.apply_hooks()
    _BACKEND = weakref.ref(backend)


def _check_hooks() -> None:
    """SGLang logs a hook that it cannot apply and goes on; a search must not go on without one."""
    from sglang.srt.beam_search import coordinator

    for changed in (coordinator._rows_topk_logprobs, coordinator.BeamCoordinator._select_group):
        if not hasattr(changed, "__wrapped__"):
            raise ValueError(
                f"this SGLang has another {changed.__name__} than Palmette was tested with (0.5.23): beams cannot be constrained"
            )
