"""Types of the extension module, written by hand; `python/tests/core/test_stubs.py` compares them with it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Unpack, final

import numpy as np
import numpy.typing as npt

from palmette.types import Bitmask, IntArray, Limits, SchemaOptions

# ------------------------------------------------------------------------------------------------------------------------
# Shared
# ------------------------------------------------------------------------------------------------------------------------

class Error(ValueError):
    """Every error of the package that is not a wrong type or a refusal of the system."""

class GrammarError(Error):
    """A grammar that cannot be used: `line` and `column` from 1, and the `rule` in which the place is."""

    line: int | None
    column: int | None
    rule: str | None
    path: str | None
    keyword: str | None

class SchemaUnsupported(GrammarError):
    """A JSON Schema that asks for what no grammar can express: `keyword` at `path`, a JSON pointer."""

class LimitExceeded(Error):
    """Work or memory beyond a `limit`, which is named; it can be raised."""

    limit: str | None

class NotAllowed(Error):
    """A `token` (or a byte) that the grammar does not allow at `position`; nothing was changed."""

    token: int | None
    position: int | None

class VocabularyError(Error):
    """A vocabulary that cannot be loaded, or a token that is not in it."""

def run_command(args: Sequence[str | os.PathLike[str]]) -> int:
    """Runs the command line with these arguments, the program's name first; returns the exit status."""

# ------------------------------------------------------------------------------------------------------------------------
# Grammars
# ------------------------------------------------------------------------------------------------------------------------

@final
class Vocabulary:
    """The tokens of a model, and the grammars that were compiled over them. Frozen; threads share it.

    ``tokens[t]`` are the bytes of token ``t``, ``None`` for a special token; ``ends`` are the tokens by which the model stops.
    ``special_tokens`` gives special tokens the names by which grammars may ask for them.
    """

    def __new__(
        cls,
        tokens: Iterable[bytes | None],
        ends: Sequence[int] = ...,
        *,
        special_tokens: Mapping[str, int] | Sequence[tuple[str, int]] | None = None,
    ) -> Vocabulary: ...
    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, num_tokens: int | None = None, ends: Sequence[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a fast tokenizer of ``transformers``, of a ``tokenizers.Tokenizer``, or of a wrapper of one.

        ``num_tokens`` is the size of the model's logits (``model.config.vocab_size``), which are often padded: ids that no token
        has are never allowed. ``ends`` are the ids by which the model stops; left out, the tokenizer's ``eos_token_id``.
        """
    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        special_tokens: Mapping[str, int] | Sequence[tuple[str, int]] | None = None,
        num_tokens: int | None = None,
        ends: Sequence[int | str] | None = None,
    ) -> Vocabulary:
        """A file or folder: ``tokenizer.json``, ``tekken.json``, a SentencePiece model, a tiktoken file, or a list of pieces.

        ``special_tokens`` (names and ids) are added to those of the file. ``ends`` are ids or names; left out, they are looked
        for in the configuration files beside it.
        """
    @classmethod
    def named(cls, name: str, num_tokens: int | None = None, ends: Sequence[int] | None = None) -> Vocabulary:
        """An encoding of tiktoken that is in the package, such as ``"o200k_base"``."""
    @classmethod
    def from_tiktoken(
        cls, encoding: Any, num_tokens: int | None = None, ends: Sequence[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a ``tiktoken.Encoding``, also of one of the caller's own. ``ends`` left out is its ``eot_token``."""
    @classmethod
    def from_json(cls, text: str, num_tokens: int | None = None, ends: Sequence[int] | None = None) -> Vocabulary:
        """The text of a ``tokenizer.json``, a ``tekken.json``, or a JSON list of pieces."""
    @property
    def num_tokens(self) -> int:
        """Size of the vocabulary, special tokens included: masks have this many bits."""
    @property
    def ends(self) -> list[int]:
        """The tokens by which the model stops, ascending."""
    @property
    def notes(self) -> list[str]:
        """Statements that the source does not make and that were taken to hold, a sentence each."""
    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens that have names, by which grammars may ask for them."""
    def text(self, token: int) -> bytes:
        """The bytes of a token; empty for a special one."""
    def decode(self, tokens: Sequence[int]) -> bytes:
        """The bytes of several tokens, one after another."""
    def encode(self, text: str) -> list[int]:
        """The tokens of a text, as the vocabulary's own tokenizer cuts it within a text: no special tokens, no space before it."""
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Grammar:
    """A grammar in one of the languages that are read, with its options. Frozen; equal grammars are equal.

    Nothing is read before ``check`` or ``compile``.
    """

    @staticmethod
    def from_json_schema(schema: Any, **options: Unpack[SchemaOptions]) -> Grammar:
        """The JSON texts that a JSON Schema validates. ``schema`` is its text, a dict, a bool, or a pydantic model or TypeAdapter."""
    @staticmethod
    def from_lark(
        text: str, *, lexing: Literal["contextual", "longest", "any"] | None = None, start: str = "start"
    ) -> Grammar:
        """The texts of a grammar in Lark's language, from the rule ``start``.

        ``lexing`` is how texts are cut into lexemes; left out ``contextual``, and ``longest`` where the grammar has blocks by
        indentation.
        """
    @staticmethod
    def from_gbnf(text: str, *, root: str = "root") -> Grammar:
        """The texts of a grammar in the EBNF of llama.cpp and XGrammar, from the rule ``root``."""
    @staticmethod
    def from_regex(pattern: str) -> Grammar:
        """The texts that a regular expression matches from beginning to end."""
    @staticmethod
    def from_choices(choices: Iterable[str]) -> Grammar:
        """One of these texts."""
    @staticmethod
    def from_structural_tag(document: str | Mapping[str, Any], **options: Unpack[SchemaOptions]) -> Grammar:
        """Free text in which triggers begin regions that schemas or grammars hold, as XGrammar and vLLM take it.

        ``document`` is the text of the document or a dict.
        """
    @staticmethod
    def from_tools(
        request: Any,
        format: Literal["hermes", "llama3", "mistral", "deepseek", "harmony"] | str,
        **options: Unpack[SchemaOptions],
    ) -> Grammar:
        """Answers to a request with tools: tools alone, a list of them, or a request of OpenAI's or Anthropic's interface.

        Of a request are read ``tools``, ``tool_choice``, ``parallel_tool_calls`` and ``response_format``. ``format`` is the way in which
        the model writes calls: ``hermes`` (Qwen3), ``llama3``, ``mistral``, ``deepseek`` or ``harmony`` (gpt-oss).
        """
    @property
    def text(self) -> str:
        """The grammar's text: of choices the regular expression, of tools the structural tag that they became."""
    @property
    def language(self) -> Literal["json_schema", "lark", "gbnf", "regex", "structural_tag"]:
        """The language it is in."""
    @property
    def options(self) -> dict[str, Any]:
        """The options that are not the default ones, as the constructor takes them."""
    def check(self) -> list[str]:
        """Reads the grammar and gives what ``compile(...).notes`` would: parts without effect, and what is not enforced."""
    def compile(
        self, vocabulary: Vocabulary, *, ahead: bool | float | None = None, limits: Limits | None = None
    ) -> CompiledGrammar:
        """Makes the grammar ready to mask a vocabulary's tokens. Without the interpreter's lock; Ctrl-C ends it.

        Equal grammars are compiled once a vocabulary. ``ahead`` finds masks out before they are asked for: ``True`` on a thread of
        its own, a number for at most so many seconds here and then on its own. ``limits`` are those of this grammar alone,
        which then is not kept for others.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class CompiledGrammar:
    """A grammar made ready to mask the tokens of a vocabulary. Frozen; threads share it."""

    def matcher(self, ends: Sequence[int] | None = None) -> Matcher:
        """Follows one sequence from its beginning.

        ``ends`` are the tokens that end this one instead of the vocabulary's: ids of special or ordinary tokens.
        """
    @property
    def notes(self) -> list[str]:
        """Parts of the grammar that have no effect, or are enforced in part only: a sentence each, with its place."""
    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
    @property
    def grammar(self) -> Grammar | None:
        """The grammar; ``None`` where it was loaded from a file, which holds what was compiled and not the text."""
    @property
    def num_tokens(self) -> int:
        """Size of the vocabulary: masks have this many bits."""
    @property
    def nbytes(self) -> int:
        """About how much memory it takes by now, without the vocabulary: masks that were asked for are kept."""
    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the masks that ``ahead`` asked for are found out; tells whether they are.

        ``None`` waits for as long as it takes.
        """
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, with the masks that are known by now: ``palmette.load`` reads it, and so does the command line."""
    def __reduce__(self) -> tuple[Any, ...]: ...

def load(path: str | os.PathLike[str], vocabulary: Vocabulary) -> CompiledGrammar:
    """Opens a compiled grammar that ``CompiledGrammar.save`` or ``palmette grammar compile`` wrote, over the vocabulary that it
    was compiled for."""

@final
class Compiler:
    """Compiles grammars over one vocabulary and keeps them, within so much memory and under limits of its own.

    Grammars that were not asked for longest are let go of first; who still has one keeps it.
    """

    def __new__(
        cls, vocabulary: Vocabulary, *, cache_bytes: int | None = None, limits: Limits | None = None
    ) -> Compiler: ...
    def compile(self, grammar: Grammar, *, ahead: bool | float | None = None) -> CompiledGrammar:
        """The grammar over the vocabulary; compiled once as long as it is kept."""
    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
    @property
    def statistics(self) -> dict[str, int]:
        """Counters: ``grammars`` and ``bytes`` held, and by now ``hits``, ``waited`` (for another thread's compilation), ``built``,
        ``failed``, ``evicted`` and ``too_large``."""

@final
class Matcher:
    """A sequence being written under a grammar: what may follow, and what has been committed.

    A fork costs a few counts; forks do not see each other. Every call that fails leaves it as it was. An accepted end token is
    a commit, which ``rollback`` takes back; after it nothing may follow.
    """

    def fill_mask(self, bitmask: Bitmask, row: int = 0) -> bool:
        """Writes the tokens that may follow into a row of a bitmask, bits past the vocabulary 0. All are 0 when nothing may follow.

        ``False``: nothing is forbidden, so the mask need not be applied.
        """
    def fill_next_token_bitmask(self, bitmask: Bitmask, index: int = 0) -> bool:
        """``fill_mask`` by the name that llguidance and XGrammar have for it."""
    def commit(self, token: int) -> None:
        """Moves over a token; ``NotAllowed`` when it may not follow."""
    def try_commit(self, token: int) -> bool:
        """Moves over a token and gives ``True``, or ``False`` when it may not follow."""
    def commit_all(self, tokens: Sequence[int]) -> None:
        """Moves over several tokens, or over none of them: ``NotAllowed`` names the first that may not follow."""
    def validate(self, tokens: Sequence[int]) -> int:
        """How many of these tokens could be committed, one after another; nothing is."""
    def commit_bytes(self, text: bytes) -> None:
        """Moves over text that no token stands for, such as the part of the answer that is in the prompt; one commit for
        ``rollback``."""
    def rollback(self, n: int = 1) -> None:
        """Takes back the last ``n`` commits."""
    def reset(self) -> None:
        """Begins anew."""
    @property
    def position(self) -> int:
        """Number of commits that can be taken back."""
    @property
    def is_accepting(self) -> bool:
        """True when the text so far is in the language: it may end here, or has ended."""
    @property
    def is_ended(self) -> bool:
        """True once an end token was committed."""
    @property
    def ends(self) -> list[int]:
        """The tokens that end this sequence, ascending."""
    @property
    def compiled(self) -> CompiledGrammar:
        """The compiled grammar."""
    def allowed(self) -> npt.NDArray[np.int32]:
        """The tokens that may follow, ascending: int32 ``[n]``."""
    def forced_tokens(self, limit: int = 256) -> list[int]:
        """The tokens that must follow, each the only one allowed after those before it; at most ``limit``."""
    def forced_bytes(self, limit: int = 4096) -> bytes:
        """The bytes that must follow, whatever the text becomes; at most ``limit``."""
    def _seconds_of_masks(self, bitmask: Bitmask, times: int) -> float:
        """Seconds that filling the mask so many times takes without Python: what a call costs above that is the call's."""
    def fork(self) -> Matcher:
        """Another sequence that goes on from here."""
    def __copy__(self) -> Matcher: ...
    def __deepcopy__(self, _memo: Any, /) -> Matcher: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def fill_masks(
    matchers: Iterable[Matcher | None],
    bitmask: Bitmask,
    rows: Iterable[int] | None = None,
    threads: int | None = None,
) -> bool:
    """Writes the masks of many sequences, each into its row of a bitmask, on several threads and without the interpreter's lock.

    Matchers may be of different grammars and vocabularies; ``None`` leaves a row as it is. ``rows[i]`` is the row of
    ``matchers[i]``; left out, row ``i``. ``threads`` left out are as many as the process may run at once. ``False``: no row
    forbids anything.
    """

def fill_masks_with_drafts(
    matchers: Iterable[Matcher | None],
    drafts: Iterable[Iterable[int]],
    bitmask: Bitmask,
    rows: Iterable[int] | None = None,
    threads: int | None = None,
) -> list[int]:
    """Writes the masks along drafts: of ``matchers[i]`` the mask before its draft, and after each token of ``drafts[i]``, into
    ``len(drafts[i]) + 1`` rows.

    They begin at row ``rows[i]``; left out, each behind those of the one before. Gives how many tokens of each draft may be
    kept; rows behind a token that may not follow, or behind an end token, are all 0. Matchers stay where they are.
    """

@final
class Follower:
    """Follows rows of tokens that an engine forks, drops and reorders between two calls, as beam search does.

    A row goes on from the row of the last call that equals it up to its new tokens: equal rows have equal states, so that any of
    them will do, and a fork costs a few counts. Rows are found by a hash and then compared token by token. A row without a
    forerunner is read from its beginning. So what a call writes depends on its rows alone.

    ``rows`` is the number of rows that every call must have; left out, any. ``ends`` are the tokens that end a text instead of the
    vocabulary's.
    """

    def __new__(
        cls, compiled: CompiledGrammar, rows: int | None = None, *, ends: Sequence[int] | None = None
    ) -> Follower: ...
    def advance(
        self,
        suffixes: IntArray,
        bitmask: Bitmask,
        rows: Iterable[int] | None = None,
        threads: int | None = None,
    ) -> None:
        """Writes the masks of rows of tokens: ``suffixes`` is an integer array ``[rows, n]``, of each row what was generated so far,
        without the prompt.

        A row with a token that was not allowed, is negative or not in the vocabulary gets a mask of zeros, as has one that ended. Row
        ``i`` is written to row ``rows[i]`` of the bitmask; left out, row ``i``.
        """
    @property
    def alive(self) -> list[bool]:
        """Of each row of the last call, whether all of its tokens were allowed."""
    @property
    def ended(self) -> list[bool]:
        """Of each row of the last call, whether it ended: its last token is an end token."""
    @property
    def statistics(self) -> tuple[int, int]:
        """Rows that were read from their beginning, and rows that went on from one of the call before, so far.

        Equal rows of a call count once.
        """
    def reset(self) -> None:
        """Forgets the rows of the last call."""
    @property
    def compiled(self) -> CompiledGrammar:
        """The compiled grammar."""

@final
class MaskBuffer:
    """A bitmask that was checked once: calls take it in place of its array, and save the checks.

    It keeps the array's memory; an array whose memory was put elsewhere since (``tensor.resize_``) needs another one.
    """

    def __new__(cls, bitmask: Bitmask) -> MaskBuffer: ...
    @property
    def array(self) -> Any:
        """The array."""
    @property
    def shape(self) -> tuple[int, int]:
        """Rows and words of a row."""

def apply_bitmask(
    logits: Any, bitmask: Bitmask, rows: Sequence[int] | None = None, *, bfloat16: bool = False
) -> None:
    """Sets logits to minus infinity where a mask has a 0, and past the mask's last word.

    ``rows`` are the rows of both to be done; left out, all, of which both then have as many. ``bfloat16``: logits are given as
    the bits of such, uint16 or int16.
    """
