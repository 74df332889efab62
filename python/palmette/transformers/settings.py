"""Settings of `generate` under which scores are sums of log-probabilities, and refusals of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def exact_settings(
    constraint: Any, num_beams: int, num_results: int | None = None, generation_config: Any = None
) -> dict[str, Any]:
    """Keyword arguments of `generate` for an exact search of `num_beams` beams, scores being plain sums.

    Tokens that a checkpoint forces at the first or the last place, as those of BART's shape do, are set aside: no item has
    them. Give the model's own `generation_config` to have settings refused that a checkpoint brings along and that change the
    scores (a repetition penalty, for example): `ValueError` names each and its neutral value.
    """
    settings = {
        "num_beams": num_beams,
        "num_return_sequences": num_results or num_beams,
        "max_new_tokens": constraint.num_levels,
        "do_sample": False,
        "early_stopping": "never",
        "length_penalty": 0.0,
        "renormalize_logits": False,
        "forced_bos_token_id": None,
        "forced_eos_token_id": None,
        "return_dict_in_generate": True,
        "output_scores": True,
    }
    if generation_config is not None:
        check_exact(generation_config, except_for=tuple(settings))
    return settings


def check_exact(generation_config: Any, except_for: Sequence[str] = ()) -> None:
    """Refuses a generation config whose settings change scores: `ValueError` names each and its neutral value."""
    wrong = []
    for name, neutral in EXACT_VALUES.items():
        value = getattr(generation_config, name, None)
        if name not in except_for and not any(value is good or value == good for good in neutral):
            wrong.append(f"{name}={value!r} (pass {name}={neutral[0]!r})")
    if wrong:
        raise ValueError(
            f"the generation config changes the scores that beams are compared by: {', '.join(wrong)}"
        )


def check_arguments(
    generation_config: Any, processors: Any, criteria: Any, constraint: Any
) -> None:
    """Refuses settings of `generate` that the search would have to ignore, each by name."""
    if generation_config is not None:
        if (getattr(generation_config, "num_beams", 1) or 1) > 1 or (
            getattr(generation_config, "num_return_sequences", 1) or 1
        ) > 1:
            raise ValueError(
                "beam_search takes beam_width and num_results; num_beams and num_return_sequences would "
                "repeat the prompt: leave them out"
            )
        check_exact(generation_config)
        limit = getattr(generation_config, "max_new_tokens", None)
        if limit is not None and limit < constraint.num_levels:
            raise ValueError(
                f"max_new_tokens={limit} cuts items of {constraint.num_levels} tokens: "
                f"leave it out, or set it to {constraint.num_levels}"
            )
    wrong = [
        type(each).__name__
        for each in processors or ()
        if type(each).__name__ not in HARMLESS_PROCESSORS
    ]
    wrong += [
        type(each).__name__
        for each in criteria or ()
        if type(each).__name__ not in HARMLESS_CRITERIA
    ]
    if wrong:
        raise ValueError(
            f"beam_search does not apply {', '.join(wrong)}: it scores by the model alone; "
            "use generate with CatalogLogitsProcessor for that"
        )


def check_width(num_scored: int, num_tokens: int) -> None:
    if num_tokens > num_scored:
        raise ValueError(
            f"the constraint is over {num_tokens} tokens and the model scores {num_scored}: "
            "resize the model's embeddings, or give the constraint the model's num_tokens"
        )
