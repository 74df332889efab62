"""The corpus of grammars that all engines of the Rust crates read too: texts, and the tokens that may follow prefixes."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from palmette import Grammar, NotAllowed, Vocabulary, _palmette

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


has_corpus = pytest.mark.skipif(not DATA["case"], reason="the sources of the repository are not at hand")
has_command = pytest.mark.skipif(
    not hasattr(_palmette, "run_command"), reason="this build is without the command (--no-default-features)"
)


@has_corpus
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


#: The command takes a process each: cases with masks, and some of the others.
SHORT = [case for number, case in enumerate(DATA["case"]) if "masks" in case or number % 8 == 0]


@has_corpus
@has_command
@pytest.mark.parametrize("case", SHORT, ids=lambda case: case["name"])
def test_the_command_says_what_the_corpus_says(case, tmp_path):
    tokens = [*DATA["tokens"]["letters"], *DATA["tokens"]["longer"]]
    lines = (f"{base64.b64encode(token.encode()).decode()} {id}\n" for id, token in enumerate(tokens))
    (tmp_path / "v.tiktoken").write_text("".join(lines))
    (tmp_path / "grammar").write_text(case["grammar"], encoding="utf-8")
    options = [f"--{key}={case[key]}" for key in ("syntax", "lexing", "start", "whitespace") if key in case]

    def run(command, *arguments):
        command = [sys.executable, "-m", "palmette", "grammar", command, "grammar", *options, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    for text in case["accept"][:1]:
        (tmp_path / "first.txt").write_text(text, encoding="utf-8")
        assert run("check", "--text=first.txt").returncode == 0
    (tmp_path / "wrong.txt").write_text(case["reject"][-1], encoding="utf-8")
    assert run("check", "--text=wrong.txt").returncode != 0
    for mask in case.get("masks", [])[:1]:
        shown = json.loads(run("mask", "--vocab=v.tiktoken", "--json", f"--prefix={mask['prefix']}").stdout)
        assert shown["accepting"] == mask["end"]
        assert sorted(tokens[token] for token in shown["tokens"]) == sorted(mask["next"])
