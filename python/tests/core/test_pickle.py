"""Pickles and files: what comes back answers as what was written."""

import copy
import json
import multiprocessing
import pickle

import pytest
from conftest import END, PIECES, SCHEMA, mask_of

import palmette
from palmette import CompiledGrammar, Grammar, Vocabulary


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def test_vocabularies(vocabulary):
    named = Vocabulary(list(PIECES) + [None, None], [END], special_tokens={"<x>": END + 1})
    for original in (vocabulary, named, Vocabulary([])):
        copied = again(original)
        assert copied == original and copied.ends == original.ends
        assert copied.special_tokens == original.special_tokens and copied.notes == original.notes


def test_a_vocabulary_keeps_its_tokenizer(tmp_path):
    pieces = tmp_path / "pieces.json"
    pieces.write_text(json.dumps(["a", "b", "ab", "</s>"]))
    original = Vocabulary.open(pieces)
    pieces.unlink()
    assert again(original).encode("aab") == original.encode("aab") == [0, 2]
    assert again(original).notes == original.notes != []


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.from_json_schema(SCHEMA),
        Grammar.from_json_schema(
            SCHEMA,
            order="schema",
            whitespace="spaced",
            escapes="any",
            on_partial="strict",
            draft="7",
            formats=False,
            integer_fractions=False,
            distinct_members=True,
            closed_objects=True,
            resources={"u:x": {"const": 1}},
            max_cases=77,
        ),
        Grammar.from_json_schema(True, max_tracked=6),
        Grammar.from_json_schema(True, max_listed=40, max_listed_bytes=10**6, max_string_tokens=9),
        Grammar.from_lark("x: y", lexing="any", start="x"),
        Grammar.from_gbnf("r ::= x", root="r"),
        Grammar.from_regex("a(b"),
        Grammar.from_choices(["a", "b"]),
        Grammar.from_structural_tag({"structures": [], "triggers": []}, order="schema"),
        Grammar.from_tools([{"name": "f"}], "hermes", whitespace="compact"),
    ],
    ids=lambda grammar: grammar.language,
)
def test_grammars(grammar):
    copied = again(grammar)
    assert copied == grammar and hash(copied) == hash(grammar)
    assert copied.options == grammar.options and copied.text == grammar.text
    other = Grammar.from_regex("other")
    assert copied != other and repr(copied) == repr(grammar)


def check_same(one, other):
    for text in (b"", b"{", b'{"a"', b'{"a":"x"', b'{"a":"x"}'):
        masks = []
        for compiled in (one, other):
            matcher = compiled.matcher()
            matcher.commit_bytes(text)
            masks.append(mask_of(matcher))
        assert masks[0] == masks[1]


def test_compiled_grammars(schema):
    copied = again(schema)
    check_same(schema, copied)
    assert copied.grammar == schema.grammar and copied.vocabulary == schema.vocabulary
    relaxed = Grammar.from_json_schema({"format": "unheard-of"}).compile(schema.vocabulary)
    assert again(relaxed).notes == relaxed.notes != []
    one, two = again([schema, schema])
    assert one is two and copy.copy(schema).grammar == schema.grammar


def test_matchers(schema):
    matcher = schema.matcher(ends=[PIECES.index(b"x")])
    matcher.commit_bytes(b'{"a"')
    for byte in b':"x"':
        matcher.commit(PIECES.index(bytes([byte])))
    matcher.rollback(2)
    copied = again(matcher)
    assert copied.position == matcher.position == 3 and copied.ends == matcher.ends
    assert mask_of(copied) == mask_of(matcher)
    copied.rollback(2)
    matcher.rollback(2)
    assert mask_of(copied) == mask_of(matcher)
    ended = schema.matcher()
    ended.commit_bytes(b'{"a":"x"}')
    ended.commit(END)
    assert again(ended).is_ended
    long = Grammar.from_regex("a*").compile(schema.vocabulary).matcher()
    long.commit_all([PIECES.index(b"a")] * 50_000)
    assert again(long).position == 50_000


def test_files(schema, tmp_path):
    path = tmp_path / "schema.pmg"
    schema.save(path)
    loaded = palmette.load(path, schema.vocabulary)
    check_same(schema, loaded)
    assert loaded.grammar == schema.grammar and loaded.nbytes > 0
    assert isinstance(loaded, CompiledGrammar)
    with pytest.raises(palmette.VocabularyError, match="another vocabulary"):
        palmette.load(path, Vocabulary([b"a"]))
    with pytest.raises(FileNotFoundError):
        palmette.load(tmp_path / "none", schema.vocabulary)
    with pytest.raises(FileNotFoundError):
        schema.save(tmp_path / "none" / "x.pmg")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(palmette.Error, match="damaged"):
        palmette.load(tmp_path / "damaged", schema.vocabulary)
    (tmp_path / "short").write_bytes(content[:10])
    with pytest.raises(palmette.Error, match="short"):
        palmette.load(tmp_path / "short", schema.vocabulary)


def test_a_damaged_pickle_is_refused(vocabulary):
    for parts in [(b"ab", b"\1\0\0\0\5\0\0\0", [], [], [], None), (b"", b"\1", [], [], [], None)]:
        with pytest.raises(palmette.VocabularyError, match="damaged"):
            Vocabulary._restore(*parts)
    with pytest.raises(palmette.Error):
        CompiledGrammar._restore(vocabulary, b"nothing")


def in_another_process(matcher):
    return sorted(mask_of(matcher)), matcher.compiled.notes


def test_another_process(schema):
    matcher = schema.matcher()
    matcher.commit(PIECES.index(b'{"'))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(in_another_process, (matcher,)) == in_another_process(matcher)


def test_caches(vocabulary):
    grammar = Grammar.from_json_schema(SCHEMA)
    compiler = palmette.Compiler(vocabulary, limits={"steps": 10**9})
    assert compiler.statistics["grammars"] == 0
    for _ in range(3):
        compiler.compile(grammar)
    assert compiler.statistics | {"bytes": 0} == {
        "grammars": 1, "bytes": 0, "hits": 2, "waited": 0, "built": 1, "failed": 0, "evicted": 0, "too_large": 0,
        "max_bytes": 1 << 30,
    }  # fmt: skip
    small = palmette.Compiler(vocabulary, cache_bytes=10)
    small.compile(grammar)
    assert small.statistics["too_large"] == 1 and small.statistics["grammars"] == 0
    strict = palmette.Compiler(vocabulary, limits={"steps": 1})
    with pytest.raises(palmette.LimitExceeded):
        strict.compile(grammar)
    assert compiler.vocabulary is vocabulary


def test_masks_ahead_of_time(vocabulary):
    grammar = Grammar.from_json_schema({"type": "array", "items": SCHEMA})
    for ahead in (True, False, None, 0, 5, 0.01):
        compiled = grammar.compile(vocabulary, ahead=ahead)
        assert compiled.wait(30)
    for ahead in (-1, float("nan"), float("inf"), "yes"):
        with pytest.raises((ValueError, TypeError)):
            grammar.compile(vocabulary, ahead=ahead)
