"""llguidance's tokenizers over `palmette.Vocabulary`."""

from __future__ import annotations

import os
import re
from typing import Any

import palmette

SPECIAL = b"\xff"
"""Byte before the name of a special token, or its number in brackets, where a text of bytes means the token."""

_MARKED = re.compile(rb"\xff(?:\[(\d+)\]|(<[^>\xff]*>))")


class TokenizerWrapper:
    """A tokenizer of guidance's: `tokens`, `eos_token_id`, `bos_token_id`, and a call that cuts a text."""

    def __init__(self, gtokenizer: Any) -> None:
        self.eos_token_id = gtokenizer.eos_token_id
        self.bos_token_id = gtokenizer.bos_token_id
        self.tokens = gtokenizer.tokens
        self.special_token_ids = getattr(gtokenizer, "special_token_ids", [])
        self.is_tokenizer_wrapper = True
        self._cut = gtokenizer
        try:
            gtokenizer(b"test")
            self._takes_bytes = True
        except Exception:
            self._takes_bytes = False

    def __call__(self, text: str) -> list[int]:
        return self._cut(text.encode() if self._takes_bytes else text)


class LLTokenizer:
    """Tokens of a model; `palmette` is the vocabulary.

    `tokenizer` is the text or the path of a `tokenizer.json`, or a `TokenizerWrapper`, or `"byte"` for a token a byte and some
    special ones. `slices` have no effect: there is nothing to choose.
    """

    def __init__(
        self,
        tokenizer: Any,
        n_vocab: int | None = None,
        eos_token: int | list[int] | None = None,
        slices: list[str] | None = None,
    ) -> None:
        ends = [eos_token] if isinstance(eos_token, int) else eos_token
        if isinstance(tokenizer, str):
            self._read(tokenizer, n_vocab, ends)
        elif hasattr(tokenizer, "tokens") and hasattr(tokenizer, "eos_token_id"):
            special = set(getattr(tokenizer, "special_token_ids", ()) or ())
            ends = ends or [tokenizer.eos_token_id]
            texts = [
                None if token in special or token in ends or text.startswith(SPECIAL) else bytes(text)
                for token, text in enumerate(tokenizer.tokens)
            ]
            texts += [None] * ((n_vocab or 0) - len(texts))
            names = {
                text.removeprefix(SPECIAL).decode(errors="replace"): token
                for token, text in enumerate(tokenizer.tokens)
                if token in special or token in ends or text.startswith(SPECIAL)
            }
            vocabulary = palmette.Vocabulary(texts, ends, special_tokens=names)
            self._set(vocabulary, ends, names, tokenizer if callable(tokenizer) else None)
        else:
            raise TypeError(
                f"a tokenizer is the text or path of a tokenizer.json or a TokenizerWrapper, not {type(tokenizer).__name__}"
            )

    def _read(self, source: str, n_vocab: int | None, ends: list[int] | None) -> None:
        if source == "byte":
            specials = ["<|tool|>", "<|/tool|>", "<|user|>", "<|system|>", "<|assistant|>", "<|end|>"]
            names = {name: 256 + place for place, name in enumerate(specials)}
            texts = [bytes([byte]) for byte in range(256)] + [None] * len(specials)
            ends = ends or [names["<|end|>"]]
            self._set(palmette.Vocabulary(texts, ends, special_tokens=names), ends, names, None)
            return
        if not source.lstrip().startswith("{"):
            path = os.path.join(source, "tokenizer.json") if os.path.isdir(source) else source
            if not os.path.exists(path):
                raise ValueError(f"there is no file {path!r}; tokenizers are not downloaded, give a tokenizer.json or its text")
            with open(path, encoding="utf-8") as file:
                source = file.read()
        vocabulary = palmette.Vocabulary.from_json(source, num_tokens=n_vocab, ends=ends)
        self._set(vocabulary, list(vocabulary.ends), vocabulary.special_tokens, _cutter(source))

    def _set(self, vocabulary: palmette.Vocabulary, ends: list[int], names: dict[str, int], cut: Any) -> None:
        self.palmette = vocabulary
        self.eos_tokens = list(ends)
        self._names = names
        self._name_of = {token: name for name, token in names.items()}
        self._cut = cut
        self.is_canonical = True

    @staticmethod
    def from_tiktoken(
        encoder: dict[bytes, int],
        special_tokens: dict[str, int],
        pattern: str,
        eos_token: int | list[int],
        n_vocab: int | None = None,
        slices: list[str] | None = None,
    ) -> LLTokenizer:
        ends = [eos_token] if isinstance(eos_token, int) else eos_token
        size = max([n_vocab or 0, *(token + 1 for token in encoder.values()), *(one + 1 for one in special_tokens.values())])
        texts: list[bytes | None] = [None] * size
        for text, token in encoder.items():
            texts[token] = text
        made = LLTokenizer.__new__(LLTokenizer)
        made._set(palmette.Vocabulary(texts, ends, special_tokens=special_tokens), ends, dict(special_tokens), None)
        return made

    @property
    def vocab_size(self) -> int:
        return self.palmette.num_tokens

    @property
    def eos_token(self) -> int:
        return self.eos_tokens[0]

    def with_slices(self, slices: list[str]) -> LLTokenizer:
        """This tokenizer."""
        return self

    @staticmethod
    def general_slices() -> list[str]:
        """The slices by which llguidance divides vocabularies; without effect here."""
        return [r"[^\x20\x0A\x0D\x09]{1,10}", r"[\s\S]+"]

    @staticmethod
    def json_slices() -> list[str]:
        """The slices by which llguidance divides vocabularies for JSON; without effect here."""
        return [r'[^"\\\x00-\x1F\x7F]{1,10}', r'[^"\\\x00-\x1F\x7F]+']

    def _cut_text(self, text: bytes) -> list[int]:
        if not text:
            return []
        if self._cut is not None:
            try:
                return list(self._cut(text.decode()))
            except UnicodeDecodeError:
                pass
        else:
            try:
                return list(self.palmette.encode(text.decode()))
            except (palmette.Error, UnicodeDecodeError):
                pass
        return self._greedy(text)

    def _greedy(self, text: bytes) -> list[int]:
        """Longest token, again and again."""
        if not hasattr(self, "_tokens"):
            texts = (self.palmette.text(token) for token in range(self.vocab_size))
            self._tokens = {found: token for token, found in enumerate(texts) if found}
            self._longest = max(map(len, self._tokens), default=0)
        tokens, at = [], 0
        while at < len(text):
            for length in range(min(self._longest, len(text) - at), 0, -1):
                token = self._tokens.get(text[at : at + length])
                if token is not None:
                    tokens.append(token)
                    at += length
                    break
            else:
                raise ValueError(f"no token of the vocabulary begins the bytes {text[at : at + 8]!r}")
        return tokens

    def greedy_tokenize(self, text: str) -> list[int]:
        return self._greedy(text.encode())

    def tokenize_bytes(self, utf8bytes: bytes, *, parse_special: bool = False) -> list[int]:
        """Tokens of a text. The byte FF before a name or a number means that special token."""
        tokens, at = [], 0
        marked = _MARKED
        if parse_special and self._names:
            names = b"|".join(re.escape(name.encode()) for name in sorted(self._names, key=len, reverse=True))
            marked = re.compile(rb"\xff?(?:\xff\[(\d+)\]|(" + names + rb"))")
        for found in marked.finditer(utf8bytes):
            name = (found[2] or b"").decode(errors="replace")
            token = int(found[1]) if found[1] else self._names.get(name)
            if token is None:
                continue
            tokens += self._cut_text(utf8bytes[at : found.start()])
            tokens.append(token)
            at = found.end()
        return tokens + self._cut_text(utf8bytes[at:])

    def tokenize_str(self, text: str, *, parse_special: bool = False) -> list[int]:
        return self.tokenize_bytes(text.encode(), parse_special=parse_special)

    def tokenize_partial(self, new_bytes: bytes, recent_tokens: list[int] | None = None) -> tuple[list[int], bytes]:
        """Tokens of a text that goes on, and the bytes at its end whose cut what follows may change."""
        tokens = self.tokenize_bytes(new_bytes)
        if tokens and tokens[-1] in self._name_of or _MARKED.search(new_bytes[-8:]):
            return tokens, b""
        if self.vocab_size and self._single_bytes():
            return tokens, b""
        return (tokens[:-1], self.palmette.text(tokens[-1])) if tokens else ([], b"")

    def _single_bytes(self) -> bool:
        return all(len(self.palmette.text(token)) <= 1 for token in range(self.vocab_size))

    def decode_bytes(self, tokens: list[int]) -> bytes:
        """Bytes of tokens; special tokens are written by their names."""
        return b"".join(
            self._name_of[token].encode() if token in self._name_of else self.palmette.text(token) for token in tokens
        )

    def decode_str(self, tokens: list[int]) -> str:
        return self.decode_bytes(tokens).decode(errors="replace")

    def is_special_token(self, token: int) -> bool:
        return token in self._name_of or not self.palmette.text(token)

    def dbg_tokens(self, tokens: list[int]) -> str:
        shown = (self._name_of.get(token) or self.palmette.text(token).decode(errors="replace") for token in tokens)
        return '"' + "‧".join(shown) + '"'

    test_trace_tokens = dbg_tokens


def _cutter(tokenizer_json: str) -> Any:
    """Function that cuts a text as a tokenizer does, or None where the package that does so is not installed."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    tokenizer = Tokenizer.from_str(tokenizer_json)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
