"""Types of the extension module, written by hand; `python/tests/core/test_stubs.py` compares them with it."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, SupportsIndex, Unpack, final, overload

import numpy as np
import numpy.typing as npt

from palmette.types import (
    ArrowTable,
    Bitmask,
    DLPackTensor,
    FilterLike,
    IntArray,
    Integers,
    Limits,
    RecommendQuestion,
    SchemaOptions,
    Successors,
    Update,
)

# ------------------------------------------------------------------------------------------------------------------------
# Shared
# ------------------------------------------------------------------------------------------------------------------------

#: The version of the package.
__version__: str

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

class DeviceError(Error):
    """A device that is not there, is too old, has not the memory, or has failed."""

class TooFewTokens(Error):
    """Tokens that are too few for a text to end within them: `needed` of them, of `left`; `needed` is None where no way is known.

    `row` is that of a batch.
    """

    needed: int | None
    left: int | None
    row: int | None

class TooManyTokens(Error):
    """Tokens that are more than a text is known to take: `needed` of them, of `left`, None where that is any number.

    `row` is that of a batch.
    """

    needed: int | None
    left: int | None
    row: int | None

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
    A mapping has the number of each token by its bytes; numbers that it leaves out are special tokens. ``special_tokens`` gives
    special tokens the names by which grammars may ask for them.
    """

    def __new__(
        cls,
        tokens: Iterable[bytes | None] | Mapping[bytes, int],
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
    def open(
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
    def encoding(cls, name: str, num_tokens: int | None = None, ends: Sequence[int] | None = None) -> Vocabulary:
        """An encoding of tiktoken that is in the package, such as ``"o200k_base"``."""
    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        special_tokens: Mapping[str, int] | Sequence[tuple[str, int]] | None = None,
        num_tokens: int | None = None,
        ends: Sequence[int | str] | None = None,
    ) -> Vocabulary:
        """Deprecated: ``open``."""
    @classmethod
    def named(cls, name: str, num_tokens: int | None = None, ends: Sequence[int] | None = None) -> Vocabulary:
        """Deprecated: ``encoding``."""
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
    def decode(self, tokens: Sequence[int] | IntArray) -> bytes:
        """The bytes of several tokens, one after another."""
    def encode(self, text: str) -> list[int]:
        """The tokens of a text, as the vocabulary's own tokenizer cuts it within a text: no special tokens, no space before it."""
    @property
    def cache_statistics(self) -> dict[str, int]:
        """Counters of the grammars that were compiled over it and are kept, as ``Compiler.statistics`` has them: together at most
        ``max_bytes``, those that were not asked for longest being let go of first."""
    def clear_cache(self) -> None:
        """Lets go of the grammars that are kept; who has one keeps it."""
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
        format: Literal[
            "harmony",
            "inkling",
            "kimi_k3",
            "kimi_k2",
            "deepseek_r1",
            "deepseek",
            "deepseek_xml",
            "deepseek_v4",
            "deepseek_v41",
            "gigachat_xml",
            "step3",
            "mistral_ids",
            "mistral",
            "mistral-list",
            "longcat_xml",
            "longcat",
            "seed_xml",
            "minimax_m3_xml",
            "minimax_xml",
            "dots_xml",
            "hunyuan_xml",
            "glm_xml",
            "qwen_xml",
            "mimo_xml",
            "minicpm_xml",
            "gemma4",
            "function_gemma",
            "llama4",
            "pythonic",
            "openpangu",
            "openpangu_1",
            "lfm2",
            "olmo3",
            "cohere_flat_xml",
            "cohere_xml",
            "cohere",
            "cohere4",
            "exaone",
            "granite",
            "phi4",
            "functools",
            "nemotron",
            "minimax_m1",
            "hunyuan",
            "apertus",
            "gigachat",
            "internlm",
            "hermes",
            "llama3",
        ]
        | str,
        **options: Unpack[SchemaOptions],
    ) -> Grammar:
        """Answers to a request with tools: tools alone, a list of them, or a request of OpenAI's or Anthropic's interface.

        Of a request are read ``tools``, ``tool_choice``, ``parallel_tool_calls``, ``lax_tools`` and the format of answers without a call
        (``response_format``, ``text.format``, ``output_config``, ``structured_outputs``). ``format`` is the way in which the model writes
        calls, such as ``hermes`` (Qwen3), ``qwen_xml`` (Qwen3-Coder, Qwen3.5), ``kimi_k2`` or ``harmony`` (gpt-oss); the documentation
        of tool calls has the table.
        """
    @property
    def text(self) -> str:
        """The grammar's text: of choices the regular expression, of tools the request."""
    @property
    def language(self) -> Literal["json_schema", "lark", "gbnf", "regex", "structural_tag", "tools"]:
        """The language it is in."""
    @property
    def options(self) -> dict[str, Any]:
        """The options that are not the default ones, as the constructor takes them."""
    def check(self, *, limits: Limits | None = None) -> list[str]:
        """Reads the grammar and gives what ``compile(...).notes`` would: parts without effect, and what is not enforced. Of ``limits`` the
        steps are those of reading."""
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

    def bind(
        self,
        **sets: Catalog | ItemSet | LiveCatalog | LiveReader | Lexicon | Substrings | list[str] | tuple[str, ...],
    ) -> CompiledGrammar:
        """The grammar with sets for the names that it leaves open (``x-catalog``, ``%catalog``, ``<catalog:…>``, ``x-substring``).

        For one request, pinned as they are now; nothing is compiled again. What was bound before is bound anew. ``GrammarError`` for a
        name that is missing or not asked for, and where no text is left.
        """
    @property
    def names(self) -> list[str]:
        """Names of the sets that the grammar leaves open, ascending."""
    @property
    def sources(self) -> dict[str, dict[str, int | None]]:
        """Sources that its names are bound to, by name: the ``generation`` of a live catalog, and how many items or quotes are ``eligible``.

        Empty where nothing is bound."""
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
    def grammar(self) -> Grammar:
        """The grammar."""
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
        """Writes it to a file, with the masks that are known by now: ``palmette.load`` reads it, and so does the command line. Limits of the
        grammar are not written: one that needs greater ones than the default is refused."""
    def __reduce__(self) -> tuple[Any, ...]: ...

def load(path: str | os.PathLike[str], vocabulary: Vocabulary) -> CompiledGrammar:
    """Opens a compiled grammar that ``CompiledGrammar.save`` or ``palmette grammar compile`` wrote, over the vocabulary that it
    was compiled for."""

@final
class Compiler:
    """Compiles grammars over one vocabulary and keeps them, within so much memory and under limits of its own.

    Grammars that were not asked for longest are let go of first; who still has one keeps it.

    With a ``folder`` processes of a machine share what is known of masks: each compiles a grammar, one finds its masks ahead of time
    and writes them to a file, the others read it. Nobody waits for that, and answers are the same without it. Files take at most
    ``folder_bytes``, a gibibyte unless told otherwise; those written first go first.
    """

    def __new__(
        cls,
        vocabulary: Vocabulary,
        *,
        cache_bytes: int | None = None,
        limits: Limits | None = None,
        folder: str | os.PathLike[str] | None = None,
        folder_bytes: int | None = None,
    ) -> Compiler: ...
    def compile(self, grammar: Grammar, *, ahead: bool | float | None = None) -> CompiledGrammar:
        """The grammar over the vocabulary; compiled once as long as it is kept."""
    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary."""
    @property
    def statistics(self) -> dict[str, int]:
        """Counters: ``grammars`` and ``bytes`` held of at most ``max_bytes``, and by now ``hits``, ``waited`` (for another thread's
        compilation), ``built``, ``failed``, ``evicted`` and ``too_large``. With a folder also ``opened`` (grammars whose masks were read
        from a file), ``saved`` and ``refused``."""
    def clear(self) -> None:
        """Lets go of all grammars that are kept; who has one keeps it."""
    def wait(self, seconds: float) -> bool:
        """Waits until nothing more is to be found or written for the folder; tells whether that is so."""
    def take_reports(self) -> list[str]:
        """Reports of the folder since this was asked last, such as of a file that was refused or a folder that cannot be written: a
        sentence each."""

@final
class Matcher:
    """A sequence being written under a grammar: what may follow, and what has been committed.

    A fork costs a few counts; forks do not see each other. Every call that fails leaves it as it was. An accepted end token is
    a commit, which ``rollback`` takes back; after it nothing may follow.
    """

    def fill_mask(
        self, bitmask: Bitmask, row: int = 0, *, tokens_left: int | None = None, tokens_needed: int | None = None
    ) -> bool:
        """Writes the tokens that may follow into a row of a bitmask, bits past the vocabulary 0. All are 0 when nothing may follow.

        With ``tokens_left`` the text ends in time: only tokens may follow after which it can be whole within that many, the next
        one among them and end tokens left out. ``TooFewTokens`` where no way is known; from ``fewest_tokens()`` on there is one,
        and it stays. With ``tokens_needed`` it does not end before so many: ``TooManyTokens`` where no text is known that is so
        long (see ``has_way``).

        ``False``: nothing is forbidden, so the mask need not be applied.
        """
    def fill_next_token_bitmask(self, bitmask: Bitmask, index: int = 0) -> bool:
        """``fill_mask`` by the name that llguidance and XGrammar have for it."""
    def fewest_tokens(self) -> int | None:
        """Tokens of the shortest way to the end of the text that is known, end tokens left out; 0 where it is whole, ``None`` where
        no way is known."""
    def has_way(self, *, tokens_left: int | None = None, tokens_needed: int | None = None) -> bool:
        """``True`` where a text is known that is whole after ``tokens_needed`` to ``tokens_left`` more tokens, end tokens left out; then
        masks of these numbers keep one."""
    def shortest_completion(self) -> tuple[list[int], bytes] | None:
        """The shortest way to the end of the text that is known: its tokens, and their bytes. ``None`` where no way is known."""
    def commit(self, token: int) -> None:
        """Moves over a token; ``NotAllowed`` when it may not follow."""
    def try_commit(self, token: int) -> bool:
        """Moves over a token and gives ``True``, or ``False`` when it may not follow."""
    def commit_all(self, tokens: Sequence[int] | IntArray) -> None:
        """Moves over several tokens, or over none of them: ``NotAllowed`` names the first that may not follow."""
    def accepted_prefix(self, tokens: Sequence[int] | IntArray) -> int:
        """Number of these tokens that could be committed, one after another; nothing is."""
    def accepted_tree(self, tokens: Sequence[int] | IntArray, parents: Sequence[int] | IntArray) -> list[bool]:
        """Tokens of a draft tree that could be committed, a bool for each; nothing is. Each stands behind the one at its parent's place,
        which comes before it, or behind the text where the parent is -1; what stands behind one that may not follow may not either."""
    def validate(self, tokens: Sequence[int] | IntArray) -> int:
        """Deprecated: ``accepted_prefix``."""
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
    def members(self) -> list[Member]:
        """The members of the sets that the grammar is bound to, as far as the text has them, in their order.

        None where nothing is bound. A member counts where it has ended, or where the text may end with it. The cost is a step for
        each byte of the text."""
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

@final
class Lexicon:
    """Texts without semantic IDs or attributes, millions of them, one of which a grammar may ask for by name.

    Frozen; threads share it.
    """

    def __new__(cls, values: Iterable[str]) -> Lexicon:
        """A lexicon of these texts; those that stand twice count once."""
    @staticmethod
    def open(path: str | os.PathLike[str]) -> Lexicon:
        """Opens a file of ``palmette lexicon build`` or ``save``. Everything in it is checked."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, which ``open`` and the command line read."""
    def __len__(self, /) -> int: ...
    def __contains__(self, text: str, /) -> bool: ...

@final
class Substrings:
    """Documents that a grammar quotes; how, it says itself (``x-substring``)."""

    def __new__(cls, texts: Iterable[str]) -> Substrings:
        """Documents, 4 MiB together: a list of texts."""
    def __len__(self, /) -> int: ...

@final
class Member:
    """A member of a set that a text has."""

    @property
    def set(self) -> str:
        """Name of the set in the grammar."""
    @property
    def field(self) -> str:
        """``id`` or an attribute; of documents the unit that is quoted."""
    @property
    def value(self) -> str:
        """The value, which may be spelled otherwise in the text."""
    @property
    def id(self) -> str | None:
        """Id of the item, where one is meant."""
    @property
    def span(self) -> tuple[int, int]:
        """Begin and end of its spelling, in bytes of the text."""
    @property
    def document(self) -> int | None:
        """Number of the document that has the quote first, from 0."""
    @property
    def place(self) -> tuple[int, int] | None:
        """Begin and end of the quote, in bytes of that document."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

def fill_masks(
    matchers: Iterable[Matcher | None],
    bitmask: Bitmask,
    rows: Iterable[int] | None = None,
    threads: int | None = None,
    *,
    tokens_left: Iterable[int | None] | None = None,
    tokens_needed: Iterable[int | None] | None = None,
) -> bool:
    """Writes the masks of many sequences, each into its row of a bitmask, on several threads and without the interpreter's lock.

    Matchers may be of different grammars and vocabularies; ``None`` leaves a row as it is. ``rows[i]`` is the row of
    ``matchers[i]``; left out, row ``i``. ``threads`` left out are as many as the process may run at once. ``tokens_left[i]`` and
    ``tokens_needed[i]`` are those of ``Matcher.fill_mask``, ``None`` for a text that may be cut off or end at once; the ``row`` of
    ``TooFewTokens`` and ``TooManyTokens`` is the first one that fails, and the others are filled. ``False``: no row forbids anything.
    """

def fill_masks_with_drafts(
    matchers: Iterable[Matcher | None],
    drafts: Iterable[Iterable[int]],
    bitmask: Bitmask,
    rows: Iterable[int] | None = None,
    threads: int | None = None,
    *,
    tokens_left: Iterable[int | None] | None = None,
    tokens_needed: Iterable[int | None] | None = None,
) -> list[int]:
    """Writes the masks along drafts: of ``matchers[i]`` the mask before its draft, and after each token of ``drafts[i]``, into
    ``len(drafts[i]) + 1`` rows.

    They begin at row ``rows[i]``; left out, each behind those of the one before. Gives how many tokens of each draft may be
    kept; rows behind a token that may not follow, or behind an end token, are all 0. Matchers stay where they are.
    ``tokens_left[i]`` and ``tokens_needed[i]`` are those of the mask before the draft, and one less after each of its tokens.
    """

def fill_masks_with_trees(
    matchers: Iterable[Matcher | None],
    trees: Iterable[tuple[Iterable[int], Iterable[int]]],
    bitmask: Bitmask,
    rows: Iterable[int] | None = None,
    threads: int | None = None,
    *,
    tokens_left: Iterable[int | None] | None = None,
    tokens_needed: Iterable[int | None] | None = None,
) -> list[list[bool]]:
    """Writes the masks at the tokens of draft trees: of ``matchers[i]`` the mask before its tree, and after each token of
    ``trees[i]``, into one row more than there are tokens.

    A tree is ``(tokens, parents)``: each token stands behind the one at its parent's place, which comes before it, or behind the
    text where the parent is -1. Gives for each tree which of its tokens may be kept; what stands behind one that may not be is not
    kept either, and rows behind those, or behind an end token, are all 0. Matchers stay where they are; what drafts have in common is
    walked once. Other arguments are those of ``fill_masks_with_drafts``.
    """

@final
class Follower:
    """Follows rows of tokens that an engine forks, drops and reorders between two calls, as beam search does.

    A row goes on from the row of the last call that equals it up to its new tokens: equal rows have equal states, so that any of
    them will do, and a fork costs a few counts. Rows are found by a hash and then compared token by token. Without such a row, a row
    is what the row at its place was, rolled back to what both begin with; and where they share nothing it is read from its
    beginning. So what a call writes depends on its rows alone.

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
        *,
        tokens_left: int | None = None,
        tokens_needed: int | None = None,
    ) -> None:
        """Writes the masks of rows of tokens: ``suffixes`` is an integer array ``[rows, n]``, of each row what was generated so far,
        without the prompt.

        A row with a token that was not allowed, is negative or not in the vocabulary gets a mask of zeros, as has one that ended. Row
        ``i`` is written to row ``rows[i]`` of the bitmask; left out, row ``i``. With ``tokens_left`` the texts end in time, and with
        ``tokens_needed`` not before, as under ``Matcher.fill_mask``; a row that cannot gets a mask of zeros.
        """
    @property
    def alive(self) -> list[bool]:
        """True for each row of the last call of which all tokens were allowed."""
    @property
    def ended(self) -> list[bool]:
        """True for each row of the last call that ended: its last token is an end token."""
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
class CudaDevice:
    """A device, opened once a process."""

    IS_EMULATED: Final[bool]
    """True in builds for tests alone: the device is an emulation, whose memory is that of this process."""

    @staticmethod
    def open(index: int) -> CudaDevice:
        """Opens the device of a number, and loads the kernels."""
    @property
    def index(self) -> int:
        """Number of the device."""
    @property
    def name(self) -> str:
        """Name, as the driver has it."""
    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability."""
    def tables(self, source: Catalog | CatalogConstraint) -> CudaTables:
        """Puts a catalog on the device: of a constraint, in the model's tokens, or of a catalog whose codes are the tokens."""
    def mask_rows(self, logits: Any, masks: Any, rows: Any | None, masks_of: Any | None, stream: int) -> None:
        """Writes minus infinity to logits that their row's mask has no 1 for, on a stream.

        ``rows``: the rows, or all; ``masks_of``: the mask of each, or that of its own number.
        """

@final
class CudaTables:
    """Catalog of one generation on a device."""

    @property
    def num_levels(self) -> int:
        """Levels of a semantic ID."""
    @property
    def num_segments(self) -> int:
        """Number of segments."""
    @property
    def generation(self) -> int | None:
        """The number of a live catalog's moment; None for a frozen catalog."""
    @property
    def nbytes(self) -> int:
        """Bytes of the tables on the device, those that other generations share included."""
    @property
    def device(self) -> CudaDevice:
        """The device."""
    def refreshed(self, source: Catalog | CatalogConstraint) -> CudaTables:
        """Tables of another generation; the segments that both have are shared."""
    def filters(self, *filters: FilterLike | ItemSet | CatalogConstraint | None) -> CudaFilters:
        """Filters on the device: one for all requests, or several, a request each. Each is a filter, an item set, a constraint of
        the catalog, or None for all that may be found."""
    def scratch_bytes(self, level: int, requests: int, rows: int, columns: int, width: int) -> int:
        """Bytes of memory that a level works in."""
    def select(
        self,
        filters: CudaFilters,
        level: int,
        logits: Any,
        is_log_probs: bool,
        before: Sequence[Any],
        after: Sequence[Any],
        scratch: Any,
        stream: int,
    ) -> None:
        """Launches a level on a stream. ``before``: scores, positions, states and tokens of the beams; ``after``: those of the next
        ones, and the beams that they continue."""

@final
class CudaFilters:
    """Filters of searches over tables, on the device."""

    def __len__(self, /) -> int: ...

@final
class MaskNumbers:
    """Numbers of distinct masks, for a copy of them elsewhere: equal masks have one number, whichever grammars they are of.

    Where there is room for no more, all are dropped and numbers are given out again from 0.
    """

    def __new__(cls, num_words: int, capacity: int) -> MaskNumbers: ...
    def of(
        self, matchers: Iterable[Matcher | None]
    ) -> tuple[npt.NDArray[np.int32], int, npt.NDArray[np.int32]]:
        """Numbers of the masks of some sequences, -1 for None; then the first number and the words of the masks that are new:
        int32 ``[new, words]``, for the copy."""
    def clear(self) -> None:
        """Drops all masks."""
    def __len__(self, /) -> int: ...
    @property
    def generation(self) -> int:
        """Number of times that all masks were dropped: numbers that were given out before mean nothing."""

@final
class MaskBuffer:
    """A bitmask whose layout was checked once; each call that takes it checks that its array is still as it was.

    An array whose memory, shape or type changed since, as by ``tensor.resize_``, is refused with ``ValueError``: it needs another
    buffer.
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

# ------------------------------------------------------------------------------------------------------------------------
# Catalogs
# ------------------------------------------------------------------------------------------------------------------------

class CatalogError(Error):
    """Items that make no catalog, or a catalog that does not fit: `line` (or row) from 1 and `item`, where one is at fault,
    `column` of a table, and `level` of a code."""

    line: int | None
    column: str | None
    item: str | None
    level: int | None

class FilterError(Error):
    """A filter that is none, or that asks for what the catalog does not have."""

class RecommendError(Error):
    """A request that cannot be answered."""

@final
class Filter:
    """A condition on the attributes of items, read and checked once."""

    def __new__(cls, filter: Mapping[str, Any] | str) -> Filter: ...
    def to_dict(self) -> dict[str, Any]:
        """The filter as a `dict`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[str]]: ...

@final
class Catalog:
    """Items, each with a semantic ID and attributes. It never changes; threads share it.

    Items are numbered in the order of their semantic IDs; those that share one keep the order in which they were given. A
    snapshot of a live catalog is one, too, whose numbers go segment by segment.
    """

    @staticmethod
    def build(
        codes: Integers | Sequence[Integers] | None = None,
        ids: Iterable[str | int] | None = None,
        attributes: Mapping[str, Iterable[Any]] | ArrowTable | None = None,
        offsets: Integers | None = None,
        *,
        code_columns: Sequence[Integers] | None = None,
    ) -> Catalog:
        """Builds a catalog of semantic IDs, ids and attributes.

        ``codes``: an array ``[n, L]`` of any integer type and layout, read in place; a list or column of n rows, each a list or
        array of any length; or with ``offsets`` ``[n + 1]`` all rows one after another. ``code_columns`` in its place: L arrays, one
        a level. ``ids``: text or whole numbers, the row's number where they are left out. ``attributes``: a column a name, None where
        an item has none, and NaN, NaT and NA in columns of pandas; dates and times become points in time.

        Raises ``CatalogError`` for a code below 0 or above 2**31 - 1, and an id that comes twice, naming row and item. Ctrl-C ends
        it.
        """
    @staticmethod
    def from_arrow(
        table: ArrowTable,
        id: str | None = None,
        codes: str | Sequence[str] | None = None,
        leave_out: Sequence[str] = ...,
    ) -> Catalog:
        """Builds a catalog of a table's rows: the column ``id`` (``item_id`` or ``id``), ``codes`` (``codes``, ``semantic_id`` or
        ``sid``, a list of integers or text such as ``<a_1><b_2>``; or a list of columns, one a level), the rest attributes."""
    @staticmethod
    def from_parquet(
        path: str | os.PathLike[str],
        id: str | None = None,
        codes: str | Sequence[str] | None = None,
        leave_out: Sequence[str] = ...,
    ) -> Catalog:
        """Builds a catalog of the rows of a Parquet file, or of an Arrow file (``.arrow``, ``.feather``), as `from_arrow`."""
    @staticmethod
    def from_index_json(index: Mapping[str, Sequence[str]] | str | os.PathLike[str]) -> Catalog:
        """Builds a catalog of an index, a dict or a file of JSON: ``{"0": ["<a_12>", "<b_3>"], …}``."""
    @staticmethod
    def from_static(packed_csr: IntArray, indptr: IntArray, start_mask: Any, num_levels: int) -> Catalog:
        """The catalog of an index of STATIC; its items are named ``0``, ``1``, … in the order of their semantic IDs."""
    @staticmethod
    def open(path: str | os.PathLike[str]) -> Catalog:
        """Opens a catalog's file. Everything in it is checked."""
    @staticmethod
    def from_bytes(bytes: bytes) -> Catalog:
        """The catalog in the bytes of a file. Everything in them is checked."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the catalog to a file; one of that name is replaced, and kept if writing fails."""
    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes."""
    def to_static(
        self, vocab_size: int | None = None, dense_lookup_layers: int = 2, num_levels: int | None = None
    ) -> tuple[
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
        tuple[int, ...],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        npt.NDArray[np.int32],
    ]:
        """The tables of STATIC for this catalog, whose code ``c`` is token ``c``: ``packed_csr`` ``[E + V, 2]``, ``indptr`` ``[S + 2]``,
        ``layer_max_branches``, ``start_mask`` ``[V]``, ``dense_mask`` and ``dense_states`` ``[V, …, V]``."""
    def __len__(self, /) -> int: ...
    def __contains__(self, codes: Integers, /) -> bool: ...
    @property
    def num_levels(self) -> int:
        """Codes of the longest semantic ID."""
    @property
    def codes_per_level(self) -> list[int]:
        """One more than the largest code of each level, or the size of its codebook where that was given."""
    @property
    def level_prefixes(self) -> list[str] | None:
        """The letters of each level where codes were spelled ``<a_12>``; else None."""
    @property
    def generation(self) -> int | None:
        """The number of a live catalog's moment; None for a frozen catalog."""
    @property
    def nbytes(self) -> int:
        """Bytes of the catalog, ids and attributes included."""
    def find(self, codes: Integers) -> list[str]:
        """The ids of the items with exactly this semantic ID: several on a collision."""
    def ids(self, numbers: Integers | None = None) -> list[str]:
        """The ids of items by number, or of all: numbers follow the order of semantic IDs."""
    def codes(self) -> npt.NDArray[np.int32]:
        """All semantic IDs ``[n, L]``, in the order of ``ids()``; shorter ones end in -1."""
    def _segments(self) -> list[tuple[int, int, int]]:
        """Key, items and gone items of each segment of a live catalog's moment."""
    def _segment_codes(self, place: int) -> npt.NDArray[np.int32]:
        """Semantic IDs of all items of a segment, gone ones included."""
    def _segment_live(self, place: int) -> npt.NDArray[np.bool_]:
        """True for each item of a segment that is there."""
    def item(self, id: str | int) -> dict[str, Any]:
        """An item by its id: ``{"id": …, "codes": […], "attributes": {…}}``. ``KeyError`` where there is none."""
    def contains_prefix(self, prefixes: Integers) -> npt.NDArray[np.bool_]:
        """True where some item's semantic ID begins with the row of codes ``[n, l]``."""
    def filter(self, filter: FilterLike) -> ItemSet:
        """The items that match a filter; compiled sets are kept for the next time."""
    @property
    def cache_statistics(self) -> dict[str, int]:
        """Counters of the filters that were compiled over it and are kept: ``filters``, ``bytes``, ``hits``, ``built``; together at
        most ``max_bytes``, those that were not asked for longest being let go of first. Of a live catalog's moment, its segments'
        together."""
    def clear_cache(self) -> None:
        """Lets go of the filters that are kept; who has a set keeps it."""
    def all_items(self) -> ItemSet:
        """All items, as a set to take some out of."""
    def items_with_ids(self, ids: Iterable[str | int]) -> ItemSet:
        """The items with these ids. ``KeyError`` for one that is not there."""
    def constraint(
        self,
        code_tokens: Iterable[tuple[int, int] | Integers],
        num_tokens: int | None = None,
        items: ItemSet | FilterLike | None = None,
    ) -> CatalogConstraint:
        """Joins the catalog with the tokens by which a model spells its codes.

        ``code_tokens``, for each level: a tuple ``(first token, number of codes)``, or the token of each code in any order, -1 for a code
        without one. ``num_tokens``: the size of the vocabulary, one more than the largest token where it is left out.

        Raises ``CatalogError`` for a code in use without a token, a token past the vocabulary, and one that two codes of a level
        have.
        """
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...
    @classmethod
    def _restore(cls, bytes: bytes) -> Catalog: ...

@final
class ItemSet:
    """Some items of a catalog, as a filter found them or combined from others."""

    def __len__(self, /) -> int: ...
    def __contains__(self, id: str, /) -> bool: ...
    def __and__(self, other: ItemSet, /) -> ItemSet: ...
    def __rand__(self, other: ItemSet, /) -> ItemSet: ...
    def __or__(self, other: ItemSet, /) -> ItemSet: ...
    def __ror__(self, other: ItemSet, /) -> ItemSet: ...
    def __sub__(self, other: ItemSet, /) -> ItemSet: ...
    def __rsub__(self, other: ItemSet, /) -> ItemSet: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def ids(self) -> list[str]:
        """The ids, in the order of semantic IDs (of a live catalog: segment by segment)."""
    @property
    def nbytes(self) -> int:
        """Bytes of the set."""
    @property
    def catalog(self) -> Catalog:
        """The catalog that these items are of."""
    def __reduce__(self) -> tuple[Any, tuple[Catalog, npt.NDArray[np.int64]]]: ...
    @classmethod
    def _restore(cls, catalog: Catalog, numbers: Integers) -> ItemSet: ...

@final
class CatalogConstraint:
    """The semantic IDs of a catalog's items as sequences of a model's tokens.

    It keeps no state: every call names the tokens so far, so that beams may be reordered, dropped and copied in any way.
    Threads share it.
    """

    @property
    def num_tokens(self) -> int:
        """Size of the vocabulary: masks have this many bits."""
    @property
    def num_levels(self) -> int:
        """Codes of the longest semantic ID."""
    @property
    def catalog(self) -> Catalog:
        """The catalog."""
    @property
    def items(self) -> ItemSet | None:
        """The items that may be returned; None for all."""
    @property
    def code_tokens(self) -> list[npt.NDArray[np.int32]]:
        """The token of each code of each level; -1 for a code without one."""
    def filtered(self, items: ItemSet | FilterLike) -> CatalogConstraint:
        """The same catalog, of which only what matches a filter or is in a set may be returned; of the items that may be
        returned now, where there is a set already."""
    def successors(
        self,
        tokens: Integers,
        items: Iterable[ItemSet | None] | None = None,
        item_of_row: Integers | None = None,
    ) -> Successors:
        """Successors of rows of tokens ``[rows, l]``; nothing follows tokens that no item begins with.

        ``items``: sets of items, one a row, or as ``item_of_row`` ``[rows]`` says which row has which; None for all.
        """
    def fill_masks(self, tokens: Integers, bitmask: Bitmask, rows: Integers | None = None) -> None:
        """Writes the masks of rows of tokens ``[rows, l]`` to the first rows of a bitmask, or to those that ``rows`` names.

        A row of tokens that no item begins with denies all.
        """
    def decode(self, tokens: Integers) -> list[list[str]]:
        """The ids of the items that may be returned and whose whole semantic ID is each row of tokens ``[rows, L]``; none for a
        row that is no item's."""
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    @classmethod
    def _restore(
        cls, catalog: Catalog, code_tokens: Any, num_tokens: int, numbers: Integers | None
    ) -> CatalogConstraint: ...

@final
class Beams:
    """The hypotheses of a search over a catalog: at first one without tokens, then those that `advance` makes of them.

    What may follow is exact, and a search with fewer items than beams has fewer rows, never an invalid one.
    """

    def __new__(cls, constraint: CatalogConstraint, width: int) -> Beams: ...
    def __len__(self, /) -> int: ...
    @property
    def constraint(self) -> CatalogConstraint:
        """The constraint."""
    @property
    def width(self) -> int:
        """Beams that `select` keeps at most."""
    @property
    def level(self) -> int:
        """Tokens of a row."""
    @property
    def num_rows(self) -> int:
        """Hypotheses now."""
    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The tokens of all rows, ``[rows, level]``."""
    @property
    def scores(self) -> npt.NDArray[np.float32]:
        """The sum of log-probabilities of each row, as given to `advance`."""
    def successors(self) -> Successors:
        """Successors of each row, as of `CatalogConstraint.successors`."""
    def fill_masks(self, bitmask: Bitmask, rows: Integers | None = None) -> None:
        """Writes the masks of the rows to the first rows of a bitmask, or to those that ``rows`` names."""
    def select(
        self, log_probs: npt.NDArray[np.float32] | DLPackTensor, width: int | None = None
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """The best extensions of all rows: ``(parents, tokens, scores)``, best first; equal scores by row, then by token.

        Fewer than ``width`` where fewer may follow. ``log_probs`` are float32 ``[rows, num_tokens or more]``: the log-softmax over
        the whole vocabulary. Nothing is changed: `advance` takes all three.
        """
    def advance(
        self,
        parents: Integers,
        tokens: Integers,
        scores: npt.NDArray[np.float32] | DLPackTensor | None = None,
    ) -> None:
        """Goes on: row ``i`` becomes row ``parents[i]`` and ``tokens[i]``. A row may be taken several times, or not at all.

        Where ``scores`` are left out, those of the parents stay. Raises ``NotAllowed`` for a token that may not follow; nothing is
        changed then.
        """
    def items(self) -> list[list[str]]:
        """The ids of the items whose whole semantic ID each row is: several that share one, none of a row that must go on."""

@final
class LiveCatalog:
    """A catalog in a directory, whose items come, change and go while it is read.

    What `apply` returned from outlives a crash. One process at a time writes to a directory; others read it with
    `LiveReader`. Threads share it.
    """

    @staticmethod
    def create(dir: str | os.PathLike[str], catalog: Catalog | None = None) -> LiveCatalog:
        """Makes one in a directory, with the items of a catalog, or none."""
    @staticmethod
    def open(dir: str | os.PathLike[str]) -> LiveCatalog:
        """Opens a directory that `create` or ``palmette catalog live init`` made."""
    def apply(self, updates: Iterable[Update] | ArrowTable) -> int:
        """Applies updates, all or none; they are on disk when this returns, and readers see them from then on. Returns the
        generation.

        A table has the fields of updates as columns, and ``_delete`` where rows are deletions.
        """
    def snapshot(self) -> Catalog:
        """The items as they are now, whatever comes after."""
    @property
    def generation(self) -> int:
        """The number of the present state: one more with each batch."""
    def keep(self, name: str | None = None) -> int:
        """Keeps the present generation, to go back to; returns its number."""
    def widen(self, codes_per_level: Sequence[int]) -> int:
        """Makes codebooks larger: codes of updates are then below these sizes. Returns the generation."""
    def forget(self, generation: int) -> None:
        """Lets go of a kept generation."""
    def rollback(self, generation: int) -> int:
        """Makes the items those of a kept generation again, as a new one; returns its number."""
    def close(self) -> None:
        """Ends what runs in the background and unlocks the directory; readers of snapshots go on."""
    def __len__(self, /) -> int: ...
    def __enter__(self) -> LiveCatalog: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class LiveReader:
    """A catalog in a directory that another process changes.

    It locks nothing and writes nothing, and sees a new generation some 20 ms after it was published. Threads share it.
    """

    @staticmethod
    def open(dir: str | os.PathLike[str]) -> LiveReader:
        """Opens a directory that a `LiveCatalog` or ``palmette catalog live`` writes."""
    def snapshot(self) -> Catalog:
        """The items as they are now, whatever comes after."""
    def kept(self, generation: int | str) -> Catalog:
        """The items of a generation that is kept, by its number or name."""
    def refresh(self) -> int:
        """Looks for a newer generation at once; returns the newest."""
    @property
    def generation(self) -> int:
        """The number of the newest generation that was seen."""
    def __len__(self, /) -> int: ...

@final
class Recommender:
    """A model joined with the catalog it recommends from. Threads share it, and none waits for another.

    Over a live catalog each request sees the newest generation, from its beginning to its end.
    """

    def __new__(
        cls,
        model_dir: str | os.PathLike[str],
        catalog: Catalog | LiveCatalog | LiveReader,
        *,
        prompt_cache_mb: int = 0,
    ) -> Recommender:
        """``prompt_cache_mb`` is memory for keys and values of histories: one that begins as an earlier one did is computed from
        where they part. Answers are the same to the bit.
        """
    def recommend(
        self, history: Iterable[str | int | Sequence[int]], k: int | None = None, **question: Unpack[RecommendQuestion]
    ) -> Answer:
        """The best items to follow a history, oldest first, by id or by semantic ID as a list of codes. Items that the catalog never
        had are left out, and in the answer's ``unknown``.

        The keywords are the members of the question as it is asked over HTTP (docs/http.md): ``filter`` and ``rules`` of the business,
        ``beam_width``, ``exclude``, ``exclude_seen=False`` to recommend items of the history too, ``unknown_items="error"``.
        ``mode``: ``"auto"`` sends a narrow search first where the beam is eight times as wide and so spares most of the work, the
        answer is the same; ``"draft"`` asks a draft head. ``query`` and ``user`` are for models whose prompts have places for them;
        ``think_tokens`` lets one reason before the item, ``explain_items`` write after the first; ``trace`` keeps the beams.
        ``remember=False`` keeps nothing of the request for later ones.
        """
    def recommend_batch(
        self,
        histories: Iterable[Iterable[str | int | Sequence[int]]],
        k: int | None = None,
        threads: int | None = None,
        **question: Unpack[RecommendQuestion],
    ) -> list[Answer]:
        """`recommend` for many histories, side by side on so many threads; by default as many as there are processors."""
    def recommend_table(
        self,
        table: ArrowTable,
        k: int | None = None,
        threads: int | None = None,
        *,
        layout: str | None = None,
        user_column: str | None = None,
        item_column: str | None = None,
        history_column: str | None = None,
        time_column: str | None = None,
        target_column: str | None = None,
        list_separator: str | None = None,
        **question: Unpack[RecommendQuestion],
    ) -> AnswerTable:
        """Answers every row of a table of histories, as ``palmette recommend --histories`` does; gives a table.

        Columns are told by their names: the list of items in ``history`` or ``items``, the user in ``user_id`` or ``user``; those
        called otherwise are named by the command's options (``user_column`` and so on), or by the ``layout`` of a data set. What is
        not read of the table is a `UserWarning`. A row
        that cannot be answered, because it has none of what a history is or with ``unknown_items="error"`` an unknown item, has the
        reason in ``error``; unknown items that are left out are counted in ``skipped``. All rows are answered by one generation.
        `palmette.BatchRecommender` is this for engines of tables.
        """
    @property
    def catalog(self) -> Catalog:
        """The items as a request sees them now."""

@final
class Answer:
    """Items found for one history, best first: a sequence, with what there is to say of the history."""

    @property
    def unknown(self) -> list[str]:
        """Ids of the history that the catalog does not have, in its order: the model read the others."""
    @property
    def history_used(self) -> int:
        """Number of the most recent items of the history that the model read."""
    @property
    def proven(self) -> bool:
        """True where the items are those of scoring every item that may be recommended."""
    @property
    def missed_at_most(self) -> float | None:
        """Bound on the scores of items that belong into the answer and are not in it; None where it is proven."""
    @property
    def cursor(self) -> str | None:
        """Cursor of the items that come next, with ``paged`` or ``cursor``; None where none do."""
    @property
    def generation(self) -> int | None:
        """The generation of a live catalog that was answered by; None for one that never changes."""
    @property
    def thought(self) -> str | None:
        """Text that the model wrote before the item, with ``think_tokens``."""
    @property
    def explanations(self) -> list[str]:
        """Texts that the model wrote after the first items, with ``explain_items``."""
    @property
    def levels(self) -> list[list[tuple[list[int], float]]]:
        """Beams kept after each level but the last, best first, as codes and score, with ``trace``."""
    def __len__(self, /) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Recommendation: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Recommendation]: ...
    def __iter__(self, /) -> Iterator[Recommendation]: ...

@final
class AnswerTable:
    """Answers as a table, for whatever reads Arrow streams: ``pyarrow.table(answers)``, ``polars.DataFrame(answers)``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __len__(self, /) -> int: ...

@final
class Recommendation:
    """An item of an answer."""

    @property
    def id(self) -> str:
        """Id of the item."""
    @property
    def score(self) -> float:
        """Sum of the log-probabilities of its codes, plus its boost."""
    @property
    def boost(self) -> float:
        """The part of the score that boosts added."""
    @property
    def pinned(self) -> bool:
        """True for an item that was to be included."""
    @property
    def codes(self) -> list[int]:
        """Semantic ID of the item."""
    @property
    def title(self) -> str | None:
        """The attribute ``title``, where it has one that is text."""
    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes."""
