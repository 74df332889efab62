"""SGLang's coordinator of beam searches in a loop without its scheduler and kernels, over a model as a function of histories.

Keys and values are stood for by their tokens: a slot of the pool has the token that was written into it, and a row's history is read
through `req_to_token`, as attention reads it. So a beam that is moved wrongly sees another history.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang.srt.beam_search.batch_tail import BeamTailEntry
from sglang.srt.beam_search.beam_group import BeamGroupState, BeamResult
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang_sources import coordinator

coordinators = coordinator()

# Logits [rows, V] after histories int64 [rows, n].
Model = Callable[[torch.Tensor], torch.Tensor]

ROWS, LENGTH = 2048, 64


class Pool:
    """Rows of the running requests, and the slots of their tokens."""

    def __init__(self) -> None:
        self.size, self.device = ROWS, "cpu"
        self.req_to_token = torch.zeros((ROWS, LENGTH), dtype=torch.int64)
        self.free = list(range(ROWS))
        self.token_of_slot: dict[int, int] = {}
        self.next_slot = 1

    def alloc_rows(self, count: int) -> list[int]:
        return [self.free.pop() for _ in range(count)]

    def free_rows(self, rows: list[int]) -> None:
        self.free += rows

    def available_size(self) -> int:
        return len(self.free)

    def write(self, row: int, position: int, token: int) -> None:
        self.token_of_slot[self.next_slot] = token
        self.req_to_token[row, position] = self.next_slot
        self.next_slot += 1

    def histories(self, rows: list[int], length: int) -> torch.Tensor:
        slots = self.req_to_token[rows, :length].tolist()
        return torch.tensor([[self.token_of_slot[slot] for slot in row] for row in slots])


class Allocator:
    """Gives slots back; one that was given back twice is an error."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def free(self, slots: torch.Tensor) -> None:
        for slot in slots.tolist():
            del self.pool.token_of_slot[slot]


class FutureMap:
    """Tokens that the next forward pass reads, by row."""

    def __init__(self) -> None:
        self.tokens: dict[int, int] = {}

    def stash(self, rows: torch.Tensor, payload: Any) -> None:
        self.tokens |= dict(zip(rows.tolist(), payload.bonus_tokens.tolist(), strict=True))


class Loop:
    """A coordinator of SGLang's, and its requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, model: Model, num_tokens: int, num_ranks: int = 1) -> None:
        for name, bag in {
            "get_disagg": SimpleNamespace(disaggregation_mode="null"),
            "get_schedule": SimpleNamespace(page_size=1),
            "get_memory": SimpleNamespace(enable_hisparse=False, enable_hierarchical_cache=False),
            "get_parallel": SimpleNamespace(pp_size=1, tp_size=num_ranks),
            "is_dp_attention_enabled": False,
        }.items():
            monkeypatch.setattr(coordinators, name, lambda bag=bag: bag)
        monkeypatch.setattr("sglang.srt.runtime_context.get_parallel", lambda: SimpleNamespace(tp_size=num_ranks))
        self.model, self.pool, self.future = model, Pool(), FutureMap()
        self.coordinator = coordinators.BeamCoordinator(
            model_config=SimpleNamespace(vocab_size=num_tokens, is_encoder_decoder=False),
            spec_algorithm=SimpleNamespace(is_none=lambda: True),
            dllm_enabled=False,
            max_req_len=LENGTH,
            req_to_token_pool=self.pool,
            token_to_kv_pool_allocator=Allocator(self.pool),
            tree_cache=SimpleNamespace(supports_swa=lambda: False, supports_mamba=lambda: False),
            future_map=self.future,
        )

    def sent(self, prompt: list[int], tokenizer: Any = None, **params: Any) -> Any:
        """A request as the scheduler makes it, after the coordinator's check; `refusal` is what that said."""
        wanted = SamplingParams(**params)
        received = SimpleNamespace(
            sampling_params=wanted,
            session_params=None,
            return_logprob=False,
            return_hidden_states=False,
            return_sampling_mask=False,
            return_routed_experts=False,
        )
        request = SimpleNamespace(
            sampling_params=wanted,
            origin_input_ids=prompt,
            output_ids=[],
            session_id=None,
            lora_id=None,
            eos_token_ids=set(),
            tokenizer=tokenizer,
            beam_group=None,
            to_finish=None,
            finished_reason=None,
            kv=None,
        )
        request.width = self.coordinator.request_beam_width(received)
        request.refusal = self.coordinator.validate_and_init(request, received) if request.width > 1 else None
        return request

    def run(self, *requests: Any, lags: bool = False) -> list[list[BeamResult]]:
        """All requests side by side to their ends; the results of each.

        Where the host `lags`, as under SGLang's overlap, a step is chosen before the one before it is committed, so that there is
        a step more than needed.
        """
        for request in requests:
            self._prefill(request)
        tick, before = 1, None
        while alive := [one for one in requests if one.beam_group.state == BeamGroupState.DECODING]:
            batch = self._decode(alive, tick)
            for committed in [before] if lags else [batch]:
                if committed is not None:
                    self.coordinator.commit_decode(committed)
            tick, before = tick + 1, batch
        assert self.coordinator._num_live_groups == 0
        return [request.beam_group.final_results for request in requests]

    def _prefill(self, request: Any) -> None:
        (row,) = self.pool.alloc_rows(1)
        prompt = request.origin_input_ids
        for position, token in enumerate(prompt):
            self.pool.write(row, position, token)
        request.kv = SimpleNamespace(req_pool_idx=row, kv_allocated_len=len(prompt), kv_committed_len=len(prompt))
        logits = self.model(torch.tensor([prompt]))
        self.coordinator.select_leader_prefill(request, 0, SimpleNamespace(beam=SimpleNamespace(leader_logits=logits)))
        self.coordinator.commit_prefill(request)

    def _decode(self, requests: list[Any], tick: int) -> Any:
        entries, leaders, tails, start = [], [], [], 0
        for place, request in enumerate(requests):
            group, kv = request.beam_group, request.kv
            rows = group.all_rows.tolist()
            for row in rows:
                self.pool.write(row, kv.kv_allocated_len, self.future.tokens[row])
            kv.kv_allocated_len += 1
            kv.kv_committed_len += 1
            logits = self.model(self.pool.histories(rows, kv.kv_committed_len))
            entries.append(BeamTailEntry(group, place, start, start + len(rows) - 1))
            start += len(rows) - 1
            leaders.append(logits[:1])
            tails.append(logits[1:])
        batch = SimpleNamespace(beam_tail=SimpleNamespace(entries=entries), forward_iter=tick, reqs=requests)
        capture = SimpleNamespace(leader_logits=torch.cat(leaders), tail_logits=torch.cat(tails))
        self.coordinator.select_and_relay_decode(batch, SimpleNamespace(beam=capture))
        return batch
