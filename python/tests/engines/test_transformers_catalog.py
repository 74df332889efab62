"""Catalogs in transformers: both ways against an exact search written plainly, and the traps of `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed: catalogs in transformers are untested"
)
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: catalogs in it are untested"
)

import palmette  # noqa: E402
from models import PAD, catalog_pair, model_log_probs, tiny_model  # noqa: E402
from palmette.transformers import (  # noqa: E402
    BeamResult,
    CatalogLogitsProcessor,
    beam_result,
    beam_search,
    code_tokens,
    exact_settings,
)
from palmette.torch_tables import device_tables  # noqa: E402
from reference import DEVICE, DictConstraint, search  # noqa: E402

TOLERANCE = 1e-5


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def prompts(seed: int, *lengths: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(2, 8, (length,), generator=generator).to(DEVICE) for length in lengths]


def padded(rows: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """A batch padded on the left, with its mask."""
    width = max(len(row) for row in rows)
    ids = torch.stack(
        [torch.nn.functional.pad(row, (width - len(row), 0), value=PAD) for row in rows]
    )
    mask = torch.stack(
        [torch.nn.functional.pad(torch.ones_like(row), (width - len(row), 0)) for row in rows]
    )
    return {"input_ids": ids, "attention_mask": mask}


def searched(
    model: Any, batch: dict[str, torch.Tensor], constraint: Any, width: Any, **more: Any
) -> BeamResult:
    return model.generate(
        **batch,
        do_sample=False,
        max_new_tokens=constraint.num_levels,
        custom_generate=beam_search,
        constraint=constraint,
        beam_width=width,
        **more,
    )


def generated(
    model: Any, batch: dict[str, torch.Tensor], constraint: Any, width: int, filters: Any = None
) -> BeamResult:
    processor = CatalogLogitsProcessor(constraint, filters=filters, num_beams=width)
    output = model.generate(
        **batch,
        logits_processor=[processor],
        **exact_settings(constraint, width, generation_config=model.generation_config),
    )
    return beam_result(output, constraint, num_requests=len(batch["input_ids"]), filters=filters)


def check(
    result: BeamResult, expected: list[tuple[tuple[int, ...], float]], plain: DictConstraint
) -> None:
    """Same semantic IDs in the same order, scores within the tolerance, and the ids of all their items."""
    assert [tuple(row) for row in result.sequences.tolist()] == [row for row, _ in expected]
    np.testing.assert_allclose(
        result.scores.tolist(),
        [score for _, score in expected],
        atol=TOLERANCE * max(1, len(expected[0][0]) if expected else 1),
    )
    assert [sorted(items) for items in result.items] == [
        sorted(plain.decode([row])[0]) for row, _ in expected
    ]


@pytest.mark.parametrize("kind", ["qwen3", "qwen2", "llama", "mistral", "gpt2", "gpt_neox", "t5"])
@pytest.mark.parametrize("share_prompt", [None, False])
def test_beam_search_equals_the_definition_for_a_padded_batch(
    kind: str, share_prompt: bool | None
) -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(1), 60, 6, 3)
    model = tiny_model(kind, num_tokens)
    rows = prompts(2, 9, 5, 12)
    result = searched(model, padded(rows), constraint, 7, share_prompt=share_prompt)
    assert len(result) == 3
    for request, prompt in zip(result, rows, strict=True):
        check(request, search(model_log_probs(model, prompt), plain, [7, 7, 7]), plain)


def test_three_ways_find_the_same_ten_items_in_one_run() -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(3), 400, 16, 4)
    model = tiny_model("qwen3", num_tokens, seed=3)
    (prompt,) = prompts(4, 20)
    batch = padded([prompt])

    def allowed(_: int, ids: torch.Tensor) -> list[int]:
        return plain.next_tokens(ids[20:].tolist())

    by_function = beam_result(
        model.generate(
            **batch, prefix_allowed_tokens_fn=allowed, **exact_settings(constraint, 20, 10)
        ),
        constraint,
    )
    by_processor = beam_result(
        model.generate(
            **batch,
            logits_processor=[CatalogLogitsProcessor(constraint)],
            **exact_settings(constraint, 20, 10),
        ),
        constraint,
    )
    by_search = searched(model, batch, constraint, 20, num_results=10)
    expected = search(model_log_probs(model, prompt), plain, [20, 20, 20, 10])
    assert len(expected) == 10
    assert not by_search.scores.is_inference(), "results are ordinary tensors"
    for result in (by_function, by_processor, by_search):
        check(result, expected, plain)


@pytest.mark.parametrize("seed", range(12))
def test_random_catalogs_widths_and_requests(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_levels, num_codes = int(rng.integers(1, 5)), int(rng.integers(2, 9))
    constraint, plain, catalog, num_tokens = catalog_pair(
        rng, int(rng.integers(1, 80)), num_codes, num_levels
    )
    model = tiny_model(("qwen3", "llama", "gpt2")[seed % 3], num_tokens, seed)
    rows = prompts(seed, *rng.integers(1, 10, size=int(rng.integers(1, 4))))
    wanted = [
        None
        if rng.random() < 0.3
        else {name for name in plain.rows if rng.random() < rng.choice([0.05, 0.5])}
        for _ in rows
    ]
    filters = [None if names is None else catalog.items_with_ids(sorted(names)) for names in wanted]
    width = int(rng.integers(2, 25))
    for result in (
        searched(model, padded(rows), constraint, width, filters=filters),
        generated(model, padded(rows), constraint, width, filters),
    ):
        for request, prompt, names in zip(result, rows, wanted, strict=True):
            few = plain if names is None else plain.filtered(names)
            check(request, search(model_log_probs(model, prompt), few, [width] * num_levels), few)


def test_fewer_valid_items_than_beams_are_all_that_is_returned() -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(5), 5, 16, 4)
    model = tiny_model("qwen3", num_tokens)
    (prompt,) = prompts(6, 8)
    expected = search(model_log_probs(model, prompt), plain, [20] * 4)
    assert len(expected) == 5
    check(searched(model, padded([prompt]), constraint, 20), expected, plain)
    raw = model.generate(
        **padded([prompt]),
        logits_processor=[CatalogLogitsProcessor(constraint)],
        **exact_settings(constraint, 20),
    )
    assert len(raw.sequences) == 20, (
        "generate fills up with placeholders, which beam_result has to remove"
    )
    check(beam_result(raw, constraint), expected, plain)


def test_a_filter_that_matches_nothing_gives_no_result_and_leaves_its_neighbours_alone() -> None:
    constraint, plain, catalog, num_tokens = catalog_pair(np.random.default_rng(7), 50, 8, 3)
    model = tiny_model("llama", num_tokens)
    rows = prompts(8, 6, 4)
    filters = [
        catalog.items_with_ids([]),
        catalog.items_with_ids([f"item-{number}" for number in range(20)]),
    ]
    few = plain.filtered({f"item-{number}" for number in range(20)})
    for result in (
        searched(model, padded(rows), constraint, 6, filters=filters),
        generated(model, padded(rows), constraint, 6, filters),
    ):
        assert len(result[0].items) == 0
        check(result[1], search(model_log_probs(model, rows[1]), few, [6] * 3), few)


def test_widths_may_differ_by_level() -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(9), 300, 12, 3)
    model = tiny_model("qwen3", num_tokens)
    (prompt,) = prompts(10, 7)
    for share_prompt in (True, False):
        result = searched(model, padded([prompt]), constraint, [4, 9, 5], share_prompt=share_prompt)
        check(result, search(model_log_probs(model, prompt), plain, [4, 9, 5]), plain)


@pytest.mark.parametrize(
    ("kind", "share_prompt"), [("qwen3", True), ("qwen3", False), ("gpt2", None), ("t5", None)]
)
def test_beams_chosen_on_the_device_are_the_same(kind: str, share_prompt: bool | None) -> None:
    constraint, plain, catalog, num_tokens = catalog_pair(np.random.default_rng(23), 40, 6, 3)
    model = tiny_model(kind, num_tokens)
    tables = device_tables(constraint, DEVICE)
    rows = prompts(24, 9, 4, 6)
    names = [None, {f"item-{number}" for number in range(0, 40, 3)}, set()]
    filters = [None if each is None else catalog.items_with_ids(sorted(each)) for each in names]
    for width in ([9, 9, 9], [3, 50, 4]):
        for each in (None, filters):
            found = searched(
                model,
                padded(rows),
                constraint,
                width,
                filters=each,
                tables=tables,
                share_prompt=share_prompt,
            )
            for request, prompt, wanted in zip(found, rows, names, strict=True):
                few = plain if each is None or wanted is None else plain.filtered(wanted)
                check(request, search(model_log_probs(model, prompt), few, width), few)


@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "t5"])
def test_catalog_scores_are_normalised_over_the_codes_of_a_level(kind: str) -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(11), 90, 9, 3)
    model = tiny_model(kind, num_tokens)
    (prompt,) = prompts(12, 7)
    full = model_log_probs(model, prompt)

    def over_codes(prefix: tuple[int, ...]) -> np.ndarray:
        row = full(prefix)
        return row - np.log(np.exp(row[plain.code_tokens[len(prefix)]]).sum())

    check(
        searched(model, padded([prompt]), constraint, 8, scores="catalog"),
        search(over_codes, plain, [8] * 3),
        plain,
    )
    assert model.get_output_embeddings().weight.shape[0] == num_tokens, (
        "the model is left as it was"
    )


@pytest.mark.parametrize("share_prompt", [True, False])
def test_bfloat16_is_scored_in_float32(share_prompt: bool) -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(13), 60, 8, 3)
    model = tiny_model("qwen3", num_tokens).to(torch.bfloat16)
    (prompt,) = prompts(14, 6)
    result = searched(model, padded([prompt]), constraint, 10, share_prompt=share_prompt)
    assert result.scores.dtype == torch.float32
    rows = [tuple(row) for row in result.sequences.tolist()]
    assert len(set(rows)) == len(rows) == 10 and all(plain.decode([row])[0] for row in rows)
    log_probs = model_log_probs(model, prompt)
    exact = [sum(log_probs(row[:level])[row[level]] for level in range(3)) for row in rows]
    # Logits of eight bits, computed in other shapes: near, not equal.
    np.testing.assert_allclose(result.scores.tolist(), exact, atol=0.3)


def test_eager_attention_shares_the_prompt_too() -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(25), 60, 8, 3)
    model = tiny_model("llama", num_tokens)
    model.set_attn_implementation("eager")
    rows = prompts(26, 6, 3)
    result = searched(model, padded(rows), constraint, 10, share_prompt=True)
    for request, prompt in zip(result, rows, strict=True):
        check(request, search(model_log_probs(model, prompt), plain, [10] * 3), plain)


def test_a_processor_serves_one_generate_after_another() -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(15), 80, 8, 3)
    model = tiny_model("qwen3", num_tokens)
    processor = CatalogLogitsProcessor(constraint)
    # The same, a shorter, a longer prompt, and one that continues the longer one's text.
    rows = prompts(16, 6, 6, 3, 11)
    rows.append(torch.cat((rows[-1], rows[0][:1])))
    for prompt in rows:
        output = model.generate(
            **padded([prompt]), logits_processor=[processor], **exact_settings(constraint, 5)
        )
        check(
            beam_result(output, constraint),
            search(model_log_probs(model, prompt), plain, [5] * 3),
            plain,
        )


def test_rows_that_begin_no_item_are_denied_everything() -> None:
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(17), 30, 8, 3)
    row = next(iter(plain.rows.values()))
    ids = torch.tensor([[2, row[0]], [2, 3], [2, num_tokens + 9]])
    allowed = CatalogLogitsProcessor(constraint, prompt_length=1)(
        ids, torch.zeros((3, num_tokens + 2))
    )
    assert torch.isfinite(allowed[0]).nonzero().flatten().tolist() == plain.next_tokens(row[:1])
    assert not torch.isfinite(allowed[1:]).any()


def test_generating_past_an_item_is_an_error_that_says_what_to_set() -> None:
    constraint, _, _, num_tokens = catalog_pair(np.random.default_rng(18), 30, 8, 3)
    model = tiny_model("qwen3", num_tokens)
    settings = exact_settings(constraint, 4) | {"max_new_tokens": 5}
    with pytest.raises(ValueError, match="max_new_tokens=3"):
        model.generate(
            **padded(prompts(1, 4)),
            logits_processor=[CatalogLogitsProcessor(constraint)],
            **settings,
        )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"do_sample": True}, "do_sample"),
        ({"repetition_penalty": 1.1}, "repetition_penalty=1.1"),
        ({"renormalize_logits": True}, "renormalize_logits"),
        ({"no_repeat_ngram_size": 2}, "no_repeat_ngram_size"),
        ({"num_beams": 4}, "beam_width"),
        ({"max_new_tokens": 2}, "max_new_tokens=2"),
        ({"beam_width": 0}, "at least 1"),
        ({"beam_width": [3, 3]}, "2 beam widths for items of 3 levels"),
        ({"filters": [None, None]}, "2 filters for 1 requests"),
        ({"scores": "log"}, "'log'"),
        (
            {"logits_processor": [transformers.TemperatureLogitsWarper(0.5)]},
            "TemperatureLogitsWarper",
        ),
    ],
)
def test_settings_that_break_exactness_are_refused_by_name(
    setting: dict[str, Any], message: str
) -> None:
    constraint, _, _, num_tokens = catalog_pair(np.random.default_rng(19), 30, 8, 3)
    model = tiny_model("qwen3", num_tokens)
    arguments: dict[str, Any] = {
        "do_sample": False,
        "constraint": constraint,
        "beam_width": 3,
        "custom_generate": beam_search,
    } | setting
    with pytest.raises(ValueError, match=message):
        model.generate(**padded(prompts(1, 4)), **arguments)


def test_a_checkpoint_with_a_penalty_is_refused_before_generate() -> None:
    constraint, _, _, _ = catalog_pair(np.random.default_rng(20), 30, 8, 3)
    config = transformers.GenerationConfig(repetition_penalty=1.05, do_sample=True)
    with pytest.raises(
        ValueError, match=r"repetition_penalty=1.05 \(pass repetition_penalty=1.0\)"
    ):
        exact_settings(constraint, 4, generation_config=config)


def test_a_checkpoint_that_forces_its_last_token_names_items_all_the_same() -> None:
    """BART's shape: its generation config has the end token as the last of every text."""
    constraint, plain, _, num_tokens = catalog_pair(np.random.default_rng(27), 60, 8, 3)
    model = tiny_model("bart", num_tokens)
    assert model.generation_config.forced_eos_token_id == 2
    (prompt,) = prompts(28, 6)
    expected = search(model_log_probs(model, prompt), plain, [7] * 3)
    check(generated(model, padded([prompt]), constraint, 7), expected, plain)
    check(
        searched(model, padded([prompt]), constraint, 7, forced_eos_token_id=None), expected, plain
    )
    with pytest.raises(ValueError, match=r"forced_eos_token_id=2 \(pass forced_eos_token_id=None\)"):
        searched(model, padded([prompt]), constraint, 7)


def test_a_model_smaller_than_the_constraint_is_refused() -> None:
    constraint, _, _, num_tokens = catalog_pair(np.random.default_rng(21), 30, 8, 3)
    with pytest.raises(
        ValueError, match=f"over {num_tokens} tokens and the model scores {num_tokens - 3}"
    ):
        searched(tiny_model("qwen3", num_tokens - 3), padded(prompts(1, 4)), constraint, 3)


def test_items_of_several_lengths_are_refused() -> None:
    constraint = palmette.Catalog.build([[1, 2, 3], [1, 2], [4]]).constraint([(8, 8)] * 3)
    model = tiny_model("qwen3", 16)
    with pytest.raises(ValueError, match="item '2' has 1 codes where others have 3"):
        searched(model, padded(prompts(1, 4)), constraint, 3)
    with pytest.raises(ValueError, match="item '2' has 1 codes where others have 3"):
        generated(model, padded(prompts(1, 4)), constraint, 3)
    with pytest.raises(ValueError, match="fewer than 3 codes"):
        device_tables(constraint)


def test_a_model_that_computes_nan_is_an_error() -> None:
    constraint, _, _, num_tokens = catalog_pair(np.random.default_rng(22), 30, 8, 3)
    model = tiny_model("llama", num_tokens)
    with torch.no_grad():
        model.get_output_embeddings().weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="level 0 are not numbers"):
        searched(model, padded(prompts(1, 4)), constraint, 3)


def test_code_tokens_are_found_by_their_texts() -> None:
    class Tokenizer:
        def get_vocab(self) -> dict[str, int]:
            return {
                "<a_0>": 7,
                "<a_1>": 5,
                "<a_2>": 9,
                "<b_0>": 4,
                "<b_2>": 3,
                "<b_02>": 8,
                "a": 0,
                "<a_x>": 1,
            }

    assert [tokens.tolist() for tokens in code_tokens(Tokenizer(), 2)] == [[7, 5, 9], [4, -1, 3]]
    assert [tokens.tolist() for tokens in code_tokens(Tokenizer(), ["<a_{}>"], num_codes=2)] == [
        [7, 5]
    ]
    with pytest.raises(ValueError, match="'<b_1>', which is one of 3 codes"):
        code_tokens(Tokenizer(), 2, num_codes=3)
    with pytest.raises(ValueError, match="'<c_{}>'"):
        code_tokens(Tokenizer(), 3)
    with pytest.raises(ValueError, match="one {}"):
        code_tokens(Tokenizer(), ["<a_>"])
