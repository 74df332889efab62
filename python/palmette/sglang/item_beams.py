"""Beam search over the items of a catalog, by its tables on the device.

An item has as many tokens as the catalog has levels. A step is `palmette.torch_tables.advance`: nothing is copied to the host for it.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.beam_search.beam_group import BeamGroup
from sglang.srt.beam_search.joint_select import FinalSelect, SelectResult

from palmette._catalog_requests import ARGUMENT, DeviceItems, catalogs, read_argument
from palmette.sglang.groups import ConstrainedGroup
from palmette.torch_tables import advance


class ItemGroup(ConstrainedGroup):
    """A search whose beams are beginnings of items."""

    def __init__(self, plain: BeamGroup, items: DeviceItems) -> None:
        super().__init__(plain, [], items.tables.num_levels)
        self.items = items
        self.nodes = items.tables.start(1)
        self.codes = torch.zeros((1, 1, 0), dtype=torch.int64, device=self.nodes.device)

    def select(self, logits: torch.Tensor, tick: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        is_final = self.next_step_is_final()
        parents, tokens, self.nodes, scores, self.codes = advance(
            self.items.tables,
            self.num_generated,
            logits,
            self.nodes,
            self.frontier_cum_logprobs.unsqueeze(0),
            self.codes,
            self.beam_width,
            self.items.masks,
        )
        parent, token, score = parents[0], tokens[0], scores[0]
        if is_final:
            self.advance_final_frontier(FinalSelect(tokens=token, parent_idx=parent, cum_logprobs=score), tick)
            return token, None
        none = token[:0]
        chosen = SelectResult(
            next_tokens=token,
            parent_idx=parent,
            new_cum_logprobs=score,
            num_survivors=self.beam_width,
            fin_tokens=none,
            fin_parent_idx=none,
            fin_cum_logprobs=score[:0],
            num_finished=0,
        )
        self.advance_frontier(chosen, tick)
        return token, parent


def items_of(coordinator: Any, req: Any) -> DeviceItems | None:
    """The items that a request asks for; None for one that names none.

    Raises ValueError for a request that is wrong, OSError for a catalog that cannot be opened.
    """
    params = req.sampling_params
    wish = read_argument((params.custom_params or {}).get(ARGUMENT))
    if wish is None:
        return None
    if (params.beam_width or 1) < 2:
        raise ValueError(f"{ARGUMENT!r} names items, which beam search finds: give beam_width, 2 or more")
    entry = catalogs().entry(wish.catalog)
    if entry.is_live and _num_ranks() > 1:
        raise ValueError(
            f"the catalog {wish.catalog!r} is live, and the ranks of a server that is split over devices would see its changes at "
            "different times: serve it from one device, or a file of it"
        )

    def tokenizer() -> Any:
        if req.tokenizer is None:
            raise ValueError("the server has no tokenizer to find the codes' tokens in: give code_tokens as numbers")
        return req.tokenizer

    items = entry.on_device(wish.filter, tokenizer, coordinator.req_to_token_pool.device)
    if items.num_tokens > coordinator.model_config.vocab_size:
        raise ValueError(
            f"the catalog {wish.catalog!r} has codes up to token {items.num_tokens - 1}, and the model "
            f"{coordinator.model_config.vocab_size} tokens: look at code_tokens"
        )
    most = params.max_new_tokens
    if most is not None and most < items.tables.num_levels:
        raise ValueError(f"max_new_tokens={most} cuts items of {items.tables.num_levels} tokens: leave it out, or raise it")
    return items


def _num_ranks() -> int:
    from sglang.srt.runtime_context import get_parallel

    return int(get_parallel().tp_size)
