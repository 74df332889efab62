"""llguidance's names over Palmette: `from palmette.compat import llguidance`.

Grammars, masks, errors that stay, rollback and batches work as in llguidance, also `llguidance.numpy`, `.torch`, `.mlx`, `.hf`,
`.tiktoken` and `.llamacpp`. An accepted end token counts as a token for `rollback`. Not there, and said by
`NotImplementedError`: captures, grammars that refer to others by `@name`, patterns for whitespace, and the limits of
llguidance's parser, in whose place Palmette's own stand.
"""

from importlib.metadata import version as _version

from palmette.compat.llguidance._grammars import GrammarFormat, grammar_from, regex_to_lark
from palmette.compat.llguidance._interpreter import LLInterpreter
from palmette.compat.llguidance._matcher import LLExecutor, LLMatcher, LLParserLimits
from palmette.compat.llguidance._older import JsonCompiler, LarkCompiler, RegexCompiler
from palmette.compat.llguidance._struct_tag import StructTag
from palmette.compat.llguidance._tokenizer import LLTokenizer, TokenizerWrapper

__version__ = _version("palmette")

__all__ = [
    "GrammarFormat",
    "JsonCompiler",
    "LLExecutor",
    "LLInterpreter",
    "LLMatcher",
    "LLParserLimits",
    "LLTokenizer",
    "LarkCompiler",
    "RegexCompiler",
    "StructTag",
    "TokenizerWrapper",
    "__version__",
    "get_version",
    "grammar_from",
    "regex_to_lark",
]


def get_version() -> str:
    """Version of Palmette."""
    return f"palmette {__version__}"
