"""Catalogs and grammars in `transformers`: logits processors that are exact under beams, and a beam search of its own.

Two ways, which find the same items in the same order with the same scores:

- `CatalogLogitsProcessor` and `GrammarLogitsProcessor` constrain `model.generate(..., num_beams=…)` as it is.
  `exact_settings` gives the settings under which its scores are plain sums of log-probabilities, and `beam_result`
  removes the rows that are no results (`generate` fills up with placeholders when few items are valid).
- `beam_search` replaces the loop: `model.generate(ids, custom_generate=beam_search, constraint=c, beam_width=50)`. The
  prompt is computed once a request instead of once a beam, and nothing but valid items is returned.

Scores are sums of log-softmax over the whole vocabulary in float32, so that they do not depend on the item set.
Needs transformers 5 and torch; nothing else of the package imports them.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import LogitsProcessor

from palmette import Error, Follower, VocabularyError
from palmette._tables import check_choices
from palmette.torch import apply_bitmask_
from palmette.torch_tables import DeviceTables, select

__all__ = [
    "BeamResult",
    "CatalogLogitsProcessor",
    "GrammarLogitsProcessor",
    "TextResult",
    "beam_result",
    "beam_search",
    "code_tokens",
    "exact_settings",
    "text_results",
]

# Beams that `generate` starts with this score stand for nothing: a sum of log-probabilities is never so low.
PLACEHOLDER = -1e8

# Settings of a generation config that change scores or what is compared, with the values that leave them alone.
EXACT_VALUES: dict[str, tuple[Any, ...]] = {
    "do_sample": (False, None),
    "renormalize_logits": (False, None),
    "repetition_penalty": (1.0, None),
    "encoder_repetition_penalty": (1.0, None),
    "no_repeat_ngram_size": (0, None),
    "encoder_no_repeat_ngram_size": (0, None),
    "bad_words_ids": (None,),
    "sequence_bias": (None,),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "exponential_decay_length_penalty": (None,),
    "guidance_scale": (1, 1.0, None),
    "watermarking_config": (None,),
    "max_time": (None,),
    "stop_strings": (None,),
}

# Processors that only touch end tokens, which no item contains.
HARMLESS_PROCESSORS = ("MinLengthLogitsProcessor", "MinNewTokensLengthLogitsProcessor")
HARMLESS_CRITERIA = ("MaxLengthCriteria", "EosTokenCriteria")

# Decoders whose attention is a function of masks and position ids alone, so that beams may stand side by side in one row.
SHARED_PROMPT_MODELS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


def code_tokens(tokenizer: Any, patterns: int | Sequence[str], num_codes: int | Sequence[int] | None = None) -> list[npt.NDArray[np.int64]]:
    """Tokens of the codes of each level, found by their texts in a tokenizer's vocabulary.

    `patterns`: a text a level with `{}` in place of the code, such as `"<a_{}>"`; or a number of levels, for the texts
    `<a_0>`, `<b_0>`, `<c_0>`… Returns one int64 array a level, indexed by the code, -1 where the vocabulary lacks it.
    `num_codes` (one for all levels, or one a level) requires that many codes and the presence of each.

    Raises `VocabularyError` naming the text that is missing.
    """
    if isinstance(patterns, int):
        if not 1 <= patterns <= 26:
            raise ValueError(f"{patterns} levels have no letters a to z: give a pattern a level")
        patterns = [f"<{letter}_{{}}>" for letter in "abcdefghijklmnopqrstuvwxyz"[:patterns]]
    if isinstance(patterns, str):
        raise TypeError(f"patterns are a list with one text a level, not the text {patterns!r}")
    counts = [num_codes] * len(patterns) if num_codes is None or isinstance(num_codes, int) else list(num_codes)
    if len(counts) != len(patterns):
        raise ValueError(f"{len(counts)} numbers of codes for {len(patterns)} levels")
    vocabulary = tokenizer.get_vocab()
    return [_tokens_of_level(vocabulary, pattern, count) for pattern, count in zip(patterns, counts)]


def _tokens_of_level(vocabulary: dict[str, int], pattern: str, count: int | None) -> npt.NDArray[np.int64]:
    before, placeholder, after = pattern.partition("{}")
    if not placeholder or "{}" in after:
        raise ValueError(f"the pattern {pattern!r} has to contain one {{}}, which stands for the code")
    matcher = re.compile(re.escape(before) + r"(0|[1-9][0-9]{0,8})" + re.escape(after))
    found = {int(match[1]): token for text, token in vocabulary.items() if (match := matcher.fullmatch(text))}
    if not found:
        raise VocabularyError(f"the tokenizer has no token like {pattern!r}: add the codes with tokenizer.add_tokens, or give the pattern of its codes")
    if count is not None:
        missing = next((code for code in range(count) if code not in found), None)
        if missing is not None:
            raise VocabularyError(f"the tokenizer has no token {pattern.format(missing)!r}, which is one of {count} codes")
    tokens = np.full(count or max(found) + 1, -1, np.int64)
    for code, token in found.items():
        if code < len(tokens):
            tokens[code] = token
    return tokens


# ---------------------------------------------------------------------------------------------------------------------
# Processors of `generate`.


class _Generation:
    """The boundary between prompt and generated tokens, found by watching the calls of one processor.

    A processor is told neither when a `generate` begins nor how long its prompt is. The first call shows the prompt; a
    call continues it when it has the same rows, one token more, and the same tokens before the boundary. Any other call
    begins a new `generate`. N.B. an earlier result given back as the prompt, unchanged and complete, looks like one more
    step: fix `prompt_length`, or take a new processor, for that.
    """

    def __init__(self, prompt_length: int | None) -> None:
        self.fixed = prompt_length
        self.prompt: torch.Tensor | None = None
        self.last = -1

    def reset(self) -> None:
        self.prompt = None
        self.last = -1

    def suffixes(self, input_ids: torch.Tensor) -> tuple[npt.NDArray[np.int64], bool]:
        """Generated tokens of each row, int64 [rows, generated], and if this call begins a `generate`."""
        if self.fixed is not None:
            if input_ids.shape[1] < self.fixed:
                raise ValueError(f"rows of {input_ids.shape[1]} tokens are shorter than the prompt length {self.fixed} given to the processor")
            suffix = input_ids[:, self.fixed :].cpu().numpy()
            return suffix, suffix.shape[1] == 0
        begins = not self._continues(input_ids)
        if begins:
            self.prompt = input_ids
        assert self.prompt is not None
        self.last = input_ids.shape[1]
        return input_ids[:, self.prompt.shape[1] :].cpu().numpy(), begins

    def _continues(self, input_ids: torch.Tensor) -> bool:
        prompt = self.prompt
        return (
            prompt is not None
            and input_ids.shape[1] == self.last + 1
            and input_ids.shape[0] == prompt.shape[0]
            and input_ids.device == prompt.device
            and torch.equal(input_ids[:, : prompt.shape[1]], prompt)
        )


class CatalogLogitsProcessor(LogitsProcessor):
    """Allows the tokens that continue a semantic ID of the catalog, in every row, at every step.

    Stateless over the codes: a row is walked from its start at each call, so beams may be reordered, copied and dropped.
    A row that begins no item (a placeholder beam) is denied everything instead of raising. One call into Rust and one
    indexed write a step, for all rows.

    `filters`: a filter or item set a request (None: all items); rows are dealt out to them evenly, as `generate` does.
    `num_beams` is only checked. Raises `ValueError` when a row is longer than an item: set `max_new_tokens` to
    `constraint.num_levels`.
    """

    supports_continuous_batching = False

    def __init__(self, constraint: Any, prompt_length: int | None = None, filters: Sequence[Any] | None = None, num_beams: int | None = None) -> None:
        self.constraint = constraint
        self.num_beams = num_beams
        self._items = _items(_filtered(constraint, filters))
        self._generation = _Generation(prompt_length)

    def reset(self) -> None:
        """Forgets the prompt: the next call begins a `generate`."""
        self._generation.reset()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        suffixes, _ = self._generation.suffixes(input_ids)
        if suffixes.shape[1] >= self.constraint.num_levels:
            raise ValueError(
                f"{suffixes.shape[1]} tokens were generated and items have {self.constraint.num_levels}: set max_new_tokens={self.constraint.num_levels}"
                " (a new processor, or prompt_length=, when an earlier result is the prompt)"
            )
        _check_width(scores.shape[-1], self.constraint.num_tokens)
        rows, tokens, _ = _successors(self.constraint, suffixes, self._items, self._requests(len(suffixes)))
        row, token = _indices(rows, scores.device), _indices(tokens, scores.device)
        allowed = torch.full_like(scores, -torch.inf)
        allowed[row, token] = scores[row, token]
        return allowed

    def _requests(self, num_rows: int) -> npt.NDArray[np.int64] | None:
        """The request of each row, when requests differ."""
        num_requests = 1 if self._items is None else len(self._items)
        per_request, rest = divmod(num_rows, num_requests)
        if rest or (self.num_beams is not None and self._items is not None and per_request != self.num_beams):
            beams = f" of {self.num_beams} beams" if self.num_beams is not None else ""
            raise ValueError(f"{num_rows} rows are not those of {num_requests} requests{beams}: give one filter a request of the batch")
        return None if self._items is None else np.repeat(np.arange(num_requests), per_request)


class GrammarLogitsProcessor(LogitsProcessor):
    """Allows the tokens that continue a text of the grammar; exact under beams.

    Nobody tells a processor which beam a row came from: `Follower` finds the parent by content, since equal texts have
    equal states. `ends` are the end tokens (default: the vocabulary's); give `generate` the same as `eos_token_id`. A
    row that has ended may only end again, so that sampled batches with finished rows keep a token to draw; any other
    row that the grammar refuses (a placeholder beam) is denied everything.

    One `generate` at a time: give `prompt_length`, or call `reset`, before an earlier text becomes the next prompt.
    """

    supports_continuous_batching = False

    def __init__(self, compiled: Any, prompt_length: int | None = None, ends: Sequence[int] | None = None) -> None:
        self.compiled = compiled
        self.ends = np.asarray(list(compiled.vocabulary.ends if ends is None else ends), np.int64)
        self._num_tokens = int(compiled.vocabulary.num_tokens)
        self._generation = _Generation(prompt_length)
        self._follower = Follower(compiled, ends=self.ends.tolist())
        self._bitmask = np.zeros((0, (self._num_tokens + 31) // 32), np.int32)

    def reset(self) -> None:
        """Forgets the prompt: the next call begins a `generate`."""
        self._generation.reset()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        _check_width(scores.shape[-1], self._num_tokens)
        suffixes, begins = self._generation.suffixes(input_ids)
        if begins:
            self._follower.reset()
        if len(self._bitmask) != len(suffixes):
            self._bitmask = np.zeros((len(suffixes), self._bitmask.shape[1]), np.int32)
        self._follower.advance(np.ascontiguousarray(suffixes), self._bitmask)
        self._let_ended_rows_end(suffixes)
        return apply_bitmask_(scores.clone(), torch.from_numpy(self._bitmask))

    def _let_ended_rows_end(self, suffixes: npt.NDArray[np.int64]) -> None:
        if suffixes.shape[1] == 0 or len(self.ends) == 0:
            return
        ended = np.isin(suffixes, self.ends).any(axis=1) & ~self._bitmask.any(axis=1)
        for end in self.ends:
            self._bitmask.view(np.uint32)[ended, end >> 5] |= np.uint32(1 << (int(end) & 31))


def exact_settings(constraint: Any, num_beams: int, num_results: int | None = None, generation_config: Any = None) -> dict[str, Any]:
    """Keyword arguments of `generate` for an exact search of `num_beams` beams, scores being plain sums.

    Give the model's own `generation_config` to have settings refused that a checkpoint brings along and that change the
    scores (a repetition penalty, for example): `ValueError` names each and its neutral value.
    """
    if generation_config is not None:
        check_exact(generation_config, except_for=("do_sample", "renormalize_logits"))
    return {
        "num_beams": num_beams,
        "num_return_sequences": num_results or num_beams,
        "max_new_tokens": constraint.num_levels,
        "do_sample": False,
        "early_stopping": "never",
        "length_penalty": 0.0,
        "renormalize_logits": False,
        "return_dict_in_generate": True,
        "output_scores": True,
    }


def check_exact(generation_config: Any, except_for: Sequence[str] = ()) -> None:
    """Refuses a generation config whose settings change scores: `ValueError` names each and its neutral value."""
    wrong = []
    for name, neutral in EXACT_VALUES.items():
        value = getattr(generation_config, name, None)
        if name not in except_for and not any(value is good or value == good for good in neutral):
            wrong.append(f"{name}={value!r} (pass {name}={neutral[0]!r})")
    if wrong:
        raise ValueError(f"the generation config changes the scores that beams are compared by: {', '.join(wrong)}")


@dataclass(frozen=True)
class BeamResult:
    """Items found for a batch of requests, best first in each: flat arrays, request after request.

    `sequences`: int64 [results, num_levels], the items' tokens without the prompt. `scores`: float32 [results].
    `items`: ids of the items of each result (several, when items share a semantic ID). `offsets`: request `r` owns the
    results `offsets[r]..offsets[r + 1]`; requests may have fewer results than beams, or none.
    """

    sequences: torch.Tensor
    scores: torch.Tensor
    items: list[list[str]]
    offsets: list[int]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, request: int) -> BeamResult:
        if not -len(self) <= request < len(self):
            raise IndexError(f"request {request} of {len(self)}")
        start, end = self.offsets[request % len(self)], self.offsets[request % len(self) + 1]
        return BeamResult(self.sequences[start:end], self.scores[start:end], self.items[start:end], [0, end - start])

    def __iter__(self) -> Iterator[BeamResult]:
        return (self[request] for request in range(len(self)))

    def ranked(self) -> list[tuple[str, float]]:
        """Pairs of item and score, best first; items that share a semantic ID stand together."""
        return [(item, score) for items, score in zip(self.items, self.scores.tolist()) for item in items]


def beam_result(output: Any, constraint: Any, num_requests: int = 1, filters: Sequence[Any] | None = None, length_penalty: float = 0.0) -> BeamResult:
    """The items in the output of `generate(..., num_beams=…, return_dict_in_generate=True, output_scores=True)`.

    With fewer valid items than beams `generate` fills its result with copies scored -1e9 and rows that are no items;
    these are left out, and so are repetitions. Scores are freed of `length_penalty`.
    """
    if getattr(output, "sequences_scores", None) is None:
        raise ValueError("the output has no sequences_scores: call generate with num_beams > 1, return_dict_in_generate=True, output_scores=True")
    sequences = output.sequences[:, -constraint.num_levels :]
    per_request, rest = divmod(len(sequences), num_requests)
    if rest:
        raise ValueError(f"{len(sequences)} sequences are not those of {num_requests} requests")
    check_choices(filters, num_requests)
    allowed = _filtered(constraint, filters)
    scores = output.sequences_scores.float() * constraint.num_levels**length_penalty
    rows, kept, items, offsets = sequences.cpu().numpy(), [], [], [0]
    for request in range(num_requests):
        seen: set[bytes] = set()
        for row in range(request * per_request, (request + 1) * per_request):
            key = rows[row].tobytes()
            if float(scores[row]) <= PLACEHOLDER or key in seen:
                continue
            found = (allowed[request] if allowed else constraint).decode(rows[row : row + 1])[0]
            if found:
                seen.add(key)
                kept.append(row)
                items.append(found)
        offsets.append(len(kept))
    index = torch.tensor(kept, dtype=torch.int64, device=sequences.device)
    return BeamResult(sequences[index], scores[index.to(scores.device)], items, offsets)


@dataclass(frozen=True)
class TextResult:
    """One text of a grammar: its `tokens` without prompt, end token and padding, its `score`, and if it is complete.

    A text that `max_new_tokens` cut is the beginning of a text of the grammar.
    """

    tokens: list[int]
    text: bytes
    score: float
    is_complete: bool


def text_results(
    output: Any, compiled: Any, prompt_length: int, num_requests: int = 1, ends: Sequence[int] | None = None, length_penalty: float = 0.0
) -> list[list[TextResult]]:
    """The texts in the output of `generate(..., num_beams=…)` under a `GrammarLogitsProcessor`, best first a request.

    Placeholders scored -1e9, repetitions, and rows that no text of the grammar begins with are left out. Scores are freed
    of `length_penalty` (1.0 is the default of `generate`).
    """
    if getattr(output, "sequences_scores", None) is None:
        raise ValueError("the output has no sequences_scores: call generate with num_beams > 1, return_dict_in_generate=True, output_scores=True")
    rows, scores = output.sequences[:, prompt_length:].tolist(), output.sequences_scores.tolist()
    per_request, rest = divmod(len(rows), num_requests)
    if rest:
        raise ValueError(f"{len(rows)} sequences are not those of {num_requests} requests")
    ends = list(compiled.vocabulary.ends if ends is None else ends)
    results: list[list[TextResult]] = [[] for _ in range(num_requests)]
    seen: set[tuple[int, ...]] = set()
    for number, (row, score) in enumerate(zip(rows, scores)):
        if number % per_request == 0:
            seen = set()
        end = next((at for at, token in enumerate(row) if token in ends), None)
        tokens = row[:end]
        score *= (len(tokens) + (end is not None)) ** length_penalty
        if score <= PLACEHOLDER or tuple(row[: None if end is None else end + 1]) in seen:
            continue
        matcher = compiled.matcher(ends=ends)
        if matcher.validate(tokens) < len(tokens):
            continue
        matcher.commit_all(tokens)
        if end is not None and not matcher.is_accepting:
            continue
        seen.add(tuple(row[: None if end is None else end + 1]))
        results[number // per_request].append(TextResult(tokens, compiled.vocabulary.decode(tokens), score, end is not None))
    return results


# ---------------------------------------------------------------------------------------------------------------------
# The beam search.


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
    tables: DeviceTables | None = None,
    **model_kwargs: Any,
) -> BeamResult:
    """Exact beam search over a catalog, as `custom_generate` of `model.generate`:

        model.generate(ids, attention_mask=mask, do_sample=False, custom_generate=beam_search, constraint=c, beam_width=50)

    `beam_width`: beams kept, one number or one a level; a request that has fewer valid items keeps fewer. `num_results`:
    results a request, the last level's width by default. `filters`: a filter or item set a request (None: all items).
    `scores`: `"vocabulary"` sums log-softmax over the whole vocabulary, `"catalog"` over the tokens of the level's codes,
    for which the output layer is cut to those rows. Ties are ordered by beam, then token.

    Prompts are computed once a request (padded on the left, as `generate` wants). With `share_prompt` the beams of a
    request attend to one copy of the prompt's keys and values, each to its own codes by the mask; otherwise the cache is
    repeated a beam and reordered a level. Default: shared for the models of `SHARED_PROMPT_MODELS`, with the same scores
    up to rounding. Encoder–decoder models run the encoder once and repeat its keys once.

    `tables`: the constraint's `device_tables`, on the model's device. Beams are then chosen there, without waiting for the
    device until the end: rows are as many as beams, those without an item scored -inf and left out of the result.
    """
    check_arguments(generation_config, logits_processor, stopping_criteria, constraint)
    widths = _widths(beam_width, num_results, constraint.num_levels)
    check_choices(filters, input_ids.shape[0])
    if scores not in ("vocabulary", "catalog"):
        raise ValueError(f'scores are "vocabulary" or "catalog", not {scores!r}')
    if tables is not None and scores == "catalog":
        raise ValueError('tables= choose beams by scores over the vocabulary: leave out scores="catalog", or tables')
    allowed = _filtered(constraint, filters)
    selection = _Selection(constraint, allowed, widths, input_ids.shape[0]) if tables is None else _DeviceSelection(constraint, allowed, widths, input_ids.shape[0], tables)
    with torch.inference_mode(), _decoding(model):
        heads = _CutHeads(model, constraint) if scores == "catalog" else None
        outputs, model_kwargs = _prefill(heads.model(0) if heads else model, input_ids, generation_config, model_kwargs)
        if heads is None:
            _check_width(outputs.logits.shape[-1], constraint.num_tokens)
        chosen = selection.step(outputs.logits[:, -1], heads)
        if share_prompt is None:
            share_prompt = _can_share(model, outputs)
        beams = (_SharedPrompt if share_prompt else _RepeatedPrompt)(model, input_ids, outputs, model_kwargs)
        del outputs
        for level in range(1, constraint.num_levels):
            if chosen.is_empty:
                break
            logits = beams.advance(heads.model(level) if heads else model, chosen)
            chosen = selection.step(logits, heads, beams.places)
        return selection.result(input_ids.device)


def check_arguments(generation_config: Any, processors: Any, criteria: Any, constraint: Any) -> None:
    """Refuses settings of `generate` that the search would have to ignore, each by name."""
    if generation_config is not None:
        if (getattr(generation_config, "num_beams", 1) or 1) > 1 or (getattr(generation_config, "num_return_sequences", 1) or 1) > 1:
            raise ValueError("beam_search takes beam_width and num_results; num_beams and num_return_sequences would repeat the prompt: leave them out")
        check_exact(generation_config)
        limit = getattr(generation_config, "max_new_tokens", None)
        if limit is not None and limit < constraint.num_levels:
            raise ValueError(f"max_new_tokens={limit} cuts items of {constraint.num_levels} tokens: leave it out, or set it to {constraint.num_levels}")
    wrong = [type(each).__name__ for each in processors or () if type(each).__name__ not in HARMLESS_PROCESSORS]
    wrong += [type(each).__name__ for each in criteria or () if type(each).__name__ not in HARMLESS_CRITERIA]
    if wrong:
        raise ValueError(f"beam_search does not apply {', '.join(wrong)}: it scores by the model alone; use generate with CatalogLogitsProcessor for that")


@dataclass(frozen=True)
class _Chosen:
    """The next beams, request after request: the beam of the level before that each continues, its token, and how many
    beams each request has now. On the host (NumPy), or on the device with as many beams in every request."""

    parents: Any
    tokens: Any
    counts: npt.NDArray[np.int64]

    @property
    def is_empty(self) -> bool:
        return len(self.tokens) == 0


class _Selection:
    """Live beams of all requests: their codes and scores, and the choice of the next ones.

    Beams of one request are neighbours, best first; requests may have different numbers of them. Candidates are gathered
    on the logits' device and compared on the host: a few thousand floats a level.
    """

    def __init__(self, constraint: Any, allowed: list[Any] | None, widths: list[int], num_requests: int) -> None:
        self.constraint, self.allowed, self.widths = constraint, allowed, widths
        self.items = _items(allowed)
        self.level = 0
        self.codes = np.zeros((num_requests, 0), np.int64)
        self.scores = np.zeros(num_requests, np.float32)
        self.request = np.arange(num_requests)
        self.num_requests = num_requests

    def step(self, logits: torch.Tensor, heads: _CutHeads | None, places: npt.NDArray[np.int64] | None = None) -> _Chosen:
        """Chooses the next beams from logits [rows, V]. `places`: the row of each beam, when there are more rows than beams."""
        rows, tokens, _ = _successors(self.constraint, self.codes, self.items, self.request if self.items is not None else None)
        rows, tokens = rows.astype(np.int64), tokens.astype(np.int64)
        log_probs = self._log_probs(logits, rows if places is None else places[rows], tokens, heads)
        total = self.scores[rows] + log_probs
        bounds = np.searchsorted(self.request[rows], np.arange(self.num_requests + 1))
        width = self.widths[self.level]
        best = np.concatenate([start + _best(total[start:end], width) for start, end in zip(bounds[:-1], bounds[1:])])
        parents, chosen = rows[best], tokens[best]
        self.codes = np.column_stack((self.codes[parents], chosen))
        self.scores, self.request = total[best], self.request[parents]
        self.level += 1
        return _Chosen(parents, chosen, np.bincount(self.request, minlength=self.num_requests))

    def _log_probs(self, logits: torch.Tensor, rows: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64], heads: _CutHeads | None) -> npt.NDArray[np.float32]:
        columns = tokens
        logits = logits.float()
        if heads is not None:
            logits, columns = heads.columns(self.level, logits, tokens)
        norms = torch.logsumexp(logits, dim=-1)
        row, column = _indices(rows, logits.device), _indices(columns, logits.device)
        values = (logits[row, column] - norms[row]).cpu().numpy()
        if np.isnan(values).any() or bool(torch.isnan(norms).any()):
            raise _not_numbers(self.level)
        return values

    def result(self, device: torch.device) -> BeamResult:
        if self.codes.shape[1] < self.constraint.num_levels:  # No request had a beam any more.
            self.codes, self.scores, self.request = np.zeros((0, self.constraint.num_levels), np.int64), np.zeros(0, np.float32), self.request[:0]
        return _result(self.constraint, self.allowed, self.codes, self.scores, np.bincount(self.request, minlength=self.num_requests), device)


class _DeviceSelection:
    """The same on the device, by tables: [requests, beams], where beams without an item have the score -inf."""

    def __init__(self, constraint: Any, allowed: list[Any] | None, widths: list[int], num_requests: int, tables: DeviceTables) -> None:
        self.constraint, self.allowed, self.widths, self.tables = constraint, allowed, widths, tables
        self.masks = None
        if allowed is not None:
            # One mask would be meant for all requests, and is where there is one request.
            self.masks = tables.edge_masks(*allowed)
        self.level = 0
        self.nodes = torch.zeros((num_requests, 1), dtype=torch.int64, device=tables.device)
        self.scores = torch.zeros((num_requests, 1), device=tables.device)
        self.codes = torch.zeros((num_requests, 1, 0), dtype=torch.int64, device=tables.device)

    def step(self, logits: torch.Tensor, heads: None, places: Any = None) -> _Chosen:
        log_probs = torch.log_softmax(logits.float(), dim=-1)
        width = self.widths[self.level]
        parents, tokens, self.nodes, self.scores = select(self.tables, self.level, log_probs, self.nodes, self.scores, width, self.masks)
        past = self.codes.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.level))
        self.codes = torch.cat((past, tokens.unsqueeze(-1)), dim=2)
        self.level += 1
        return _Chosen(parents, tokens, np.full(len(tokens), width))

    def result(self, device: torch.device) -> BeamResult:
        scores, codes = self.scores.cpu().numpy(), self.codes.cpu().numpy()
        if np.isnan(scores).any():
            raise _not_numbers(self.level - 1)
        valid = scores > -np.inf
        return _result(self.constraint, self.allowed, codes[valid], scores[valid], valid.sum(axis=1), device)


def _result(constraint: Any, allowed: list[Any] | None, codes: npt.NDArray[np.int64], scores: npt.NDArray[np.float32], counts: npt.NDArray[np.int64], device: torch.device) -> BeamResult:
    offsets = np.concatenate(([0], np.cumsum(counts)))
    # Items that share a semantic ID may differ in what the filter says.
    constraints = allowed or [constraint] * len(counts)
    items = [ids for request, each in enumerate(constraints) for ids in each.decode(codes[offsets[request] : offsets[request + 1]])]
    return BeamResult(torch.from_numpy(codes).to(device), torch.from_numpy(scores).to(device), items, offsets.tolist())


def _not_numbers(level: int) -> Error:
    return Error(f"the model's logits at level {level} are not numbers (NaN): check its weights and its float type")


def _best(scores: npt.NDArray[np.float32], width: int) -> npt.NDArray[np.int64]:
    """Indices of the best `width` finite scores, best first, the first of equals first."""
    kept = np.flatnonzero(scores > -np.inf)
    if len(kept) > width:
        values = scores[kept]
        kept = kept[values >= np.partition(values, len(values) - width)[len(values) - width]]
    return kept[np.argsort(-scores[kept], kind="stable")[:width]]


class _RepeatedPrompt:
    """One row of the model a beam: the prompt's cache is repeated once and reordered a level."""

    places = None

    def __init__(self, model: Any, input_ids: torch.Tensor, outputs: Any, model_kwargs: dict[str, Any]) -> None:
        self.encoder_decoder = bool(getattr(model.config, "is_encoder_decoder", False))
        self.ids = input_ids
        self.kwargs = model_kwargs
        self.counts: npt.NDArray[np.int64] | None = None

    def advance(self, model: Any, chosen: _Chosen) -> torch.Tensor:
        device = self.ids.device
        if isinstance(chosen.tokens, torch.Tensor):
            num_requests, past = len(chosen.tokens), len(self.ids) // len(chosen.tokens)
            parent = (chosen.parents + torch.arange(num_requests, device=chosen.parents.device).unsqueeze(1) * past).flatten().to(device)
            token = chosen.tokens.flatten().to(device)
        else:
            parent, token = _indices(chosen.parents, device), _indices(chosen.tokens, device)
        moved = self.counts is None or not np.array_equal(chosen.counts, self.counts)
        self._reorder_cache(model, parent, moved)
        if moved:  # Everything but the cache is the same for all beams of a request.
            self._reorder_arguments(parent, len(self.ids))
        self.counts = chosen.counts
        self.ids = torch.cat((self.ids[parent], token[:, None]), dim=1)
        inputs = model.prepare_inputs_for_generation(self.ids, next_sequence_length=1 if _cache_key(self.kwargs) else None, **self.kwargs)
        outputs = model(**inputs, return_dict=True)
        self.kwargs = model._update_model_kwargs_for_generation(outputs, self.kwargs, is_encoder_decoder=self.encoder_decoder)
        return outputs.logits[:, -1]

    def _reorder_cache(self, model: Any, parent: torch.Tensor, moved: bool) -> None:
        key = _cache_key(self.kwargs)
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
                self.kwargs[name] = type(value)({key: _rows_of(each, parent, num_rows) for key, each in value.items()})
            elif name != _cache_key(self.kwargs):
                self.kwargs[name] = _rows_of(value, parent, num_rows)


class _SharedPrompt:
    """One row of the model a request: its beams stand side by side and share the prompt's keys and values.

    The attention mask [requests, 1, beams, keys] lets a beam see the prompt and its own codes; a beam's codes lie at
    one key a level. Keys of beams that ended stay where they are, unseen. No cache is copied or reordered.
    """

    def __init__(self, model: Any, input_ids: torch.Tensor, outputs: Any, model_kwargs: dict[str, Any]) -> None:
        self.kwargs = model_kwargs
        self.key = _cache_key(model_kwargs)
        if self.key is None:
            raise ValueError("share_prompt=True needs a model with a cache: leave use_cache on, or share_prompt out")
        num_requests, length = input_ids.shape
        mask = model_kwargs.get("attention_mask")
        # The mask was extended by the next token after the prompt.
        self.prompt = torch.ones((num_requests, length), dtype=torch.bool, device=input_ids.device) if mask is None else mask[:, :length].bool()
        self.dtype = outputs.logits.dtype
        self.position = self.prompt.sum(dim=1, keepdim=True)
        self.seen = torch.zeros((num_requests, 1, 0), dtype=torch.bool, device=input_ids.device)
        self.places = np.arange(num_requests)
        self.width = 1

    def advance(self, model: Any, chosen: _Chosen) -> torch.Tensor:
        device = self.prompt.device
        if isinstance(chosen.tokens, torch.Tensor):
            return self._forward(model, chosen.parents.to(device), chosen.tokens.to(device))
        counts = chosen.counts
        num_requests, width = len(counts), int(counts.max())
        request = np.repeat(np.arange(num_requests), counts)
        slot = np.arange(len(request)) - (np.cumsum(counts) - counts)[request]
        places = request * width + slot
        # Slots without a beam repeat the request's first one; nobody reads them.
        parent, token = np.zeros(num_requests * width, np.int64), np.zeros(num_requests * width, np.int64)
        parent[places], token[places] = self.places[chosen.parents] % self.width, chosen.tokens
        self.places, self.width = places, width
        return self._forward(model, _indices(parent, device).view(num_requests, width), _indices(token, device).view(num_requests, width))

    def _forward(self, model: Any, parents: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Logits [requests * width, V] after tokens [requests, width] that continue the beams of those numbers."""
        device, (num_requests, width) = self.prompt.device, ids.shape
        ancestors = self.seen.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.seen.shape[2]))
        own = torch.eye(width, dtype=torch.bool, device=device).expand(num_requests, -1, -1)
        self.seen = torch.cat((ancestors, own), dim=2)
        allowed = torch.cat((self.prompt[:, None].expand(-1, width, -1), self.seen), dim=2)
        mask = torch.zeros(allowed.shape, dtype=self.dtype, device=device).masked_fill_(~allowed, torch.finfo(self.dtype).min)
        keep = {"logits_to_keep": width} if "logits_to_keep" in self.kwargs else {}
        outputs = model(
            input_ids=ids,
            attention_mask=mask[:, None],
            position_ids=self.position.expand(-1, width),
            use_cache=True,
            return_dict=True,
            **{self.key: self.kwargs[self.key]},
            **keep,
        )
        self.kwargs[self.key] = outputs[self.key]
        self.position = self.position + 1
        return outputs.logits.flatten(0, 1)


def _can_share(model: Any, outputs: Any) -> bool:
    """True for decoders known to read masks and positions alone, with plain attention and a cache that only grows."""
    key = _cache_key(outputs)
    if getattr(model.config, "model_type", None) not in SHARED_PROMPT_MODELS or key is None:
        return False
    if getattr(model.config, "_attn_implementation", None) not in ("sdpa", "eager"):
        return False
    return all(type(layer).__name__ == "DynamicLayer" for layer in getattr(outputs[key], "layers", [None]))


class _CutHeads:
    """Output layers with the rows of one level's codes: their logits are the model's own, without the other columns.

    The model itself is left as it is: a shallow copy of its outer module gets the cut layer. Models whose output layer
    is not a plain `Linear` directly below them (or has hooks) compute all logits, of which the columns are taken.
    """

    def __init__(self, model: Any, constraint: Any) -> None:
        self.whole = model
        self.tokens = [tokens[tokens >= 0].astype(np.int64) for tokens in constraint.code_tokens]
        head = model.get_output_embeddings()
        _check_width(len(head.weight), constraint.num_tokens)
        names = [name for name, module in model._modules.items() if module is head]
        plain = type(head) is torch.nn.Linear and not hasattr(head, "_hf_hook") and not head._forward_hooks and not head._forward_pre_hooks
        self.name = names[0] if names and plain else None

    def model(self, level: int) -> Any:
        if self.name is None:
            return self.whole
        head = self.whole._modules[self.name]
        rows = _indices(self.tokens[level], head.weight.device)
        cut = torch.nn.Linear(1, 1, bias=False)
        cut.weight = torch.nn.Parameter(head.weight[rows], requires_grad=False)
        if head.bias is not None:
            cut.bias = torch.nn.Parameter(head.bias[rows], requires_grad=False)
        model = copy.copy(self.whole)
        model.__dict__["_modules"] = {**self.whole._modules, self.name: cut}
        return model

    def columns(self, level: int, logits: torch.Tensor, tokens: npt.NDArray[np.int64]) -> tuple[torch.Tensor, npt.NDArray[np.int64]]:
        """Logits [rows, codes of the level], and the column of each token there."""
        if self.name is None:
            logits = logits[:, _indices(self.tokens[level], logits.device)]
        order = np.argsort(self.tokens[level], kind="stable")
        return logits, order[np.searchsorted(self.tokens[level][order], tokens)]


def _prefill(model: Any, input_ids: torch.Tensor, generation_config: Any, model_kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The prompt's forward pass, and the arguments that the next one needs."""
    outputs = model._prefill(input_ids, generation_config, model_kwargs)
    encoder_decoder = bool(getattr(model.config, "is_encoder_decoder", False))
    return outputs, model._update_model_kwargs_for_generation(outputs, model_kwargs, is_encoder_decoder=encoder_decoder)


def _decoding(model: Any) -> contextlib.AbstractContextManager[Any]:
    optimize: Callable[[], Any] | None = getattr(model, "_optimize_model_for_decode", None)
    return optimize() if optimize else contextlib.nullcontext()


def _cache_key(arguments: Any) -> str | None:
    """The name that this version of transformers gives the cache."""
    return next((name for name in ("cache", "past_key_values") if arguments.get(name) is not None), None)


def _rows_of(value: Any, parent: torch.Tensor, num_rows: int) -> Any:
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    dim = 1 if value.dim() == 3 and value.shape[0] != num_rows and value.shape[1] == num_rows else 0
    if value.shape[dim] != num_rows:
        return value
    return value.index_select(dim, parent.to(value.device))


def _widths(beam_width: int | Sequence[int], num_results: int | None, num_levels: int) -> list[int]:
    widths = [beam_width] * num_levels if isinstance(beam_width, int) else list(beam_width)
    if len(widths) != num_levels:
        raise ValueError(f"{len(widths)} beam widths for items of {num_levels} levels: give one number, or one a level")
    if num_results is not None:
        widths[-1] = num_results if isinstance(beam_width, int) else min(num_results, widths[-1])
    if min(widths) < 1:
        raise ValueError(f"beam widths are at least 1, not {min(widths)}")
    return widths


def _filtered(constraint: Any, filters: Sequence[Any] | None) -> list[Any] | None:
    """The constraint of each request; None where none has a filter."""
    if filters is None:
        return None
    if isinstance(filters, (str, dict)):
        raise TypeError("filters are a list, one a request of the batch (None where it has none)")
    return [constraint if each is None else constraint.filtered(each) for each in filters]


def _items(constraints: list[Any] | None) -> list[Any] | None:
    """The item set of each request, as `successors` takes them."""
    return None if constraints is None else [each.items for each in constraints]


def _successors(constraint: Any, tokens: npt.NDArray[np.int64], items: list[Any] | None, request: npt.NDArray[np.int64] | None) -> tuple[Any, Any, Any]:
    if items is None:
        return constraint.successors(tokens)
    return constraint.successors(tokens, items=items, item_of_row=request)


def _indices(values: npt.NDArray[np.integer[Any]], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.int64)).to(device, non_blocking=True)


def _check_width(num_scored: int, num_tokens: int) -> None:
    if num_tokens > num_scored:
        raise ValueError(f"the constraint is over {num_tokens} tokens and the model scores {num_scored}: resize the model's embeddings, or give the constraint the model's num_tokens")
