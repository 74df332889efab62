"""The corpus of grammars that all engines of the Rust crates read too: texts, and the tokens that may follow prefixes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from palmette import Grammar, NotAllowed, Vocabulary

CORPUS = Path(__file__).parents[3] / "testdata" / "grammars.toml"
DATA = tomllib.loads(CORPUS.read_text(encoding="utf-8")) if CORPUS.exists() else {"case": []}


def grammar_of(case: dict) -> Grammar:
    options = {key: case[key] for key in ("lexing", "start", "whitespace") if key in case}
    readers = {
        "regex": Grammar.from_regex,
        "gbnf": Grammar.from_gbnf,
        "json-schema": Grammar.from_json_schema,
        "lark": Grammar.from_lark,
    }
    return readers[case["syntax"]](case["grammar"], **options)


@pytest.mark.skipif(not DATA["case"], reason="the sources of the repository are not at hand")
@pytest.mark.parametrize("case", DATA["case"], ids=lambda case: case["name"])
def test_grammars_are_what_the_corpus_says(case):
    tokens = [*DATA["tokens"]["letters"], *DATA["tokens"]["longer"]]
    end = len(tokens)
    vocabulary = Vocabulary([*(token.encode() for token in tokens), None], ends=[end])
    compiled = grammar_of(case).compile(vocabulary)
    for text, accepted in [(t, True) for t in case["accept"]] + [(t, False) for t in case["reject"]]:
        matcher = compiled.matcher()
        try:
            matcher.commit_bytes(text.encode())
        except NotAllowed:
            assert not accepted, text
        else:
            assert matcher.is_accepting == accepted, text
    for mask in case.get("masks", []):
        matcher = compiled.matcher()
        matcher.commit_bytes(mask["prefix"].encode())
        allowed = matcher.allowed().tolist()
        assert (end in allowed) == mask["end"], mask["prefix"]
        assert sorted(tokens[token] for token in allowed if token != end) == sorted(mask["next"]), mask["prefix"]
