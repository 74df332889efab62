"""Structured output backend of vLLM, and its registration.

`PalmetteBackend` is one an engine, `PalmetteGrammar` one a request. vLLM compiles on a thread pool and fills masks on
its own threads; both leave the interpreter free here. A request carries its own end tokens, which go with the matcher,
not with the vocabulary.
"""

from __future__ import annotations

import importlib
import logging
import weakref
from collections.abc import Callable, Sized
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
from palmette import _request_compiler, _requests
from palmette.vllm import ENVIRONMENT

if TYPE_CHECKING:
    import torch
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import Request
    from vllm.v1.structured_output import StructuredOutputManager

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RequestTokens:
    """Tokens that a request may write, reasoning in front of its text included.

    `most` of them, of which `output` are written. Of the engine's bitmask a request owns `rows` in a row: that of the next token,
    and one behind each of its drafts.
    """

    most: int
    output: Sized
    rows: int

    def left(self, row: int = 0) -> int:
        """Tokens that are left at a row of the bitmask: those of the drafts before it are written by then."""
        return max(self.most - len(self.output) - row % self.rows, 0)


@dataclass(frozen=True)
class FilledRows:
    """Rows of the engine's bitmask that are filled: the mask at a position of the text, and behind each of so many drafts."""

    first: int
    position: int
    num_drafts: int

    def has(self, row: int, position: int) -> bool:
        """Whether a row is that of a position."""
        return row - self.first == position - self.position <= self.num_drafts and row >= self.first


class PalmetteGrammar(StructuredOutputGrammar):
    """Position of one request in its grammar.

    Every token that `accept_tokens` said yes to counts one for `rollback`: those of the text, the end token, and tokens
    behind the end, which have no effect.
    """

    def __init__(self, matcher: palmette.Matcher, ends: tuple[int, ...]) -> None:
        self._matcher = matcher
        self._ends = ends
        self._past_end = 0
        self._tokens: RequestTokens | None = None
        self._filled: FilledRows | None = None

    def filling(self, drafts: list[int], row: int) -> tuple[palmette.Matcher, list[int], int, int | None]:
        """What `palmette.fill_masks_with_drafts` takes for the rows from one on: matcher, drafts, row, tokens that are left there."""
        left = None
        if self._tokens is not None:
            left = self._tokens.left()
            left = None if _requests.near_end(self._matcher, left - len(drafts)) is None else left
        return self._matcher, drafts, row, left

    def rows_are_filled(self, rows: FilledRows | None) -> None:
        """Says which rows need not be filled again until this is said anew."""
        self._filled = rows

    @property
    def position(self) -> int:
        """Tokens that can be taken back, without those behind the end."""
        return self._matcher.position

    def end_within(self, tokens: RequestTokens) -> None:
        """From here on the text is whole within the request's tokens, unless no way to its end is known.

        Raises TooFewTokens where it takes more of them.
        """
        needed, left = self._matcher.fewest_tokens(), tokens.left()
        if needed is None:
            return
        if needed > left:
            by = "max_tokens, within the model's length"
            raise _requests.too_few_tokens(needed, left, by, f"vllm_xargs with '{_requests.FINISH_ARGUMENT}': 'cut'")
        self._tokens = tokens

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
            return tokens[: self._in_time(tokens[: self._matcher.accepted_prefix(tokens[:drafted])])]
        except palmette.LimitExceeded as error:
            logger.error("drafts are not looked at: %s", error)
            return []

    def _in_time(self, tokens: list[int]) -> int:
        """Number of drafts, which the grammar allows, after which the text can still be whole in time."""
        if self._tokens is None:
            return len(tokens)
        ahead, left = self._matcher.fork(), self._tokens.left()
        for number, token in enumerate(tokens):
            ahead.commit(token)
            needed = ahead.fewest_tokens()
            if needed is None or needed > left - number - 1:
                return number
        return len(tokens)

    def rollback(self, num_tokens: int) -> None:
        past_end = min(num_tokens, self._past_end)
        self._past_end -= past_end
        self._matcher.rollback(num_tokens - past_end)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        if self._filled is not None and self._filled.has(batch_index, self._matcher.position):
            return
        try:
            self._fill(bitmask, batch_index)
        except palmette.LimitExceeded as error:
            # An exception here would stop the engine with all its requests: end this one instead.
            logger.error("a mask exceeded its limits, and its request must end: %s", error)
            _allow_only(bitmask, batch_index, self._ends)

    def _fill(self, bitmask: torch.Tensor, row: int) -> None:
        if self._tokens is not None:
            left = _requests.near_end(self._matcher, self._tokens.left(row))
            try:
                self._matcher.fill_mask(bitmask, row, tokens_left=left)
                return
            except palmette.TooFewTokens:
                _requests.log_once(logger, _requests.TOO_LATE)
        self._matcher.fill_mask(bitmask, row)

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
        self._compiler = _compiler(self.tokenizer, self.vocab_size)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> PalmetteGrammar:
        grammar = _grammar(request_type, grammar_spec, compact=self._compact, closed=self._closed)
        # A request has the registered catalogs as they are when it begins.
        compiled = palmette.catalogs.bound(self._compiler.compile(grammar))
        _requests.log_notes(logger, compiled.notes)
        ends = tuple(sorted(stop_token_ids)) if stop_token_ids else tuple(self._compiler.vocabulary.ends)
        if not ends:
            raise ValueError(_requests.NO_ENDS)
        return PalmetteGrammar(compiled.matcher(ends=ends), ends)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return palmette.allocate_bitmask(max_num_seqs, self.vocab_size, like="torch")

    def destroy(self) -> None:
        pass


# vLLM makes a backend anew for every offline beam search; the vocabulary takes a second and the compiler keeps grammars.
_COMPILERS: weakref.WeakKeyDictionary[Any, dict[int, _request_compiler.RequestCompiler]] = weakref.WeakKeyDictionary()


def _compiler(tokenizer: Any, num_tokens: int) -> _request_compiler.RequestCompiler:
    if not PalmetteBackend.is_tokenizer_supported(tokenizer):
        raise ValueError(
            f"{type(tokenizer).__name__} is not a fast Hugging Face tokenizer, whose tokens could be read: "
            "use a model that has a tokenizer.json, or unset " + ENVIRONMENT
        )
    by_size = _COMPILERS.setdefault(tokenizer, {})
    if num_tokens not in by_size:
        vocabulary = palmette.Vocabulary.from_tokenizer(tokenizer, num_tokens=num_tokens)
        by_size[num_tokens] = _request_compiler.RequestCompiler(vocabulary)
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
    try:
        _requests.is_promised(sampling_params.extra_args)
    except ValueError as error:
        raise VLLMValidationError(str(error)) from error
    kind, text = get_structured_output_key(sampling_params.structured_outputs)
    try:
        grammar = _grammar(kind, text, compact=False, closed=False)
        _request_compiler.checked(grammar, _request_compiler.compile_limits())
    except ValueError as error:
        raise VLLMValidationError(str(error)) from error


def promising(
    create: Callable[[StructuredOutputManager, Request], StructuredOutputGrammar],
) -> Callable[[StructuredOutputManager, Request], StructuredOutputGrammar]:
    """Step of vLLM's manager that makes a request's grammar, and tells it the request's tokens: a backend sees its text alone."""

    def create_grammar(manager: StructuredOutputManager, request: Request) -> StructuredOutputGrammar:
        grammar = create(manager, request)
        if isinstance(grammar, PalmetteGrammar):
            tokens = _tokens_of(manager, request)
            if tokens is not None:
                grammar.end_within(tokens)
        return grammar

    return create_grammar


def _tokens_of(manager: StructuredOutputManager, request: Request) -> RequestTokens | None:
    """The tokens of a request; None where its text may break off."""
    params, config = request.sampling_params, manager.vllm_config
    # Diffusion writes no token behind another, and a session goes on after its tokens.
    if params is None or not _requests.is_promised(params.extra_args) or config.model_config.is_diffusion or request.resumable:
        return None
    most = min(request.max_tokens, config.model_config.max_model_len - request.num_prompt_tokens)
    return RequestTokens(most, request.output_token_ids, config.num_speculative_tokens + 1)


def filling(fill: Callable[..., Any]) -> Callable[..., Any]:
    """Step of vLLM's manager that fills a batch's bitmask, after all its rows were filled in one call.

    vLLM asks a grammar for one row at a time, accepts a draft, asks for the next, and takes the drafts back. It still does, since
    that says which rows are constrained at all; but each row is there by then, of several threads and without a walk a row.
    """

    def grammar_bitmask(
        manager: StructuredOutputManager,
        requests: dict[str, Request],
        structured_output_request_ids: list[str],
        scheduled_spec_decode_tokens: dict[str, list[int]],
    ) -> Any:
        filled = _filled(manager, requests, structured_output_request_ids, scheduled_spec_decode_tokens)
        try:
            return fill(manager, requests, structured_output_request_ids, scheduled_spec_decode_tokens)
        finally:
            for grammar in filled:
                grammar.rows_are_filled(None)

    return grammar_bitmask


def _filled(
    manager: StructuredOutputManager, requests: dict[str, Request], ids: list[str], drafts_of: dict[str, list[int]]
) -> list[PalmetteGrammar]:
    """Fills what can be filled in one call, and gives the grammars whose rows are there."""
    # It is made by the first step, which fills row by row; diffusion has no row behind its drafts.
    bitmask, bounds = manager._grammar_bitmask, getattr(manager, "_get_constraint_bounds", None)
    if bitmask is None or bounds is None or manager.vllm_config.model_config.is_diffusion:
        return []
    found, stride = [], manager.vllm_config.num_speculative_tokens + 1
    for place, name in enumerate(ids):
        request = requests[name]
        drafts = list(drafts_of.get(name, ()))
        grammar = request.structured_output_request and request.structured_output_request.grammar
        # Requests that still reason are left to the walk.
        if isinstance(grammar, PalmetteGrammar) and not grammar.is_terminated() and bounds(request, ()).grammar_start == 0:
            # Behind a pad nothing is looked at.
            chain = drafts[: drafts.index(-1)] if -1 in drafts else drafts
            found.append((grammar, grammar.filling(chain[: stride - 1], place * stride)))
    if not found or len(ids) * stride > len(bitmask):
        return []
    matchers, chains, rows, left = zip(*(each for _, each in found), strict=True)
    try:
        palmette.fill_masks_with_drafts(matchers, chains, bitmask, rows=rows, tokens_left=left)
    except ValueError:  # palmette.Error is one: of some row, which the rows one by one will tell
        return []
    for grammar, (_, chain, first, _) in found:
        grammar.rows_are_filled(FilledRows(first, grammar.position, len(chain)))
    return [grammar for grammar, _ in found]


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
        places: list[tuple[Any, str, Any]] = [
            (package, owner, PalmetteBackend),
            (module, owner, PalmetteBackend),
            (module, check, validate_grammar),
        ]
        manager = package.StructuredOutputManager
        for step, around in (("_create_grammar", promising), ("grammar_bitmask", filling)):
            theirs = getattr(manager, step, None)
            if theirs is None or theirs.__module__ != __name__:
                places.append((manager, step, theirs and around(theirs)))
        for holder, attribute, ours in places:
            if not hasattr(holder, attribute):
                raise RuntimeError(
                    f"this vLLM has no {holder.__name__}.{attribute}, which Palmette would replace: "
                    f"unset {ENVIRONMENT}, or install a vLLM that this version was tested with (0.33)"
                )
            setattr(holder, attribute, ours)
        logger.info("Palmette takes the place of vLLM's backend %s", name)
