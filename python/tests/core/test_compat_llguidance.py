"""llguidance's names: what they do is what Palmette's classes do, and what is not done is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import palmette
from palmette.compat import llguidance
from palmette.compat.llguidance import LLExecutor, LLInterpreter, LLMatcher, LLParserLimits, LLTokenizer, StructTag
from palmette.compat.llguidance import numpy as masks


@pytest.fixture(scope="module")
def tokenizer():
    return LLTokenizer("byte")


def accepts(tokenizer, grammar, text):
    matcher = LLMatcher(tokenizer, grammar)
    assert not matcher.is_error(), matcher.get_error()
    tokens = tokenizer.tokenize_bytes(text if isinstance(text, bytes) else text.encode())
    for token in tokens:
        bias = matcher.compute_logit_bias()
        if bias[token] == 0:
            assert matcher.validate_tokens([token]) == 0
            return False
        assert matcher.consume_token(token)
    return matcher.is_accepting()


def test_tokenizers_cut_and_join(tokenizer):
    assert tokenizer.vocab_size == 262 and tokenizer.eos_token == 261 and tokenizer.eos_tokens == [261]
    assert tokenizer.tokenize_str("wave 👋") == list("wave 👋".encode())
    assert tokenizer.tokenize_bytes(b"a\xff<|tool|>b\xff[13]") == [97, 256, 98, 13]
    assert tokenizer.tokenize_str("a<|tool|>") == list(b"a<|tool|>")
    assert tokenizer.tokenize_str("a<|tool|>", parse_special=True) == [97, 256]
    assert tokenizer.decode_str([97, 256]) == "a<|tool|>" and tokenizer.is_special_token(256)
    assert tokenizer.dbg_tokens([97, 98]) == '"a‧b"'

    class Cutter:
        tokens = [b"a", b"ab", b"b", b"\xff<end>", b"\xff<stop>"]
        eos_token_id = 3
        bos_token_id = None

        def __call__(self, text):
            return [self.tokens.index(bytes([byte])) for byte in text.encode()]

    made = LLTokenizer(Cutter(), n_vocab=9, eos_token=[3, 4])
    assert made.eos_tokens == [3, 4] and made.vocab_size == 9
    assert made.tokenize_str("abb") == [0, 2, 2] and made.greedy_tokenize("abb") == [1, 2]
    with pytest.raises(ValueError, match="not downloaded"):
        LLTokenizer("some/model")


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('start: /.../ "abc"', ["🔵🟠✅abc"], ["aabc"]),
        (LLMatcher.grammar_from_regex(r"\d+"), ["12"], ["a", ""]),
        (llguidance.grammar_from("gbnf", 'root ::= "a" root | "b"'), ["aab"], ["c"]),
        (llguidance.grammar_from("ebnf", 'start: "a"'), ["a"], ["b"]),
        (llguidance.grammar_from("choice", '["x", "y\\"z"]'), ["x", 'y"z'], ["z"]),
        (llguidance.grammar_from("json_schema", '{"type": "boolean"}'), ["true"], ["1"]),
        (llguidance.grammar_from("llguidance", '{"grammars": [{"lark_grammar": "start: \\"a\\""}]}'), ["a"], ["b"]),
    ],
)
def test_languages(tokenizer, grammar, good, bad):
    assert all(accepts(tokenizer, grammar, text) for text in good)
    assert not any(accepts(tokenizer, grammar, text) for text in bad)
    assert LLMatcher.validate_grammar(grammar, tokenizer) == LLMatcher.validate_grammar(grammar) == ""


def test_options_of_schemas(tokenizer):
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"]}
    free = LLMatcher.grammar_from_json_schema(schema)
    tight = LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": False})
    spaced = LLMatcher.grammar_from_json_schema(
        {**schema, "x-guidance": {"whitespace_flexible": False}}, defaults={"item_separator": ", ", "key_separator": ": "}
    )
    texts = ['{ "a" : 1,\n"b":2}', '{"a":1,"b":2}', '{"a": 1, "b": 2}']
    assert [accepts(tokenizer, free, text) for text in texts] == [True, True, True]
    assert [accepts(tokenizer, tight, text) for text in texts] == [False, True, False]
    assert [accepts(tokenizer, spaced, text) for text in texts] == [False, False, True]
    assert not accepts(tokenizer, free, '{"b":2,"a":1}'), "properties come in the order of the schema"
    unknown = {"type": "string", "format": "my_custom_format"}
    assert "my_custom_format" in LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(unknown)).get_error()
    lenient = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(unknown, overrides={"lenient": True}))
    assert not lenient.is_error() and "my_custom_format" in lenient.get_grammar_warnings()[0]


def test_errors_stay(tokenizer):
    wrong = LLMatcher(tokenizer, "start: no_such_rule")
    assert wrong.is_error() and "no_such_rule" in wrong.get_error() and wrong.is_stopped()
    assert not wrong.consume_token(97) and wrong.stop_reason() == "InternalError"
    assert wrong.compute_logit_bias()[tokenizer.eos_token] == 200, "the sequence may end"
    matcher = LLMatcher(tokenizer, 'start: "ab"')
    other = matcher.deep_copy()
    assert not matcher.consume_token(ord("b")) and "doesn't satisfy the grammar" in matcher.get_error()
    assert not matcher.consume_token(ord("a"))
    assert not other.is_error() and other.consume_token(ord("a"))
    assert not other.consume_token(5000) and "out of range" in other.get_error()


def test_walk_back_and_stop(tokenizer):
    matcher = LLMatcher(tokenizer, 'start: "fo" ("o123" | "x")')
    assert matcher.compute_ff_bytes() == b"fo" and matcher.compute_ff_tokens() == list(b"fo")
    assert matcher.try_consume_tokens(list(b"foo9")) == 3
    assert matcher.validate_tokens(list(b"12x")) == 2
    assert matcher.rollback(1) and matcher.consume_tokens(list(b"x"))
    assert matcher.is_accepting() and matcher.is_stopped() and matcher.stop_reason() == "NoExtension"
    assert matcher.consume_token(tokenizer.eos_token) and matcher.stop_reason() == "EndOfSentence"
    assert matcher.rollback(2) and matcher.stop_reason() == "NotStopped"
    assert matcher.reset() and matcher.compute_ff_bytes() == b"fo"
    assert not matcher.rollback(1) and matcher.is_error()


def test_batches(tokenizer):
    executor = LLExecutor(2)
    matchers = [LLMatcher(tokenizer, text) for text in ("start: /[a-z]+/", "start: /[0-9]/ /[a-z]/", 'start: "q"')]
    mask = masks.allocate_token_bitmask(4, tokenizer.vocab_size)
    masks.fill_next_token_bitmask_par(executor, list(zip(matchers, [3, 0, 1])), mask)
    for row, matcher in zip([3, 0, 1], matchers):
        assert mask[row].tobytes() == matcher.compute_bitmask()
    assert (mask[2] == -1).all()
    drafts = masks.allocate_token_bitmask(4, tokenizer.vocab_size)
    masks.fill_next_token_bitmask_par_with_draft_tokens(executor, [(matchers[1], 0, list(b"1bb"))], drafts)
    walked = matchers[1].deep_copy()
    for row, token in enumerate(b"1b"):
        assert drafts[row].tobytes() == walked.compute_bitmask()
        walked.consume_token(token)
    assert drafts[2].tobytes() == walked.compute_bitmask() and (drafts[3] == -1).all()
    assert masks.consume_token_par(executor, [(one, ord("q")) for one in matchers]) == [True, False, True]
    address, width = mask.ctypes.data, 4 * mask.shape[1]
    matchers[0].unsafe_compute_mask_ptr(address, width)
    assert mask[0].tobytes() == matchers[0].compute_bitmask()
    with pytest.raises(ValueError, match="Null pointer"):
        matchers[0].unsafe_compute_mask_ptr(0, width)
    with pytest.raises(ValueError, match="Invalid buffer size"):
        matchers[0].unsafe_compute_mask_ptr(address, width + 4)
    with pytest.raises(RuntimeError, match="Already borrowed"):
        masks.fill_next_token_bitmask_par(executor, [(matchers[0], 0), (matchers[0], 1)], mask)
    with pytest.raises(ValueError, match="out of bounds"):
        masks.fill_next_token_bitmask_par(executor, [(matchers[0], 4)], mask)


def test_logits(tokenizer):
    logits = np.zeros((1, 70), np.float32)
    masks.apply_token_bitmask_inplace(logits, np.array([[5, 1]], np.int32))
    assert np.flatnonzero(np.isfinite(logits[0])).tolist() == [0, 2, 32]


@pytest.mark.parametrize("special", [False, True])
def test_structural_tags(tokenizer, special):
    tags = [
        StructTag(trigger="<func", begin="<func=foo>", grammar={"type": "object"}, end="</func>"),
        StructTag(trigger="<|tool|>", begin="<|tool|>add(", grammar='start: NUM ("," NUM)*\nNUM: /[0-9]+/', end=")"),
    ]
    grammar = StructTag.to_grammar(tags, assume_special=special)
    for text in ("no calls", "a <func=foo>{}</func> b", "</func>"):
        assert accepts(tokenizer, grammar, text)
    assert not accepts(tokenizer, grammar, "<func=foo>1</func>")
    call = b"\xff<|tool|>add(1,23)" if special else b"<|tool|>add(1,23)"
    assert accepts(tokenizer, grammar, call)
    assert not accepts(tokenizer, grammar, call.replace(b"23", b"x"))


def test_interpreter_tells_what_is_forced(tokenizer):
    interpreter = LLInterpreter(tokenizer, 'start: /[ab]/ "cd" /[0-9]/')
    assert interpreter.process_prompt([1, 2]) == [1, 2]
    mask, report = interpreter.compute_mask()
    assert mask is not None and json.loads(report)["stop"] is False
    assert interpreter.commit_token(ord("a")) == (0, list(b"acd"))
    assert not interpreter.has_pending_stop()
    assert interpreter.commit_token(ord("7")) == (0, list(b"7")) and interpreter.has_pending_stop()
    assert interpreter.compute_mask()[0] is None
    with pytest.raises(ValueError, match="no_such"):
        LLInterpreter(tokenizer, "start: no_such")


def test_expressions_between_slashes():
    assert llguidance.regex_to_lark(r"\d/\w", "dw") == r"[0-9]\/[0-9a-zA-Z_]"
    assert llguidance.regex_to_lark(r"[\d-]\D", "d") == r"[0-9-][^0-9]"
    assert llguidance.regex_to_lark("a\nb", "") == r"a\nb"


@pytest.mark.parametrize(
    "grammar",
    [
        json.dumps({"grammars": [{"lark_grammar": "start: @b"}, {"name": "b", "json_schema": {}}]}),
        LLMatcher.grammar_from_json_schema({}, overrides={"whitespace_pattern": "[ ]?"}),
        LLMatcher.grammar_from_json_schema({}, overrides={"item_separator": ";"}),
    ],
)
def test_what_is_not_done_is_said(tokenizer, grammar):
    assert len(LLMatcher(tokenizer, grammar).get_error()) > 20
    assert LLMatcher.validate_grammar(grammar)


def test_names_that_are_wrong(tokenizer):
    with pytest.raises(NotImplementedError, match="captures"):
        LLMatcher(tokenizer, 'start: "a"').get_captures()
    with pytest.raises(ValueError, match="no grammar format 'bnf'"):
        llguidance.grammar_from("bnf", "")
    with pytest.raises(TypeError, match="no limit 'max_fuel'"):
        LLParserLimits(max_fuel=3)
    assert LLParserLimits(max_items_in_row=7).max_items_in_row == 7
    assert isinstance(LLMatcher(tokenizer, 'start: "a"').palmette, palmette.Matcher)
