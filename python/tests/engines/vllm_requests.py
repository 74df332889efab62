"""vLLM's own manager of structured outputs and its requests, with Palmette in place of its backends."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
import vllm.v1.structured_output as structured_output
from unzipped import small_tokenizer
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

import palmette.vllm.backend as backend
from palmette.vllm import register

TOKENIZER = small_tokenizer({"a": 4, "b": 3})
NUM_TOKENS = len(TOKENIZER) + 5  # models pad
END, STOP, TOOL = TOKENIZER.convert_tokens_to_ids(["<|end|>", "<|stop|>", "<|tool|>"])


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


@pytest.fixture
def registered(monkeypatch):
    """vLLM with Palmette in place of both backends, and as it was afterwards."""
    places = [(StructuredOutputManager, "_create_grammar"), (StructuredOutputManager, "grammar_bitmask")]
    for name, owner, check in (
        ("guidance", "GuidanceBackend", "validate_guidance_grammar"),
        ("xgrammar", "XgrammarBackend", "validate_xgrammar_grammar"),
    ):
        module = importlib.import_module(f"vllm.v1.structured_output.backend_{name}")
        places += [(structured_output, owner), (module, owner), (module, check)]
    for holder, name in places:
        monkeypatch.setattr(holder, name, getattr(holder, name))
    monkeypatch.setenv(backend.ENVIRONMENT, "guidance,xgrammar")
    register()


def manager(
    monkeypatch, drafts: int = 0, max_model_len: int = 4096, is_diffusion: bool = False, **options: Any
) -> StructuredOutputManager:
    monkeypatch.setattr(structured_output, "cached_tokenizer_from_config", lambda model_config: TOKENIZER)
    settings = {
        "reasoning_parser_plugin": "",
        "reasoning_parser": "",
        "enable_in_reasoning": False,
        "disable_any_whitespace": False,
        "disable_additional_properties": False,
    }
    return StructuredOutputManager(
        SimpleNamespace(
            parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
            scheduler_config=SimpleNamespace(max_num_seqs=8),
            model_config=SimpleNamespace(
                skip_tokenizer_init=False,
                get_vocab_size=lambda: NUM_TOKENS,
                is_diffusion=is_diffusion,
                max_model_len=max_model_len,
            ),
            structured_outputs_config=SimpleNamespace(**settings | options),
            num_speculative_tokens=drafts,
            speculative_config=None,
        )
    )


def request(
    name: str,
    stop_token_ids: list[int] | None = None,
    max_tokens: int = 1000,
    extra_args: dict[str, Any] | None = None,
    resumable: bool = False,
    **wanted: Any,
) -> Request:
    params = SamplingParams(
        structured_outputs=StructuredOutputsParams(**wanted),
        stop_token_ids=stop_token_ids or [END],
        max_tokens=max_tokens,
        extra_args=extra_args,
    )
    params.structured_outputs._backend = "guidance"
    return Request(name, [1], params, None, resumable=resumable)


def started(manager_: StructuredOutputManager, *requests: Request) -> dict[str, Request]:
    for one in requests:
        manager_.grammar_init(one)
        one.structured_output_request._grammar.result(timeout=60)
        assert one.structured_output_request.is_grammar_ready
    return {one.request_id: one for one in requests}
