"""Structured output backend of vLLM, and its registration.

`PalmetteBackend` is one an engine, `PalmetteGrammar` one a request. vLLM compiles on a thread pool and fills masks on
its own threads; both leave the interpreter free here. A request carries its own end tokens, which go with the matcher,
not with the vocabulary.
"""

from __future__ import annotations

import importlib
import logging
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm.exceptions import VLLMValidationError
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

import palmette
import palmette.catalogs
from palmette import _requests
from palmette.vllm import ENVIRONMENT

if TYPE_CHECKING:
    import torch
    from vllm.sampling_params import SamplingParams

logger = logging.getLogger(__name__)


class PalmetteGrammar(StructuredOutputGrammar):
    """Position of one request in its grammar.

    Every token that `accept_tokens` said yes to counts one for `rollback`: those of the text, the end token, and tokens
    behind the end, which have no effect.
    """

    def __init__(self, matcher: palmette.Matcher, ends: tuple[int, ...]) -> None:
        self._matcher = matcher
        self._ends = ends
        self._past_end = 0

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        for token in tokens:
            if self._matcher.is_ended:
                self._past_end += 1
                continue
            try:
                self._matcher.commit(token)
            except palmette.Error as error:  # not allowed, or a limit: either way this request fails, and no other
                logger.error("request %s: %s", request_id, error)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        # Speculation pads with -1, and nothing behind a pad counts.
        drafted = next((i for i, token in enumerate(tokens) if token < 0), len(tokens))
        try:
            return tokens[: self._matcher.accepted_prefix(tokens[:drafted])]
        except palmette.LimitExceeded as error:
            logger.error("drafts are not looked at: %s", error)
            return []

    def rollback(self, num_tokens: int) -> None:
        past_end = min(num_tokens, self._past_end)
        self._past_end -= past_end
        self._matcher.rollback(num_tokens - past_end)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        try:
            self._matcher.fill_mask(bitmask, batch_index)
        except palmette.LimitExceeded as error:
            # An exception here would stop the engine with all its requests: end this one instead.
            logger.error("a mask exceeded its limits, and its request must end: %s", error)
            _allow_only(bitmask, batch_index, self._ends)

    def is_terminated(self) -> bool:
        return self._matcher.is_ended

    def reset(self) -> None:
        self._matcher.reset()
        self._past_end = 0


def _allow_only(bitmask: torch.Tensor, row: int, tokens: tuple[int, ...]) -> None:
    words = bitmask[row].numpy().view("uint32")
    words[:] = 0
    for token in tokens:
        words[token >> 5] |= 1 << (token & 31)


@dataclass
class PalmetteBackend(StructuredOutputBackend):
    """Compiler of one engine's grammars, with their cache."""

    @staticmethod
    def is_tokenizer_supported(tokenizer: Any) -> bool:
        """Fast Hugging Face tokenizers are."""
        return hasattr(tokenizer, "backend_tokenizer")

    def __post_init__(self) -> None:
        config = self.vllm_config.structured_outputs_config
        self._compact = bool(getattr(config, "disable_any_whitespace", False))
        self._closed = bool(getattr(config, "disable_additional_properties", False))
        self._vocabulary = _vocabulary(self.tokenizer, self.vocab_size)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> PalmetteGrammar:
        grammar = _grammar(request_type, grammar_spec, compact=self._compact, closed=self._closed)
        # A request has the registered catalogs as they are when it begins.
        compiled = palmette.catalogs.bound(grammar.compile(self._vocabulary))
        _requests.log_notes(logger, compiled.notes)
        ends = tuple(sorted(stop_token_ids)) if stop_token_ids else tuple(self._vocabulary.ends)
        if not ends:
            raise ValueError(_requests.NO_ENDS)
        return PalmetteGrammar(compiled.matcher(ends=ends), ends)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return palmette.allocate_bitmask(max_num_seqs, self.vocab_size, like="torch")

    def destroy(self) -> None:
        pass


# vLLM makes a backend anew for every offline beam search; the vocabulary takes a second and holds the grammars' cache.
_VOCABULARIES: weakref.WeakKeyDictionary[Any, dict[int, palmette.Vocabulary]] = weakref.WeakKeyDictionary()


def _vocabulary(tokenizer: Any, num_tokens: int) -> palmette.Vocabulary:
    if not PalmetteBackend.is_tokenizer_supported(tokenizer):
        raise ValueError(
            f"{type(tokenizer).__name__} is not a fast Hugging Face tokenizer, whose tokens could be read: "
            "use a model that has a tokenizer.json, or unset " + ENVIRONMENT
        )
    by_size = _VOCABULARIES.setdefault(tokenizer, {})
    if num_tokens not in by_size:
        by_size[num_tokens] = palmette.Vocabulary.from_tokenizer(tokenizer, num_tokens=num_tokens)
    return by_size[num_tokens]


def _grammar(kind: StructuredOutputOptions, text: str, *, compact: bool, closed: bool) -> palmette.Grammar:
    match kind:
        case StructuredOutputOptions.JSON:
            schema: Any = text
            if closed:
                # vLLM's option is vLLM's function.
                from vllm.v1.structured_output.backend_guidance import process_for_additional_properties

                schema = process_for_additional_properties(text)
            return _requests.schema_grammar(schema, compact=compact)
        case StructuredOutputOptions.JSON_OBJECT:
            return _requests.schema_grammar(_requests.ANY_OBJECT, compact=compact)
        case StructuredOutputOptions.REGEX:
            return _requests.expression_grammar(text)
        case StructuredOutputOptions.GRAMMAR:
            return _requests.written_grammar(text)
        case StructuredOutputOptions.CHOICE:
            return _requests.choice_grammar(text)
        case StructuredOutputOptions.STRUCTURAL_TAG:
            return _requests.tag_grammar(text)
    raise ValueError(f"structured outputs of type {kind} are not known to this version of Palmette")


def validate_grammar(sampling_params: SamplingParams, tokenizer: Any = None) -> None:
    """Check in front of the engine: reads the request's grammar.

    Raises VLLMValidationError, which a client sees as status 400.
    """
    from vllm.v1.structured_output.request import get_structured_output_key

    if sampling_params.structured_outputs is None:
        return
    kind, text = get_structured_output_key(sampling_params.structured_outputs)
    try:
        _grammar(kind, text, compact=False, closed=False).check()
    except ValueError as error:
        raise VLLMValidationError(str(error)) from error


# The class and the check of each backend of vLLM's.
_NAMES = {
    "guidance": ("GuidanceBackend", "validate_guidance_grammar"),
    "xgrammar": ("XgrammarBackend", "validate_xgrammar_grammar"),
}


def replace(names: list[str]) -> None:
    """Puts Palmette in the place of backends of vLLM's.

    Raises ValueError for a name that is not known, RuntimeError if this vLLM has another form.
    """
    package = importlib.import_module("vllm.v1.structured_output")
    for name in names:
        if name not in _NAMES:
            raise ValueError(
                f"{ENVIRONMENT}={name}: Palmette takes the place of the backends 'guidance' and 'xgrammar'; "
                "name one of them, or both with a comma"
            )
        module = importlib.import_module(f"vllm.v1.structured_output.backend_{name}")
        owner, check = _NAMES[name]
        # The engine's manager holds the class by its name in the package; offline beam search and the check in front of
        # the engine import theirs from the backend's own module when they run.
        places = ((package, owner, PalmetteBackend), (module, owner, PalmetteBackend), (module, check, validate_grammar))
        for holder, attribute, ours in places:
            if not hasattr(holder, attribute):
                raise RuntimeError(
                    f"this vLLM has no {holder.__name__}.{attribute}, which Palmette would replace: "
                    f"unset {ENVIRONMENT}, or install a vLLM that this version was tested with (0.33)"
                )
            setattr(holder, attribute, ours)
        logger.info("Palmette takes the place of vLLM's backend %s", name)
