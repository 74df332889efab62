"""Vocabularies from tokens, files, tokenizers and encodings."""

import json
import pickle
import types

import pytest
from conftest import END, PAD, PIECES, mask_of

import palmette
from palmette import Grammar, Vocabulary, VocabularyError


def test_tokens_one_by_one(vocabulary):
    assert len(vocabulary) == vocabulary.num_tokens == len(PIECES) + 2
    assert vocabulary.ends == [END] and vocabulary.notes == []
    assert [vocabulary.text(token) for token in range(len(PIECES))] == PIECES
    assert vocabulary.text(END) == vocabulary.text(PAD) == b""
    assert vocabulary.decode([0, 1, END, 2]) == b"".join(PIECES[:3])
    assert vocabulary == Vocabulary([*PIECES, None, None], [END])
    assert hash(vocabulary) == hash(Vocabulary([*PIECES, None, None], [END]))
    assert vocabulary != Vocabulary([*PIECES, None, None], [PAD])
    assert vocabulary != "x"


def test_tokens_that_are_none():
    for tokens, text in [(["a"], "token 0 is neither"), ([b"a", 3], "token 1 is neither"), ([1.5], "token 0")]:
        with pytest.raises(TypeError, match=text):
            Vocabulary(tokens)
    with pytest.raises(VocabularyError, match="end token 0 has text"):
        Vocabulary([b"a"], [0])
    for end in (-1, 1, 2**40):
        with pytest.raises(VocabularyError, match=f"token {end} is not in the vocabulary: tokens are 0 to 0"):
            Vocabulary([b"a"], [end])
    with pytest.raises(VocabularyError, match="has text"):
        Vocabulary([b"a", None], special_tokens={"<x>": 0})
    with pytest.raises(VocabularyError, match="not in the vocabulary"):
        Vocabulary([b"a", None], special_tokens={"<x>": 2})
    empty = Vocabulary([])
    assert len(empty) == 0
    with pytest.raises(VocabularyError, match="empty"):
        empty.text(0)


def test_numbers_out_of_range(vocabulary):
    for token in (-1, len(vocabulary), 2**33):
        with pytest.raises(VocabularyError, match=f"token {token} "):
            vocabulary.text(token)
        with pytest.raises(VocabularyError, match=f"token {token} "):
            vocabulary.decode([0, token])


def test_special_tokens_are_asked_for_by_name():
    vocabulary = Vocabulary([b"a", None, None], [2], special_tokens={"<|tool|>": 1})
    assert vocabulary.special_tokens == {"<|tool|>": 1}
    compiled = Grammar.from_lark('start: "a" <|tool|>').compile(vocabulary)
    matcher = compiled.matcher()
    matcher.commit(0)
    assert mask_of(matcher) == {1}
    with pytest.raises(palmette.GrammarError, match="<|other|>"):
        Grammar.from_lark("start: <|other|>").compile(vocabulary)


def test_an_encoding_by_name(large):
    assert len(large) == 200_019 and large.ends == [199_999]
    text = "naïve JSON: {\"a\": 1}"
    tokens = large.encode(text)
    assert large.decode(tokens).decode() == text
    with pytest.raises(VocabularyError, match="o200k_base"):
        Vocabulary.encoding("o300k_base")
    other = Vocabulary.encoding("r50k_base", num_tokens=50_304, ends=[50_257])
    assert len(other) == 50_304 and other.ends == [50_257]
    assert other.decode(other.encode("palm")) == b"palm"


def test_names_of_before_warn(tmp_path):
    (tmp_path / "pieces.json").write_text('["a", "b"]')
    with pytest.warns(DeprecationWarning, match="Vocabulary.encoding"):
        assert len(Vocabulary.named("r50k_base")) == len(Vocabulary.encoding("r50k_base"))
    with pytest.warns(DeprecationWarning, match="Vocabulary.open"):
        assert Vocabulary.from_file(tmp_path / "pieces.json") == Vocabulary.open(tmp_path / "pieces.json")


TOKENIZER = {
    "version": "1.0",
    "added_tokens": [
        {"id": 6, "content": "<|end|>", "special": True},
        {"id": 7, "content": "<|pad|>", "special": True},
    ],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "Ġc": 5}, "merges": ["a b", "Ġ c"]},
}


class Backend:
    def __init__(self, tokenizer=TOKENIZER):
        self.tokenizer = tokenizer

    def to_str(self):
        return json.dumps(self.tokenizer)

    def encode(self, text, add_special_tokens=True):
        assert not add_special_tokens
        return types.SimpleNamespace(ids=[self.tokenizer["model"]["vocab"][letter] for letter in text.strip(" !")])


def test_fast_tokenizers():
    fast = types.SimpleNamespace(backend_tokenizer=Backend(), eos_token_id=6)
    wrapped = types.SimpleNamespace(backend_tokenizer=Backend(), eos_token_id=6, eos_token_ids={6, 7})
    for tokenizer, ends in [(fast, [6]), (wrapped, [6, 7]), (Backend(), [6])]:
        vocabulary = Vocabulary.from_tokenizer(tokenizer)
        assert len(vocabulary) == 8 and vocabulary.ends == ends
        assert [vocabulary.text(t) for t in range(8)] == [b"a", b"b", b"c", b" ", b"ab", b" c", b"", b""]
        assert vocabulary.special_tokens["<|pad|>"] == 7
    assert "well-known" in Vocabulary.from_tokenizer(Backend()).notes[0]
    assert Vocabulary.from_tokenizer(fast).notes == []
    assert Vocabulary.from_tokenizer(fast, ends=[7]).ends == [7]
    by_text, by_tokenizer = Vocabulary.from_json(json.dumps(TOKENIZER), ends=[6]), Vocabulary.from_tokenizer(fast)
    assert by_text == by_tokenizer
    assert by_tokenizer.encode("abc") == [0, 1, 2]
    with pytest.raises(VocabularyError, match="changes this text"):
        by_tokenizer.encode(" abc")
    for without in (by_text, pickle.loads(pickle.dumps(by_tokenizer))):
        with pytest.raises(VocabularyError, match="from_tokenizer"):
            without.encode("abc")


def test_padded_and_cut_vocabularies():
    fast = types.SimpleNamespace(backend_tokenizer=Backend(), eos_token_id=6)
    padded = Vocabulary.from_tokenizer(fast, num_tokens=64)
    assert len(padded) == 64 and padded.text(63) == b"" and padded.ends == [6]
    compiled = Grammar.from_regex("ab( c)?").compile(padded)
    matcher = compiled.matcher()
    assert mask_of(matcher) == {0, 4}
    matcher.commit(4)
    assert mask_of(matcher, 4096) == {3, 5, 6}, "nothing past the tokenizer"
    cut = Vocabulary.from_tokenizer(fast, num_tokens=7)
    assert len(cut) == 7 and "left out" in cut.notes[0] and "<|pad|>" not in cut.special_tokens
    with pytest.raises(VocabularyError, match="token 6 is not"):
        Vocabulary.from_tokenizer(fast, num_tokens=5)
    with pytest.raises(ValueError, match="at most"):
        Vocabulary.from_tokenizer(fast, num_tokens=2**40)


def test_what_is_no_tokenizer():
    for other in (object(), "text", types.SimpleNamespace(backend_tokenizer=None)):
        with pytest.raises(TypeError, match="no fast tokenizer"):
            Vocabulary.from_tokenizer(other)
    word_pieces = TOKENIZER | {"model": {"type": "WordPiece", "vocab": {"a": 0}}}
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokenizer(Backend(word_pieces))
    with pytest.raises(VocabularyError, match="JSON"):
        Vocabulary.from_json("{")
    with pytest.raises(VocabularyError):
        Vocabulary.from_json("")


def test_a_tiktoken_encoding():
    class Encoding:
        name = "mine"
        _mergeable_ranks = {b"a": 0, b"b": 1, b"ab": 2}
        _special_tokens = {"<|endoftext|>": 5}
        eot_token = 5

    vocabulary = Vocabulary.from_tiktoken(Encoding())
    assert len(vocabulary) == 6 and vocabulary.ends == [5]
    assert [vocabulary.text(t) for t in range(6)] == [b"a", b"b", b"ab", b"", b"", b""]
    assert vocabulary.special_tokens == {"<|endoftext|>": 5}
    assert len(Vocabulary.from_tiktoken(Encoding(), num_tokens=32)) == 32
    with pytest.raises(VocabularyError):
        vocabulary.encode("a")
    with pytest.raises(TypeError, match="tiktoken"):
        Vocabulary.from_tiktoken(object())


def test_files(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    by_name = Vocabulary.open(tmp_path)
    assert by_name.ends == [6]
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7]}')
    assert Vocabulary.open(tmp_path).ends == Vocabulary.open(tmp_path / "tokenizer.json").ends == [7]
    assert Vocabulary.open(str(tmp_path), ends=["<|end|>", 7]).ends == [6, 7]
    assert Vocabulary.open(tmp_path, ends=[]).ends == []
    assert len(Vocabulary.open(tmp_path, num_tokens=32)) == 32
    added = Vocabulary.open(tmp_path, special_tokens={"<|tool|>": 9})
    assert added.special_tokens["<|tool|>"] == 9 and len(added) == 10
    assert Vocabulary.open(tmp_path, special_tokens=[("<|tool|>", 9)]) == added
    with pytest.raises(FileNotFoundError) as missing:
        Vocabulary.open(tmp_path / "none.json")
    assert missing.value.filename == str(tmp_path / "none.json")
    (tmp_path / "zip.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(VocabularyError, match="ZIP"):
        Vocabulary.open(tmp_path / "zip.bin")
    with pytest.raises(VocabularyError, match="<.none.>"):
        Vocabulary.open(tmp_path, ends=["<|none|>"])


def test_a_file_with_the_name_of_an_encoding_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "o200k_base").write_text('["a", "b"]')
    assert len(Vocabulary.open("o200k_base")) == 2
