"""llguidance's compilers of texts, which its own documentation advises against: `grammar_from` does the same."""

from __future__ import annotations

from typing import Any

from palmette.compat.llguidance import _grammars
from palmette.compat.llguidance._matcher import LLMatcher


class _Compiler:
    def _checked(self, grammar: str, check: bool) -> str:
        message = LLMatcher.validate_grammar(grammar) if check else ""
        if message and not message.startswith("WARNING"):
            raise ValueError(message)
        return grammar


class JsonCompiler(_Compiler):
    """Text of a schema, with the options of `grammar_from_json_schema`."""

    def __init__(self, separators: tuple[str, str] | None = None, whitespace_flexible: bool = False, **options: Any) -> None:
        self._options = {"whitespace_flexible": whitespace_flexible} | options
        if separators is not None:
            self._options |= {"item_separator": separators[0], "key_separator": separators[1]}

    def compile(self, schema: str, check: bool = True) -> str:
        return self._checked(_grammars.grammar_from_json_schema(schema, overrides=self._options), check)


class LarkCompiler(_Compiler):
    """Text of a grammar in Lark's language."""

    def compile(self, lark: str, check: bool = True) -> str:
        return self._checked(_grammars.grammar_from_lark(lark), check)


class RegexCompiler(_Compiler):
    """Text of a regular expression."""

    def compile(self, regex: str, check: bool = True) -> str:
        return self._checked(_grammars.grammar_from_regex(regex), check)
