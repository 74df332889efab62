"""Beams that share a prompt: merged attention against tree attention, a repeated cache and `generate`, on random models."""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: shared prompts are untested")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: shared prompts are untested"
)

from models import PAD, catalog_pair, sharpen  # noqa: E402
from palmette.transformers import (  # noqa: E402
    BeamResult,
    CatalogLogitsProcessor,
    attention,
    beam_result,
    beam_search,
    exact_settings,
    forward,
)
from reference import DEVICE  # noqa: E402
from tree_attention import tree_attention  # noqa: E402

KINDS = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    forward._say_once.cache_clear()
    attention._say_once.cache_clear()


def random_model(kind: str, rng: np.random.Generator, num_tokens: int, **more: Any) -> Any:
    """A model of 1 to 3 layers with heads of random sizes and groups."""
    torch.manual_seed(int(rng.integers(1 << 30)))
    key_heads, groups = int(rng.choice([1, 2, 3])), int(rng.choice([1, 2, 4]))
    size = int(rng.choice([4, 8, 12]))
    heads, layers = key_heads * groups, int(rng.integers(1, 4))
    shared: dict[str, Any] = {
        "vocab_size": num_tokens, "pad_token_id": PAD, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    if kind == "gpt2":
        config: Any = transformers.GPT2Config(
            **shared, n_embd=heads * size, n_layer=layers, n_head=heads, n_positions=64,
            scale_attn_by_inverse_layer_idx=bool(rng.integers(2)),
        )  # fmt: skip
    else:
        named = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}[kind]
        if kind == "mistral":
            more.setdefault("sliding_window", None)
        config = getattr(transformers, f"{named}Config")(
            **shared, hidden_size=heads * size, intermediate_size=2 * heads * size,
            num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=key_heads,
            head_dim=size, attn_implementation=str(rng.choice(["sdpa", "eager"])), **more,
        )  # fmt: skip
    return sharpen(transformers.AutoModelForCausalLM.from_config(config))


def random_batch(rng: np.random.Generator, *lengths: int) -> dict[str, torch.Tensor]:
    """Prompts padded on the left."""
    width = max(lengths)
    ids = torch.full((len(lengths), width), PAD)
    for row, length in enumerate(lengths):
        ids[row, width - length :] = torch.from_numpy(rng.integers(2, 8, size=length))
    mask = torch.tensor([[0] * (width - length) + [1] * length for length in lengths])
    return {"input_ids": ids.to(DEVICE), "attention_mask": mask.to(DEVICE)}


def searched(model: Any, batch: Any, constraint: Any, width: Any, **more: Any) -> BeamResult:
    return model.generate(
        **batch, do_sample=False, max_new_tokens=constraint.num_levels, custom_generate=beam_search,
        constraint=constraint, beam_width=width, **more,
    )  # fmt: skip


def check(ours: BeamResult, theirs: BeamResult, tolerance: float = 2e-5) -> None:
    """The same scores in the same places, and the same items where scores are not near enough to change places."""
    assert ours.offsets == theirs.offsets
    np.testing.assert_allclose(ours.scores.tolist(), theirs.scores.tolist(), atol=tolerance, rtol=2e-6)
    for one, other in zip(ours, theirs, strict=True):
        rows = {tuple(row): score for row, score in zip(other.sequences.tolist(), other.scores.tolist())}
        last = min(rows.values(), default=0.0)
        for row, score in zip(one.sequences.tolist(), one.scores.tolist(), strict=True):
            assert abs(rows.get(tuple(row), last) - score) <= 2 * tolerance + 4e-6 * abs(score)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_merged_attention_equals_tree_attention_and_generate(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(kind)])
    levels = int(rng.integers(2, 5))
    constraint, _, catalog, num_tokens = catalog_pair(rng, 120, 6, levels)
    model = random_model(kind, rng, num_tokens)
    batch = random_batch(rng, *rng.integers(1, 20, size=int(rng.integers(1, 4))).tolist())
    filters = [
        None if rng.random() < 0.5 else catalog.items_with_ids([f"item-{n}" for n in range(0, 120, 7)])
        for _ in batch["input_ids"]
    ]
    width = int(rng.integers(2, 20))
    with torch.inference_mode():
        ours = searched(model, batch, constraint, width, filters=filters, share_prompt=True)
        with tree_attention():
            check(ours, searched(model, batch, constraint, width, filters=filters))
        check(ours, searched(model, batch, constraint, width, filters=filters, share_prompt=False))
        output = model.generate(
            **batch,
            logits_processor=[CatalogLogitsProcessor(constraint, filters=filters, num_beams=width)],
            **exact_settings(constraint, width),
        )
        check(ours, beam_result(output, constraint, len(filters), filters))


@pytest.mark.parametrize("holes", [[(0, 3)], [(1, 0), (1, 1), (1, 5)], [(0, 7)]])
def test_padding_that_is_not_on_the_left_is_masked(holes: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(11)
    constraint, _, _, num_tokens = catalog_pair(rng, 120, 6, 3)
    model, batch = random_model("qwen3", rng, num_tokens), random_batch(rng, 8, 8)
    for row, place in holes:
        batch["attention_mask"][row, place] = 0
    ours = searched(model, batch, constraint, 9, share_prompt=True)
    with tree_attention():
        check(ours, searched(model, batch, constraint, 9))


def test_padding_is_told_by_its_starts() -> None:
    def of(*rows: list[int]) -> attention.Padding:
        return attention.Padding.from_mask(torch.tensor(rows))

    assert of([1, 1], [1, 1]) == attention.Padding() == attention.Padding.from_mask(None)
    assert of([0, 1, 1], [1, 1, 1], [0, 0, 1]) == attention.Padding([1, 0, 2])
    for mixed in ([1, 0, 1], [1, 1, 0], [0, 0, 0]):
        assert of([1, 1, 1], mixed) == attention.Padding(is_mixed=True)


@pytest.mark.parametrize("kind", KINDS)
def test_half_floats_differ_by_their_rounding_alone(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    constraint, _, _, num_tokens = catalog_pair(rng, 40, 6, 3)
    model = random_model(kind, rng, num_tokens).to(torch.bfloat16)
    batch = random_batch(rng, 12, 5)
    # All items are found, so that none is decided by a rounding.
    ours = searched(model, batch, constraint, 60, share_prompt=True)
    with tree_attention():
        tree = searched(model, batch, constraint, 60)
    exact = searched(model.float(), batch, constraint, 60, share_prompt=True)
    for one, other, plain in zip(ours, tree, exact, strict=True):
        scores = [
            {tuple(row): score for row, score in zip(each.sequences.tolist(), each.scores.tolist())}
            for each in (one, other, plain)
        ]
        assert scores[0].keys() == scores[1].keys() == scores[2].keys()
        for row, score in scores[2].items():
            assert abs(scores[0][row] - score) < 0.3 and abs(scores[1][row] - score) < 0.3


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_sums_are_those_of_the_definition(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    requests, heads, rows, length, size = (int(n) for n in rng.integers(1, 40, size=5))
    query, keys, values = (
        torch.randn(requests, heads, n, size, device=DEVICE).to(dtype) for n in (rows, length, length)
    )
    hidden = torch.rand(requests, 1, 1, length, device=DEVICE) < 0.4
    hidden[..., -1] = False
    mask = torch.zeros(hidden.shape, device=DEVICE).masked_fill_(hidden, torch.finfo(dtype).min)
    for each in (None, mask):
        out, sums = attention.attention_with_log_sums(query, keys, values, each, 0.3)
        scores = query.double() @ keys.double().transpose(-1, -2) * 0.3
        if each is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        tolerance = 1e-5 if dtype == torch.float32 else 0.05
        torch.testing.assert_close(sums.double(), scores.logsumexp(-1), atol=tolerance, rtol=tolerance)
        wanted = scores.softmax(-1) @ values.double()
        torch.testing.assert_close(out.double(), wanted, atol=tolerance, rtol=tolerance)


def test_a_kernel_that_refuses_is_named_once_and_done_without(
    monkeypatch: Any, caplog: Any
) -> None:
    def refuses(*_: Any) -> Any:
        raise RuntimeError("no heads of this size")

    torch.manual_seed(1)
    query, keys = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    expected = attention.attention_with_log_sums(query, keys, keys, None, 0.5)
    monkeypatch.setattr(attention, "_kernel", lambda *_: refuses)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            found = attention.attention_with_log_sums(query, keys, keys, None, 0.5)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert [record.message.count("no heads of this size") for record in caplog.records] == [1]


def test_a_window_that_is_not_full_is_no_window_and_a_full_one_is_said(caplog: Any) -> None:
    rng = np.random.default_rng(5)
    constraint, _, _, num_tokens = catalog_pair(rng, 60, 6, 3)
    for kind, more in (
        ("mistral", {"sliding_window": 12}),
        ("qwen3", {"sliding_window": 12, "use_sliding_window": True, "max_window_layers": 0}),
    ):
        model = random_model(kind, rng, num_tokens, **more)
        short, long = random_batch(rng, 9, 4), random_batch(rng, 10)
        caplog.clear()
        shared = searched(model, short, constraint, 9, share_prompt=True)
        check(shared, searched(model, short, constraint, 9, share_prompt=False))
        check(shared, searched(model, short, constraint, 9))
        assert not caplog.records
        with pytest.raises(ValueError, match="share_prompt=True: layer 0 has a sliding window of 12"):
            searched(model, long, constraint, 9, share_prompt=True)
        for _ in range(2):
            found = searched(model, long, constraint, 9)
        said = [record.message for record in caplog.records]
        assert len(said) == 1 and "layer 0 has a sliding window of 12 tokens, which is full" in said[0]
        output = model.generate(
            **long, logits_processor=[CatalogLogitsProcessor(constraint)], **exact_settings(constraint, 9)
        )
        check(found, beam_result(output, constraint))


def test_a_module_with_a_forward_of_its_own_repeats_the_prompt(caplog: Any) -> None:
    rng = np.random.default_rng(6)
    constraint, _, _, num_tokens = catalog_pair(rng, 60, 6, 3)
    model, batch = random_model("qwen3", rng, num_tokens), random_batch(rng, 6)
    expected = searched(model, batch, constraint, 9)
    layer = model.model.layers[0].self_attn
    layer.forward = layer.forward  # As wrappers set it.
    check(searched(model, batch, constraint, 9), expected)
    assert "'model.layers.0.self_attn' has a forward of its own" in caplog.text
    with pytest.raises(ValueError, match="forward of its own"):
        searched(model, batch, constraint, 9, share_prompt=True)


def test_attention_that_is_not_the_configurations_is_an_error() -> None:
    rng = np.random.default_rng(7)
    constraint, _, _, num_tokens = catalog_pair(rng, 60, 6, 3)
    model, batch = random_model("llama", rng, num_tokens), random_batch(rng, 6)
    attend = type(model.model.layers[0].self_attn)

    class Own(attend):  # type: ignore[misc, valid-type]
        def forward(self, hidden_states: Any, **arguments: Any) -> Any:
            arguments.pop("shared_prompt", None)
            return hidden_states, None

    model.model.layers[0].self_attn.__class__ = Own
    with pytest.raises(ValueError, match="attends in a way of its own .* pass share_prompt=False"):
        searched(model, batch, constraint, 9)
    assert len(searched(model, batch, constraint, 9, share_prompt=False).items) == 9


def test_other_models_share_where_it_is_asked_for_and_refuse_what_is_not_known() -> None:
    rng = np.random.default_rng(10)
    constraint, _, _, num_tokens = catalog_pair(rng, 60, 6, 3)
    shared: dict[str, Any] = {
        "vocab_size": num_tokens, "pad_token_id": PAD, "bos_token_id": None, "eos_token_id": None, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    }  # fmt: skip
    torch.manual_seed(1)
    batch = random_batch(rng, 9, 4)
    model = sharpen(transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**shared)))
    check(
        searched(model, batch, constraint, 9, share_prompt=True),
        searched(model, batch, constraint, 9),
    )
    capped = transformers.Gemma2Config(
        **shared, num_key_value_heads=2, head_dim=8, attn_logit_softcapping=5.0, sliding_window=64,
        query_pre_attn_scalar=8,
    )  # fmt: skip
    model = sharpen(transformers.Gemma2ForCausalLM(capped))
    with pytest.raises(ValueError, match="attends with softcap, .* pass share_prompt=False"):
        searched(model, batch, constraint, 9, share_prompt=True)


def test_other_threads_use_the_model_meanwhile() -> None:
    rng = np.random.default_rng(8)
    constraint, _, _, num_tokens = catalog_pair(rng, 60, 6, 3)
    model, batch = random_model("qwen3", rng, num_tokens), random_batch(rng, 9, 4)
    before = model.config._attn_implementation
    ways = [
        lambda: searched(model, batch, constraint, 9),
        lambda: beam_result(
            model.generate(
                **batch, logits_processor=[CatalogLogitsProcessor(constraint)], **exact_settings(constraint, 9)
            ),
            constraint,
            2,
        ),
    ]
    expected = [way() for way in ways]
    problems: list[BaseException] = []

    def run(way: int) -> None:
        try:
            for _ in range(4):
                check(ways[way](), expected[way], 1e-6)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and model.config._attn_implementation == before


def test_prompts_keys_are_neither_copied_nor_changed() -> None:
    rng = np.random.default_rng(9)
    constraint, _, _, num_tokens = catalog_pair(rng, 60, 6, 3)
    model, batch = random_model("llama", rng, num_tokens), random_batch(rng, 15)
    seen: list[tuple[Any, ...]] = []
    kept = forward.BeamCache

    class Watched(kept):  # type: ignore[misc, valid-type]
        def begin_step(self, parents: Any) -> None:
            super().begin_step(parents)
            seen.append(tuple(layer.prompt_keys.data_ptr() for layer in self.layers))

    forward.BeamCache = Watched
    try:
        searched(model, batch, constraint, 9)
    finally:
        forward.BeamCache = kept
    assert len(seen) == 2 and seen[0] == seen[1]
