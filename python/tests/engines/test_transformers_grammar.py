"""Grammars in transformers under beams, against all texts of small languages, scored one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is not installed: grammars in transformers are untested"
)
pytest.importorskip(
    "transformers", reason="transformers is not installed: grammars in it are untested"
)

import palmette  # noqa: E402
from models import PAD, model_log_probs, tiny_model  # noqa: E402
from palmette.transformers import GrammarLogitsProcessor, text_results  # noqa: E402
from reference import DEVICE  # noqa: E402

# PAD, two tokens that are no text, then texts; the last token ends. Some texts can be written in several ways.
TEXTS = [None, None, None, b"a", b"b", b"c", b"ab", b"ba", b"abc", b"(", b")", b"()", b"aa"]
END = len(TEXTS)
VOCABULARY = palmette.Vocabulary([*TEXTS, None], ends=[END])

Row = tuple[tuple[int, ...], float]


def all_rows(
    log_probs: Callable[[tuple[int, ...]], np.ndarray],
    texts: Sequence[bytes],
    longest: int,
    goes_on: Callable[[tuple[int, ...]], bool] = lambda prefix: True,
) -> list[Row]:
    """Every row of tokens that `generate` may return: ended within `longest` tokens, or cut there; best first.

    `goes_on` are the beginnings that may be written.
    """
    found: list[Row] = []

    def visit(prefix: tuple[int, ...], text: bytes, score: float) -> None:
        if len(prefix) == longest:
            found.append((prefix, score))
            return
        row = log_probs(prefix)
        if text in texts:
            found.append((prefix + (END,), score + float(row[END])))
        for token, piece in enumerate(TEXTS):
            if (
                piece is not None
                and any(each.startswith(text + piece) for each in texts)
                and goes_on(prefix + (token,))
            ):
                visit(prefix + (token,), text + piece, score + float(row[token]))

    visit((), b"", 0.0)
    return sorted(found, key=lambda each: -each[1])


def nested(depth: int) -> list[bytes]:
    """Texts of `s: "(" s ")" | "a" | s s` cut to a length that the test cannot pass."""
    shapes = {b"a"}
    for _ in range(depth):
        shapes |= {b"(" + each + b")" for each in shapes} | {
            x + y for x, y in itertools.product(shapes, shapes) if len(x + y) <= 12
        }
        shapes = {each for each in shapes if len(each) <= 12}
    return sorted(shapes)


LANGUAGES = {
    "choices": (
        lambda: palmette.Grammar.from_choices(["abc", "aab", "ba", "b", "caa"]),
        [b"abc", b"aab", b"ba", b"b", b"caa"],
        4,
    ),
    "regex": (
        lambda: palmette.Grammar.from_regex("(ab|ba)+c?"),
        [
            b"".join(parts) + tail
            for n in range(1, 6)
            for parts in itertools.product([b"ab", b"ba"], repeat=n)
            for tail in (b"", b"c")
        ],
        3,
    ),
    "nested": (
        lambda: palmette.Grammar.from_gbnf('root ::= one+\none ::= "(" one+ ")" | "a"\n'),
        nested(4),
        3,
    ),
}


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("finish", ["promised", "cut"])
@pytest.mark.parametrize("seed", range(2))
def test_beams_find_the_best_texts_of_all(name: str, seed: int, finish: str) -> None:
    make, texts, longest = LANGUAGES[name]
    compiled = make().compile(VOCABULARY)

    def in_time(prefix: tuple[int, ...]) -> bool:
        matcher = compiled.matcher()
        matcher.commit_all(prefix)
        needed = matcher.fewest_tokens()
        return finish == "cut" or (needed is not None and needed <= longest - len(prefix))

    model = tiny_model("qwen3", len(TEXTS) + 1, seed)
    prompts = torch.tensor([[1, 2, 1, 5], [2, 2, 4, 1]], device=DEVICE)
    processor = GrammarLogitsProcessor(compiled, finish=finish)
    output = generate(model, prompts, compiled, longest, 120, processor=processor)
    for prompt, found in zip(
        prompts, text_results(output, compiled, 4, num_requests=2), strict=True
    ):
        expected = all_rows(model_log_probs(model, prompt), texts, longest, in_time)
        whole = [VOCABULARY.decode([t for t in row if t != END]) in texts for row, _ in expected]
        may_be_cut = finish == "cut" and name != "choices"
        assert all(whole) != may_be_cut, "some are cut off where they may be, and none else"
        assert len(expected) <= 120, "beams have to hold all, or the search is not exhaustive"
        assert [(each.tokens, each.is_complete) for each in found] == [
            (list(row)[: row.index(END) if END in row else None], is_whole)
            for (row, _), is_whole in zip(expected, whole, strict=True)
        ]
        np.testing.assert_allclose(
            [each.score for each in found], [score for _, score in expected], atol=1e-4
        )
        assert all(
            each.text == b"".join(TEXTS[token] or b"?" for token in each.tokens) for each in found
        )


def generate(
    model: Any, ids: torch.Tensor, compiled: Any, longest: int, num_beams: int, **more: Any
) -> Any:
    return model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[more.pop("processor", None) or GrammarLogitsProcessor(compiled)],
        **{
            "max_new_tokens": longest,
            "eos_token_id": END,
            "pad_token_id": PAD,
            "num_beams": num_beams,
            "num_return_sequences": num_beams,
            "do_sample": False,
            "early_stopping": "never",
            "length_penalty": 0.0,
            "return_dict_in_generate": True,
            "output_scores": True,
        }
        | more,
    )


def test_narrow_beams_return_texts_of_the_grammar_only() -> None:
    compiled = palmette.Grammar.from_gbnf('root ::= one+\none ::= "(" one+ ")" | "a"\n').compile(
        VOCABULARY
    )
    for seed in range(4):
        output = generate(
            tiny_model("gpt2", len(TEXTS) + 1, seed),
            torch.tensor([[1, 2]], device=DEVICE),
            compiled,
            6,
            5,
        )
        (found,) = text_results(output, compiled, 2)
        assert found and len({tuple(each.tokens) + (each.is_complete,) for each in found}) == len(
            found
        )
        for each in found:
            depths = list(
                itertools.accumulate(
                    {"(": 1, ")": -1, "a": 0}[character] for character in each.text.decode()
                )
            )
            assert min(depths) >= 0 and b"()" not in each.text, each
            assert depths[-1] == 0 and each.is_complete, each


def test_a_processor_serves_one_generate_after_another() -> None:
    compiled = palmette.Grammar.from_choices(["abc", "aab"]).compile(VOCABULARY)
    model = tiny_model("qwen3", len(TEXTS) + 1)
    processor = GrammarLogitsProcessor(compiled)
    for prompt in ([1, 2], [1, 2], [2], [1, 2, 1, 1, 1]):
        ids = torch.tensor([prompt], device=DEVICE)
        again = generate(model, ids, compiled, 4, 8, processor=processor)
        fresh = generate(model, ids, compiled, 4, 8)
        assert text_results(again, compiled, len(prompt)) == text_results(
            fresh, compiled, len(prompt)
        )


def test_a_sampled_batch_with_ended_rows_goes_on() -> None:
    compiled = palmette.Grammar.from_choices(["b", "abababab"]).compile(VOCABULARY)
    model = tiny_model("llama", len(TEXTS) + 1)
    torch.manual_seed(1)
    output = generate(
        model,
        torch.tensor([[1, 2]] * 16, device=DEVICE),
        compiled,
        9,
        1,
        num_return_sequences=1,
        do_sample=True,
        temperature=50.0,
        early_stopping=False,
    )
    texts = {
        VOCABULARY.decode([token for token in row[2:] if token not in (END, PAD)])
        for row in output.sequences.tolist()
    }
    assert texts == {b"b", b"abababab"}
