"""XGrammar's `GrammarCompiler` over Palmette's."""

from __future__ import annotations

import json
from typing import Any

import palmette
from palmette.compat.xgrammar.exception import DeserializeFormatError, refusals
from palmette.compat.xgrammar.grammar import Grammar, deserialised
from palmette.compat.xgrammar.tokenizer_info import TokenizerInfo


class CompiledGrammar:
    """A grammar over a vocabulary; `palmette` is Palmette's."""

    def __init__(self, compiled: palmette.CompiledGrammar, grammar: Grammar, tokenizer_info: TokenizerInfo) -> None:
        self.palmette = compiled
        self.grammar = grammar
        self.tokenizer_info = tokenizer_info

    @property
    def notes(self) -> list[str]:
        """Parts that are not enforced, or in part only, each with its place."""
        return self.palmette.notes

    @property
    def memory_size_bytes(self) -> int:
        return self.palmette.nbytes

    def serialize_json(self) -> str:
        """Source of the grammar and the vocabulary's size, as JSON; compiling it again takes milliseconds."""
        found = json.loads(self.grammar.serialize_json())
        return json.dumps(found | {"tokenizer": json.loads(self.tokenizer_info.dump_metadata())})

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: TokenizerInfo) -> CompiledGrammar:
        grammar, found = deserialised(json_str)
        expected = json.loads(tokenizer_info.dump_metadata())
        if found.get("tokenizer") != expected:
            raise DeserializeFormatError(f"the text is of the vocabulary {found.get('tokenizer')}, not of {expected}")
        return CompiledGrammar(grammar.palmette.compile(tokenizer_info.palmette), grammar, tokenizer_info)


class GrammarCompiler:
    """Compiler over one vocabulary, with a cache.

    `max_threads` has no effect: a compilation takes milliseconds, and several run beside each other.
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise ValueError(
                f"give a TokenizerInfo, TokenizerInfo.from_huggingface(tokenizer), not {type(tokenizer_info).__name__}"
            )
        self._tokenizer_info = tokenizer_info
        self.cache_limit_bytes = cache_limit_bytes
        self._limit = cache_limit_bytes if cache_enabled else 0
        self.clear_cache()

    def _compile(self, grammar: Grammar) -> CompiledGrammar:
        with refusals():
            return CompiledGrammar(self._compiler.compile(grammar.palmette), grammar, self._tokenizer_info)

    def compile_json_schema(self, schema: Any, **options: Any) -> CompiledGrammar:
        return self._compile(Grammar.from_json_schema(schema, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        return self._compile(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        return self._compile(Grammar.from_regex(regex))

    def compile_lark(self, lark_string: str, **options: Any) -> CompiledGrammar:
        return self._compile(Grammar.from_lark(lark_string, **options))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        return self._compile(Grammar.from_structural_tag(*args, **kwargs))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        if isinstance(grammar, str):
            grammar = Grammar.from_ebnf(grammar, root_rule_name=root_rule_name)
        return self._compile(grammar)

    def clear_cache(self) -> None:
        limit = {} if self._limit < 0 else {"cache_bytes": self._limit}
        self._compiler = palmette.Compiler(self._tokenizer_info.palmette, **limit)

    def get_cache_size_bytes(self) -> int:
        return self._compiler.statistics()["bytes"]
