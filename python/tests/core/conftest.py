"""Vocabularies, grammars, and the slow definitions that fast answers are compared with."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import palmette

#: Single bytes of a small alphabet, pieces of JSON, a character in halves, two special tokens.
PIECES = [
    *(bytes([c]) for c in b'abcdxyz0123456789{}[]":, \n\\-.e'),
    b"ab",
    b"abc",
    b"bc",
    b'{"',
    b'":',
    b'","',
    b'"}',
    b"true",
    b"tru",
    b"false",
    b"null",
    b"rue",
    b"f",
    b"t",
    b"n",
    b"alse",
    b"ull",
    b"u",
    b"r",
    b"s",
    b"l",
    b"\xc3",
    b"\xa9",
    "é".encode(),
    b'"a":"x"',
    b'"b":',
]
END = len(PIECES)
PAD = END + 1


@pytest.fixture(scope="session")
def vocabulary() -> palmette.Vocabulary:
    return palmette.Vocabulary([*PIECES, None, None], ends=[END])


@pytest.fixture(scope="session")
def large() -> palmette.Vocabulary:
    return palmette.Vocabulary.encoding("o200k_base")


class Language:
    """A finite language, by its definition: a token may follow where the text so far and its bytes begin a member."""

    def __init__(self, texts):
        self.texts = set(texts)
        self.beginnings = {text[:n] for text in self.texts for n in range(len(text) + 1)}

    def mask(self, prefix: bytes, pieces=PIECES, end: int = END) -> set[int]:
        allowed = {token for token, piece in enumerate(pieces) if prefix + piece in self.beginnings}
        return allowed | ({end} if prefix in self.texts else set())


def words_of(alphabet: str, longest: int):
    for length in range(longest + 1):
        for letters in itertools.product(alphabet, repeat=length):
            yield "".join(letters)


def regex_language(pattern: str, alphabet: str, longest: int) -> Language:
    """The members of a regular language that are no longer than that, found by trying all texts."""
    matches = re.compile(pattern).fullmatch
    return Language(text.encode() for text in words_of(alphabet, longest) if matches(text))


def tokens_in(bitmask: np.ndarray, row: int = 0) -> set[int]:
    bits = np.unpackbits(bitmask[row].view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def mask_of(matcher: palmette.Matcher, num_tokens: int | None = None) -> set[int]:
    bitmask = palmette.allocate_bitmask(1, num_tokens or matcher.compiled.num_tokens)
    matcher.fill_mask(bitmask)
    return tokens_in(bitmask)


#: A schema whose texts can be counted, written compactly, and they.
SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "yz"]}, "b": {"type": "boolean"}, "c": {"type": "null"}},
    "required": ["a"],
    "additionalProperties": False,
}


def schema_language() -> Language:
    values = {"a": ["x", "yz"], "b": [True, False], "c": [None]}
    texts = []
    for size in range(1, 4):
        for names in itertools.permutations(values, size):
            if "a" in names:
                for chosen in itertools.product(*(values[name] for name in names)):
                    document = dict(zip(names, chosen, strict=True))
                    texts.append(json.dumps(document, separators=(",", ":")).encode())
    return Language(texts)


@pytest.fixture(scope="session")
def schema(vocabulary) -> palmette.CompiledGrammar:
    return palmette.Grammar.from_json_schema(SCHEMA, whitespace="compact").compile(vocabulary)


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """A directory with the demonstration's model, and its catalog, made by the command of this package."""
    folder = tmp_path_factory.mktemp("demo") / "shop"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "palmette", *arguments], capture_output=True, text=True, check=False)

    made = run("demo", "--export", str(folder))
    if made.returncode != 0:
        pytest.skip(f"this build has no demonstration to export: {made.stderr.strip().splitlines()[-1:]}")
    run("catalog", "build", str(folder / "items.jsonl"), "--out", str(folder / "shop.palm")).check_returncode()
    return folder
