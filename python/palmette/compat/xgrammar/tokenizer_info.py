"""XGrammar's `TokenizerInfo` over `palmette.Vocabulary`."""

from __future__ import annotations

import enum
import json
from typing import Any

import palmette
from palmette.compat.xgrammar.exception import DeserializeFormatError, InvalidJSONError

# Names by which models end, where nothing says which token does.
_END_NAMES = (
    "</s>",
    "<eos>",
    "<|eos|>",
    "<|end|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_sentence|>",
    "<|return|>",
    "<end_of_turn>",
    "[EOS]",
)


class VocabType(enum.Enum):
    """Spelling of a vocabulary's tokens."""

    RAW = 0
    """The tokens are texts as they are."""
    BYTE_FALLBACK = 1
    """`▁` is a space, `<0x1B>` a byte."""
    BYTE_LEVEL = 2
    """Each character stands for a byte, as in GPT-2's table."""


def _byte_of_character() -> dict[str, int]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTE_OF_CHARACTER = _byte_of_character()


def _decoded(token: str | bytes, kind: VocabType) -> bytes:
    if isinstance(token, bytes):
        return token
    if kind is VocabType.BYTE_FALLBACK:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.replace("▁", " ").encode()
    if kind is VocabType.BYTE_LEVEL and all(character in _BYTE_OF_CHARACTER for character in token):
        return bytes(_BYTE_OF_CHARACTER[character] for character in token)
    return token.encode()


class TokenizerInfo:
    """Tokens of a model as bytes, and which of them end a text."""

    def __init__(
        self,
        encoded_vocab: list[bytes] | list[str],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: list[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        decoded = [_decoded(token, vocab_type) for token in encoded_vocab]
        size = len(decoded) if vocab_size is None else vocab_size
        decoded = (decoded + [b""] * (size - len(decoded)))[:size]
        if stop_token_ids is None:
            names = {name.encode() for name in _END_NAMES}
            stop_token_ids = [token for token, text in enumerate(decoded) if text in names]
        elif isinstance(stop_token_ids, int):
            stop_token_ids = [stop_token_ids]
        ends = {token for token in stop_token_ids if token < size}
        vocabulary = palmette.Vocabulary(
            [None if token in ends or not text else text for token, text in enumerate(decoded)], sorted(ends)
        )
        self._set(vocabulary, vocab_type, add_prefix_space, decoded, list(stop_token_ids))

    def _set(
        self,
        vocabulary: palmette.Vocabulary,
        vocab_type: VocabType,
        add_prefix_space: bool,
        decoded: list[bytes],
        stop_token_ids: list[int],
    ) -> None:
        self.palmette = vocabulary
        """The vocabulary itself."""
        self.vocab_type = vocab_type
        self.add_prefix_space = add_prefix_space
        self.decoded_vocab = decoded
        self.stop_token_ids = stop_token_ids

    @classmethod
    def from_huggingface(
        cls, tokenizer: Any, *, vocab_size: int | None = None, stop_token_ids: list[int] | int | None = None
    ) -> TokenizerInfo:
        """Tokens of a fast tokenizer; `vocab_size` is the width of the model's logits."""
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise NotImplementedError(
                f"{type(tokenizer).__name__} is not a fast tokenizer: give its tokens, TokenizerInfo(encoded_vocab, vocab_type)"
            )
        if isinstance(stop_token_ids, int):
            stop_token_ids = [stop_token_ids]
        if stop_token_ids is not None and not stop_token_ids:
            raise ValueError("stop_token_ids is empty: name the tokens that end a text, or leave it out")
        if stop_token_ids is None and getattr(tokenizer, "eos_token_id", None) is not None:
            stop_token_ids = [tokenizer.eos_token_id]
        vocabulary = palmette.Vocabulary.from_tokenizer(tokenizer, num_tokens=vocab_size, ends=stop_token_ids)
        kind, space = _kind_of(json.loads(tokenizer.backend_tokenizer.to_str()))
        names = {token: name for name, token in tokenizer.get_vocab().items()}
        decoded = [
            vocabulary.text(token) or _decoded(names.get(token, ""), VocabType.RAW) for token in range(len(vocabulary))
        ]
        info = cls.__new__(cls)
        info._set(vocabulary, kind, space, decoded, list(vocabulary.ends))
        return info

    @property
    def vocab_size(self) -> int:
        return self.palmette.num_tokens

    @property
    def special_token_ids(self) -> list[int]:
        """Tokens without text."""
        return [token for token, text in enumerate(self.decoded_vocab) if not text]

    @property
    def prepend_space_in_tokenization(self) -> bool:
        return self.add_prefix_space

    def dump_metadata(self) -> str:
        """All but the tokens, as JSON."""
        return json.dumps(
            {
                "vocab_type": self.vocab_type.value,
                "vocab_size": self.vocab_size,
                "add_prefix_space": self.add_prefix_space,
                "stop_token_ids": self.stop_token_ids,
            }
        )

    @classmethod
    def from_vocab_and_metadata(cls, encoded_vocab: list[bytes] | list[str], metadata: str) -> TokenizerInfo:
        found = _object(metadata, ("vocab_type", "vocab_size", "add_prefix_space", "stop_token_ids"))
        return cls(
            encoded_vocab,
            VocabType(found["vocab_type"]),
            vocab_size=found["vocab_size"],
            stop_token_ids=found["stop_token_ids"],
            add_prefix_space=found["add_prefix_space"],
        )

    def serialize_json(self) -> str:
        """Tokens and the rest, as JSON: bytes are written as the characters of their numbers."""
        return json.dumps(
            json.loads(self.dump_metadata()) | {"decoded_vocab": [text.decode("latin-1") for text in self.decoded_vocab]}
        )

    @classmethod
    def deserialize_json(cls, json_string: str) -> TokenizerInfo:
        found = _object(json_string, ("vocab_type", "add_prefix_space", "stop_token_ids", "decoded_vocab"))
        info = cls(
            [text.encode("latin-1") for text in found["decoded_vocab"]],
            VocabType(found["vocab_type"]),
            stop_token_ids=found["stop_token_ids"],
            add_prefix_space=found["add_prefix_space"],
        )
        return info


def _object(text: str, keys: tuple[str, ...]) -> dict:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidJSONError(f"not JSON: {error}") from None
    missing = [key for key in keys if not isinstance(found, dict) or key not in found]
    if missing:
        raise DeserializeFormatError(f"{missing[0]!r} is missing; there must be {', '.join(keys)}")
    return found


def _kind_of(tokenizer: dict) -> tuple[VocabType, bool]:
    """Kind of a tokenizer's tokens by its decoder, and whether it puts a space before texts."""

    def parts(node: Any) -> list[dict]:
        if not isinstance(node, dict):
            return []
        inner = [part for key in ("decoders", "normalizers", "pretokenizers") for part in node.get(key, ())]
        return [node, *(found for part in inner for found in parts(part))]

    decoders = {part.get("type") for part in parts(tokenizer.get("decoder"))}
    before = [*parts(tokenizer.get("normalizer")), *parts(tokenizer.get("pre_tokenizer"))]
    space = any(
        part.get("add_prefix_space") is True
        or part.get("type") == "Prepend"
        or (part.get("type") == "Metaspace" and part.get("prepend_scheme", "never") != "never")
        for part in before
    )
    if "ByteLevel" in decoders:
        return VocabType.BYTE_LEVEL, space
    if "ByteFallback" in decoders or (tokenizer.get("model") or {}).get("byte_fallback"):
        return VocabType.BYTE_FALLBACK, space
    return VocabType.RAW, space
