"""XGrammar's names: what they do is what Palmette's classes do, and what is not done is said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import palmette
from palmette.compat import xgrammar as xgr

TOKENS = ["<s>", "</s>", "a", "abc", 'b"', '"', ':"', "{", "}", ", ", "6", ":", "\n", " ", '"a":true', "true"]


@pytest.fixture(scope="module")
def info():
    return xgr.TokenizerInfo(TOKENS, stop_token_ids=[1])


@pytest.fixture(scope="module")
def compiler(info):
    return xgr.GrammarCompiler(info)


def rows(num_rows, info_):
    return np.full(xgr.get_bitmask_shape(num_rows, info_.vocab_size), -1, np.int32)


def allowed(matcher, info_):
    mask = rows(2, info_)
    matcher.fill_next_token_bitmask(mask, 1)
    assert (mask[0] == -1).all()
    return {TOKENS[token] for token in range(len(TOKENS)) if mask[1, token // 32] >> (token % 32) & 1}


def accepts(grammar, text):
    empty = xgr.TokenizerInfo([])
    compiled = xgr.GrammarCompiler(empty, cache_enabled=False).compile_grammar(grammar)
    matcher = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
    return matcher.accept_string(text) and matcher.is_terminated()


def test_a_matcher_walks_forks_and_goes_back(compiler, info):
    compiled = compiler.compile_json_schema(
        {"type": "object", "properties": {"a": {"const": True}}, "required": ["a"]}, any_whitespace=False, separators=(",", ":")
    )
    matcher = xgr.GrammarMatcher(compiled)
    assert allowed(matcher, info) == {"{"}
    assert matcher.accept_token(TOKENS.index("{"))
    assert not matcher.accept_token(TOKENS.index("}"))
    assert allowed(matcher, info) == {'"', '"a":true'}
    assert matcher.find_jump_forward_string() == '"a":true}'
    fork = matcher.fork()
    assert fork.accept_string('"a":t')
    assert fork.find_jump_forward_string() == "rue}"
    fork.rollback(1)
    assert allowed(fork, info) == allowed(matcher, info)
    for token in ('"a":true', "}"):
        assert not matcher.is_completed() and matcher.accept_token(TOKENS.index(token))
    assert matcher.is_completed() and not matcher.is_terminated()
    assert allowed(matcher, info) == {"</s>"}
    assert matcher.accept_token(1) and matcher.is_terminated()
    assert not matcher.accept_token(1) and not matcher.accept_token(10_000)
    with pytest.raises(RuntimeError, match="ended"):
        matcher.fill_next_token_bitmask(rows(1, info))
    matcher.rollback(4)
    assert allowed(matcher, info) == {"{"}
    with pytest.raises(RuntimeError, match="cannot be taken back"):
        matcher.rollback(1)


def test_other_stop_tokens(compiler, info):
    compiled = compiler.compile_regex("a")
    matcher = xgr.GrammarMatcher(compiled, override_stop_tokens=[0])
    assert matcher.accept_token(TOKENS.index("a"))
    assert allowed(matcher, info) == {"<s>"}
    assert matcher.stop_token_ids == [0]


def test_batches(compiler, info):
    matchers = [xgr.GrammarMatcher(compiler.compile_regex(text)) for text in ("a+", "6", "true|a")]
    mask = rows(5, info)
    xgr.BatchGrammarMatcher(max_threads=2).batch_fill_next_token_bitmask(matchers, mask, indices=[4, 0, 2])
    single = rows(1, info)
    for row, matcher in zip([4, 0, 2], matchers):
        matcher.fill_next_token_bitmask(single)
        assert (mask[row] == single[0]).all()
    assert (mask[[1, 3]] == -1).all()
    accepted = xgr.BatchGrammarMatcher.batch_accept_string(matchers, ["aa", "7", "true"])
    assert accepted == [True, False, True]
    xgr.BatchGrammarMatcher.batch_rollback([matchers[0], matchers[2]], [1, 1])
    assert xgr.BatchGrammarMatcher.batch_accept_token(matchers, [2, 2, 2]) == [True, False, True]
    with pytest.raises(RuntimeError, match="3 matchers and 1"):
        xgr.BatchGrammarMatcher.batch_accept_token(matchers, [2])


def test_strict_mode_closes_objects_and_arrays():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "prefixItems": [{"type": "null"}]}},
    }
    strict, free = xgr.Grammar.from_json_schema(schema), xgr.Grammar.from_json_schema(schema, strict_mode=False)
    for text, in_strict in (('{"a": 1}', True), ('{"c": 1}', False), ('{"b": [null]}', True), ('{"b": [null, 1]}', False)):
        assert accepts(strict, text) == in_strict
        assert accepts(free, text)
    joined = xgr.Grammar.from_json_schema({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}], "type": "object"})
    assert accepts(joined, '{"a": 1, "b": 2}') and not accepts(joined, '{"a": 1, "b": 2, "c": 3}')
    assert accepts(xgr.Grammar.from_json_schema({"type": "object"}), '{"any": 1}')


def test_whitespace_and_order():
    schema = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"]}
    assert accepts(xgr.Grammar.from_json_schema(schema), '{ "a":\n1,  "b" : 2}')
    spaced = xgr.Grammar.from_json_schema(schema, any_whitespace=False)
    assert accepts(spaced, '{"a": 1, "b": 2}') and not accepts(spaced, '{"a":1,"b":2}')
    assert not accepts(spaced, '{"b": 2, "a": 1}')
    wide = xgr.Grammar.from_json_schema(schema, any_whitespace=False, separators=(" ,\n", ":"))
    assert accepts(wide, '{"a":1 ,\n"b":2}') and not accepts(wide, '{"a": 1, "b": 2}')
    assert accepts(xgr.Grammar.from_json_schema(schema, any_order=True), '{"b": 2, "a": 1}')


def test_grammars_are_joined():
    letter, digit = xgr.Grammar.from_ebnf('root ::= "a" | "b"'), xgr.Grammar.from_regex("[0-9]")
    one_after_another, either = xgr.Grammar.concat(letter, digit, letter), xgr.Grammar.union(letter, digit)
    assert accepts(one_after_another, "a7b") and not accepts(one_after_another, "a7")
    assert accepts(either, "a") and accepts(either, "7") and not accepts(either, "a7")
    assert accepts(xgr.Grammar.from_ebnf('main ::= "x"', root_rule_name="main"), "x")
    assert accepts(xgr.Grammar.from_lark('start: "x"+'), "xx")
    assert accepts(xgr.Grammar.builtin_json_grammar(), '[1, {"a": null}]')
    lax = xgr.Grammar.from_json_schema({"type": "object", "properties": {"a": {}}}, strict_mode=False)
    joined = xgr.Grammar.concat(lax, xgr.Grammar.from_regex("!"))
    for one in (joined, xgr.Grammar.deserialize_json(joined.serialize_json())):
        assert accepts(one, '{"b": 1}!')


def test_structural_tags():
    tag = xgr.StructuralTagItem(begin="<f>", schema={"type": "boolean"}, end="</f>")
    grammar = xgr.Grammar.from_structural_tag([tag], ["<f"])
    assert accepts(grammar, "hello <f>true</f> bye") and not accepts(grammar, "<f>1</f>")
    part = {"type": "json_schema", "json_schema": {"enum": [None, 1]}, "max_whitespace_cnt": None}
    nulls = xgr.Grammar.from_structural_tag({"type": "structural_tag", "format": part})
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    strict = xgr.Grammar.from_structural_tag({"format": {"type": "json_schema", "json_schema": schema}})
    for text, expected in [('{"a":1,\t"b" :2}', True), ('{"b": 2, "a": 1}', False), ('{"c": 1}', False)]:
        assert accepts(strict, text) == expected, text
    assert accepts(nulls, "null") and not accepts(nulls, "2"), "null is what is not set, but in a schema a value"
    with pytest.raises(xgr.InvalidJSONError):
        xgr.Grammar.from_structural_tag("{")
    with pytest.raises(xgr.InvalidStructuralTagError):
        xgr.Grammar.from_structural_tag({"type": "structural_tag", "format": {"type": "nothing"}})


def test_texts_of_grammars_go_and_come_back(compiler, info):
    made = [
        xgr.Grammar.from_ebnf('root ::= "6"'),
        xgr.Grammar.from_regex("6"),
        xgr.Grammar.from_lark('start: "6"'),
        xgr.Grammar.from_json_schema({"const": 6}, any_whitespace=False),
        xgr.Grammar.from_structural_tag({"type": "structural_tag", "format": {"type": "const_string", "value": "6"}}),
    ]
    for grammar in made:
        assert accepts(xgr.Grammar.deserialize_json(grammar.serialize_json()), "6")
        compiled = compiler.compile_grammar(grammar)
        again = xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), info)
        assert allowed(xgr.GrammarMatcher(again), info) == {"6"}
    with pytest.raises(xgr.DeserializeFormatError, match="vocabulary"):
        xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), xgr.TokenizerInfo(["6"]))
    with pytest.raises(xgr.InvalidJSONError):
        xgr.Grammar.deserialize_json("{")
    with pytest.raises(xgr.DeserializeFormatError):
        xgr.Grammar.deserialize_json("{}")
    with pytest.raises(xgr.DeserializeVersionError, match="v9"):
        xgr.Grammar.deserialize_json(json.dumps({"__VERSION__": "v9"}))
    again = xgr.TokenizerInfo.deserialize_json(info.serialize_json())
    assert again.decoded_vocab == info.decoded_vocab and again.stop_token_ids == [1]


def test_spellings_of_vocabularies():
    fallback = xgr.TokenizerInfo(["<0x1B>", "▁apple", "</s>", ""], xgr.VocabType.BYTE_FALLBACK)
    assert fallback.decoded_vocab == [b"\x1b", b" apple", b"</s>", b""] and fallback.stop_token_ids == [2]
    assert fallback.special_token_ids == [3]
    level = xgr.TokenizerInfo(["Ġapple", "Ċ", "é"], xgr.VocabType.BYTE_LEVEL, vocab_size=5)
    assert level.decoded_vocab == [b" apple", b"\n", b"\xe9", b"", b""] and level.vocab_size == 5
    assert len(bytes(xgr.tokenizer_info._BYTE_OF_CHARACTER.values())) == 256


def test_bitmasks_are_applied_to_rows():
    logits = np.zeros((3, 70), np.float32)
    mask = np.array([[0, 0], [5, 1], [-1, -1]], np.int32)
    xgr.apply_token_bitmask_inplace(logits, mask, vocab_size=64, indices=[1])
    assert np.isfinite(logits[[0, 2]]).all()
    assert np.flatnonzero(np.isfinite(logits[1])).tolist() == [0, 2, 32, *range(64, 70)]
    xgr.apply_token_bitmask_inplace(logits, mask)
    assert np.isinf(logits[0]).all() and np.isfinite(logits[2]).sum() == 64


def test_a_tree_of_drafts_fills_what_can_be_reached(compiler, info):
    matcher = xgr.GrammarMatcher(compiler.compile_regex("a(abc|6)a*"))
    #        0
    #      /   \
    #   1: a    2: 6 (refused)
    #   /  \      \
    # 3:abc 4:6    5: a
    tree = {"tokens": [0, 2, 10, 3, 10, 2], "child": [1, 3, 5, -1, -1, -1], "sibling": [-1, 2, -1, 4, -1, -1]}
    mask = rows(6, info)
    assert matcher.traverse_draft_tree(*(np.array(tree[key]) for key in ("child", "sibling", "tokens")), mask)
    for node, path in {0: [], 1: [2], 3: [2, 3], 4: [2, 10]}.items():
        walked = xgr.GrammarMatcher(compiler.compile_regex("a(abc|6)a*"))
        assert all(walked.accept_token(token) for token in path)
        expected = rows(1, info)
        walked.fill_next_token_bitmask(expected)
        assert (mask[node] == expected[0]).all()
    assert (mask[2] == 0).all(), "refused"
    with pytest.raises(RuntimeError, match="6, 6, 6 and 1"):
        matcher.traverse_draft_tree(*(np.array(tree[key]) for key in ("child", "sibling", "tokens")), mask[:1])
    assert (mask[5] == -1).all() and matcher.palmette.position == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.compile_json_schema("{}", max_whitespace_cnt=2),
        lambda c: c.compile_json_schema("{}", any_whitespace=False, indent=2),
        lambda c: c.compile_json_schema("{}", any_whitespace=False, separators=(";", ":")),
        lambda c: xgr.Grammar.from_lark('start: @x', named_grammars={"x": "start: A"}),
        lambda c: xgr.GrammarMatcher(c.compile_regex("a"), default_temperature=1.0),
        lambda c: xgr.GrammarMatcher(c.compile_regex("a")).get_captures(),
        lambda c: str(xgr.Grammar.from_regex("a")),
    ],
)
def test_what_is_not_done_is_said(compiler, call):
    with pytest.raises(NotImplementedError, match=r".{20}"):
        call(compiler)


def test_refusals_are_runtime_errors_with_the_cause(compiler):
    with pytest.raises(RuntimeError, match="the types are null, boolean") as refused:
        compiler.compile_json_schema({"type": "objekt"})
    assert isinstance(refused.value.__cause__, palmette.GrammarError)
    with pytest.raises(RuntimeError):
        compiler.compile_grammar('root ::= "a')


def test_tags_of_models():
    tools = [
        {"type": "function", "function": {"name": "get", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}},
        {"function": {"name": "now"}},
    ]
    call = '<tool_call>\n{"name": "get", "arguments": {"a": 1}}\n</tool_call>'
    lax = '<tool_call>\n{"name": "now", "arguments": {"x": [1]}}\n</tool_call>'
    for model, options, valid, invalid in [
        ("qwen_3", {}, [f"Hm.</think>{call}", "Hm.</think>Words.", f"</think>{call}\n{lax}"], [call, f"<tool_call>{call}"]),
        ("qwen_3", {"reasoning": False}, [call, "Words."], ["<tool_call>"]),
        ("qwen_3", {"reasoning": False, "tool_choice": "required"}, [call], ["Words."]),
        ("qwen_3", {"reasoning": False, "tool_choice": "none"}, ["Words."], []),
        ("hermes", {"tool_choice": {"type": "function", "function": {"name": "now"}}}, [lax, f"<think>Hm.</think>{lax}"], [call]),
        ("qwen_3", {"reasoning": False, "max_whitespace_cnt": 1}, [call], [call.replace("1}", "1  }")]),
    ]:
        tag = xgr.get_builtin_structural_tag(model, tools, **options)
        for given in (tag, tag.model_dump(), tag.model_dump_json()):
            grammar = xgr.Grammar.from_structural_tag(given)
            for texts, expected in ((valid, True), (invalid, False)):
                for text in texts:
                    assert accepts(grammar, text) == expected, (model, options, text)
    assert xgr.get_model_structural_tag is xgr.get_builtin_structural_tag
    with pytest.raises(xgr.InvalidStructuralTagError, match="Invalid structural tag error.*qwen_9"):
        xgr.Grammar.from_structural_tag(xgr.get_builtin_structural_tag("qwen_9", tools))
    with pytest.raises(ValueError, match="a tool has a name"):
        xgr.get_builtin_structural_tag("qwen_3", [{"parameters": {}}])
