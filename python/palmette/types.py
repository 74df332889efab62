"""Types of arguments, for annotations: arrays that are taken, and dictionaries of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from palmette._palmette import Filter, MaskBuffer

__all__ = [
    "ArrowTable",
    "Bitmask",
    "DLPackTensor",
    "FilterLike",
    "IntArray",
    "Integers",
    "Limits",
    "RecommendQuestion",
    "SchemaOptions",
    "Successors",
    "Update",
]


class DLPackTensor(Protocol):
    """A tensor in host memory, such as ``torch.Tensor``."""

    def __dlpack__(self, *, max_version: tuple[int, int] | None = ...) -> Any: ...


#: int32 (or uint32) ``[rows, words]``, each row in one piece, or one row; bit ``t % 32`` of word ``t // 32`` is token ``t``, 1 = allowed.
Bitmask: TypeAlias = "npt.NDArray[np.int32] | npt.NDArray[np.uint32] | DLPackTensor | MaskBuffer"

#: Integers of any type and layout.
IntArray: TypeAlias = "npt.NDArray[np.integer[Any]] | DLPackTensor"

#: Anything that is made an array of integers by ``numpy.asarray``: also lists, Series, columns of Arrow.
Integers: TypeAlias = "IntArray | Sequence[int] | Any"

#: ``(rows, tokens, offsets)``: row ``r`` may be followed by ``tokens[offsets[r]:offsets[r + 1]]``, ascending; ``rows`` repeats ``r``.
Successors: TypeAlias = "tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]"

#: A filter: a dict, JSON text, or a ``Filter`` that was read before.
FilterLike: TypeAlias = "Mapping[str, Any] | str | Filter"

#: ``{"id": …, "codes": […], …attributes}`` to insert or replace, without codes to change attributes, or ``{"delete": id}``.
Update: TypeAlias = "Mapping[str, Any]"


class ArrowTable(Protocol):
    """A table that hands over a stream of Arrow batches: of pyarrow, polars, pandas 2.2 or later, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class RecommendQuestion(TypedDict, total=False):
    """What a recommendation may be asked: the members of a body of ``POST /v1/recommend`` (docs/http.md), beside ``history`` and ``k``."""

    beam_width: int | None
    widths: Sequence[int] | None
    mode: Literal["auto", "beam", "probed", "proven", "draft"]
    probe_width: int | None
    prove_width: int | None
    verify: Literal["masks", "keys", "none"] | None
    filter: FilterLike | None
    rules: Mapping[str, Any] | str | None
    exclude: Sequence[str | int] | None
    exclude_seen: bool
    unknown_items: Literal["skip", "error"]
    fields: Sequence[str] | None
    min_beam_width: int | None
    trace: bool
    query: str | None
    user: Mapping[str, Any] | str | None
    think_tokens: int | None
    think_temperature: float | None
    think_top_p: float | None
    think_seed: int | None
    explain_items: Mapping[str, int] | None
    paged: bool
    cursor: str | None
    remember: bool


class SchemaOptions(TypedDict, total=False):
    """Options of JSON Schema, also of the schemas within structural tags and tools."""

    #: Order of the members of an object: ``any`` (default; optional ones may come again where an object declares more than
    #: ``max_tracked``) or as in the ``schema``.
    order: Literal["any", "schema"]
    #: Between the tokens of the JSON text: ``bounded`` (default: a blank, or a line break and up to 40, so that a model cannot
    #: go on writing blanks), ``flexible``, ``compact`` (none), ``spaced`` (one after each comma and colon), or the comma and the colon
    #: with the blanks around them, as `json.dumps` takes them, ``(", ", ": ")``, and none elsewhere.
    whitespace: Literal["bounded", "flexible", "compact", "spaced"] | tuple[str, str]
    #: Lengths of numbers: ``bounded`` (default: up to 40 digits before and after the point, exponents of doubles, more where
    #: bounds or divisors have more, so that a model cannot go on writing digits) or ``any``.
    digits: Literal["bounded", "any"]
    #: Escapes in strings: in strings of any text all, in others where ``needed`` (default), or ``any`` in all.
    escapes: Literal["needed", "any"]
    #: Policy for what a grammar cannot express in full: ``accept`` (default) enforces what it can and says so in ``notes``, and refuses what would
    #: not be enforced at all; ``strict`` refuses all of it; ``relax`` leaves it out, with a note.
    on_partial: Literal["accept", "strict", "relax"]
    #: Draft of schemas that name none in ``$schema``; default ``"2020-12"``.
    draft: Literal["4", "6", "7", "2019-09", "2020-12", 4, 6, 7]
    #: ``format`` is enforced; default ``True``.
    formats: bool
    #: No declared member twice, however many an object has; masks take longer; default ``False``.
    distinct_members: bool
    closed_objects: bool
    #: ``1.0`` spells an integer; default ``True``.
    integer_fractions: bool
    #: Schemas that may be referred to, by URI: nothing is downloaded.
    resources: Mapping[str, Any] | None
    #: Properties of an object that are tracked whatever their order; the cost doubles with each; default 4.
    max_tracked: int
    #: Strings of an enumeration that are alternatives: more are a set, each written in one way; default 4,096. No effect within structural
    #: tags and tools.
    max_listed: int
    #: Bytes of more than 32 strings of an enumeration without escapes that are alternatives: with more they are a set; default 4,096.
    max_listed_bytes: int
    #: Tokens of a string value, quotation marks included; ``None`` for any number, which is the default.
    max_string_tokens: int | None
    #: Greatest nesting of the source.
    max_depth: int
    #: Schemas nested in one another on one value.
    max_nesting: int
    #: Alternatives of one combination of schemas.
    max_cases: int
    #: States of one automaton or counter.
    max_states: int
    #: Rules of the grammar.
    max_rules: int
    #: Steps of combining schemas.
    max_work: int

class Limits(TypedDict, total=False):
    """Limits of compiling one grammar."""

    #: Work, in steps of nanoseconds; default 2e10.
    steps: int
    #: States of the lexer, and of the parser.
    max_states: int
    #: Expressions of the lexer.
    max_expressions: int
    #: Nesting of expressions.
    max_nesting: int
    #: Expressions that one search visits.
    max_visited: int
    #: Work of one step of the lexer.
    max_step_work: int
    #: Items of the parser's states.
    max_items: int
    #: Links between stacks that one question looks at: a measure of ambiguity.
    max_links: int
