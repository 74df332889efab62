"""Logits processor of vLLM that lets a model name items of a catalog, and no others.

Start the server with the processor and a file that says which catalogs there are:

    PALMETTE_CATALOGS=catalogs.json vllm serve MODEL --logits-processors palmette.vllm:CatalogLogitsProcessor

    {"shop": {"path": "shop.palm", "code_tokens": ["<a_{}>", "<b_{}>", "<c_{}>", "<d_{}>"]}}

`code_tokens` says how the model spells codes: a list with an entry a level, which is the name of a code's token with `{}` for
the code, or `[first, num]` for `num` tokens in a row, or the list of the codes' tokens. `"live"` in place of `"path"` is the directory of a
live catalog: each request sees the newest generation of its beginning. An entry without `code_tokens` is for grammars alone
(`palmette.catalogs`).

A request asks by `extra_args`, which are `vllm_xargs` over HTTP and hold a text there:

    {"vllm_xargs": {"palmette": "{\\"catalog\\": \\"shop\\", \\"filter\\": {\\"must\\": {\\"match\\": {\\"brand\\": \\"Fernhollow\\"}}}}"}}

| key | means |
|---|---|
| `catalog` | name of the catalog; may be left out where there is one |
| `filter` | condition that items have to meet |
| `exclude` | ids of items that are not wanted |
| `start` | position of the first code in the sequence, prompt included; default: the end of the prompt |

After the last code the request's end tokens are allowed. Set `max_tokens` to the number of levels, or to one more.

The class serves both of vLLM's runners. The first one's requests come and go by batch updates, with their tokens on the host.
The second one keeps slots and has the tokens on the device: one row of codes a request, a few bytes, is copied to the host
each step, and the allowed tokens back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality
from vllm.v1.sample.logits_processor import LogitsProcessor as FirstRunnerProcessor

import palmette
from palmette._catalog_requests import ARGUMENT, Wish, catalogs, read_argument

try:
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as SecondRunnerProcessor
except ImportError:  # vLLM before 0.33 has the first runner only

    class SecondRunnerProcessor:  # type: ignore[no-redef]
        pass


if TYPE_CHECKING:
    from vllm.sampling_params import SamplingParams
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext


@dataclass
class Request:
    """A request in the batch: what it may name, and where its codes begin."""

    constraint: palmette.CatalogConstraint
    ends: np.ndarray
    start: int | None
    prompt: list[int] | None = None
    output: list[int] | None = None

    def written(self) -> list[int]:
        """Codes' tokens so far, where the host has the sequence."""
        prompt, output = self.prompt or [], self.output or []
        start = len(prompt) if self.start is None else self.start
        return prompt[start:] + output[max(0, start - len(prompt)) :]


class CatalogLogitsProcessor(FirstRunnerProcessor, SecondRunnerProcessor):
    """Restricts requests that ask for it to the items of a catalog.

    Logits of tokens that do not continue an item become minus infinity; other rows and other requests stay as they are.
    """

    @classmethod
    def validate_params(cls, params: SamplingParams) -> None:
        """Check in front of the engine, against the catalogs themselves.

        Raises ValueError, which a client sees as status 400.
        """
        wish = read_wish(params)
        if wish is not None and wish.filter is not None:
            catalogs().entry(wish.catalog).items(wish.filter)

    def __init__(self, vllm_config: Any, *runner: Any) -> None:
        # The first runner hands the device and whether memory is pinned over, the second its requests' state.
        (self._state,) = runner if len(runner) == 1 else (None,)
        self._vllm_config = vllm_config
        self._requests: dict[int, Request] = {}

    def _tokenizer(self) -> Any:
        from vllm.tokenizers import cached_tokenizer_from_config

        return cached_tokenizer_from_config(self._vllm_config.model_config)

    def _request(self, params: SamplingParams) -> Request | None:
        wish = read_wish(params)
        if wish is None:
            return None
        constraint = catalogs().entry(wish.catalog).constraint(wish.filter, self._tokenizer)
        ends = np.array(sorted(params.all_stop_token_ids), np.int32)
        return Request(constraint, ends, wish.start)

    def is_argmax_invariant(self) -> bool:
        return False

    # First runner.

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._requests.pop(row, None)
        for row, params, prompt, output in batch_update.added:
            self._requests.pop(row, None)
            request = self._request(params)
            if request is not None:
                request.prompt, request.output = prompt, output
                self._requests[row] = request
        for one, other, direction in batch_update.moved:
            moved, replaced = self._requests.pop(one, None), self._requests.pop(other, None)
            if moved is not None:
                self._requests[other] = moved
            if replaced is not None and direction == MoveDirectionality.SWAP:
                self._requests[one] = replaced

    # Second runner.

    def add_request(self, req_idx: int, sampling_params: SamplingParams) -> bool:
        self._requests.pop(req_idx, None)
        request = self._request(sampling_params)
        if request is None:
            return False
        self._requests[req_idx] = request
        return True

    def apply(self, logits: torch.Tensor, ctx: LogitsContext | None = None) -> torch.Tensor:
        if ctx is None:
            rows = [(row, request, request.written()) for row, request in self._requests.items()]
        else:
            rows = self._rows_on_device(ctx)
        _mask(logits, rows)
        return logits

    def _rows_on_device(self, ctx: LogitsContext) -> list[tuple[int, Request, list[int]]]:
        """Rows of our requests with the tokens written so far, copied from the device at once."""
        slots = ctx.idx_mapping_np
        if not any(int(slot) in self._requests for slot in slots):
            return []
        num_rows = len(ctx.expanded_idx_mapping)
        if num_rows == len(slots):  # a row a request: which ones are ours is known without asking the device
            ours = np.array([row for row, slot in enumerate(slots) if int(slot) in self._requests])
        else:
            ours = np.arange(num_rows)
        levels = max(request.constraint.num_levels for request in self._requests.values())
        device = ctx.expanded_idx_mapping.device
        row = torch.from_numpy(ours).to(device, non_blocking=True)
        slot = ctx.expanded_idx_mapping[row].long()
        start = self._starts().to(device)[slot]
        pos = ctx.pos[row].long()
        position = start[:, None] + torch.arange(levels, device=device)
        # Behind the committed tokens come this step's drafts, which are the inputs of the rows before this one.
        back = pos[:, None] - position
        drafted = (back >= 0) & (back <= ctx.expanded_local_pos[row].long()[:, None])
        history = self._state.all_token_ids.gpu
        committed = history[slot[:, None], position.clamp(0, history.shape[1] - 1)].long()
        drafts = ctx.input_ids[(row[:, None] - back).clamp(0, num_rows - 1)].long()
        tokens = torch.where(drafted, drafts, committed)
        host = torch.cat([slot[:, None], (pos + 1 - start)[:, None], tokens], dim=1).cpu().numpy()
        found = []
        for index, (slot_, written, *codes) in zip(ours.tolist(), host.tolist()):
            request = self._requests.get(slot_)
            if request is not None and written >= 0:  # below zero: the prompt is still being read
                # Only whether there are more than the levels matters, not which.
                beyond = [-1] if written > levels else []
                found.append((index, request, codes[:written] + beyond))
        return found

    def _starts(self) -> torch.Tensor:
        starts = torch.from_numpy(self._state.prompt_len.np.astype(np.int64))
        for slot, request in self._requests.items():
            if request.start is not None:
                starts[slot] = request.start
        return starts


def _mask(logits: torch.Tensor, rows: list[tuple[int, Request, list[int]]]) -> None:
    """Leaves of each row the tokens that its request may write next."""
    masked: list[int] = []
    row_of: list[np.ndarray] = []
    tokens: list[np.ndarray] = []

    def keep(row: int, allowed: np.ndarray) -> None:
        masked.append(row)
        row_of.append(np.full(len(allowed), row, np.int64))
        tokens.append(np.asarray(allowed, np.int64))

    # Rows of one set and one length are asked for in one call.
    groups: dict[tuple[int, int], list[tuple[int, Request, list[int]]]] = {}
    for entry in rows:
        row, request, written = entry
        if len(written) < request.constraint.num_levels:
            groups.setdefault((id(request.constraint), len(written)), []).append(entry)
        elif len(request.ends):
            keep(row, request.ends)
    for group in groups.values():
        prefixes = np.array([written for _, _, written in group], np.int32).reshape(len(group), -1)
        _, allowed, offsets = group[0][1].constraint.successors(prefixes)
        for index, (row, _, _) in enumerate(group):
            keep(row, allowed[offsets[index] : offsets[index + 1]])
    if not masked:
        return
    at = torch.from_numpy(np.stack([np.concatenate(row_of), np.concatenate(tokens)])).to(logits.device)
    kept = logits[at[0], at[1]]
    logits[torch.tensor(masked, device=logits.device)] = -torch.inf
    logits[at[0], at[1]] = kept


def read_wish(params: SamplingParams) -> Wish | None:
    """Argument of a request, or None if it has none.

    Raises ValueError that says what is wrong with it.
    """
    return read_argument((params.extra_args or {}).get(ARGUMENT), ("start",))
