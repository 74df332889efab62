"""Grammars from the request fields of serving engines: schemas, expressions, EBNF or Lark, choices, structural tags.

vLLM and SGLang hand a kind and a text over; the functions here are the only place where such a text is read, so that
both engines, and the check in front of them, accept the same.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from palmette import Grammar, Matcher, TooFewTokens, TooManyTokens

# A rule of GBNF or EBNF, `name ::= …`; Lark writes `name: …`.
_EBNF_RULE = re.compile(r"^\s*[A-Za-z_][\w.-]*\s*::=", re.MULTILINE)

ANY_OBJECT = {"type": "object"}

NO_ENDS = (
    "the vocabulary has no end tokens, so that no text could end: give ends, such as [model.generation_config.eos_token_id], "
    "or make the vocabulary with ends"
)

FINISHES = ("promised", "cut")

FINISH_ARGUMENT = "palmette_finish"
"""Name of the argument of an engine's request that says how its text finishes; left out, it is promised."""


def is_promised(arguments: Any) -> bool:
    """Whether a request wants its text whole within its tokens: `arguments` are those that engines pass on as they are.

    Raises ValueError for a finish that is none.
    """
    finish = arguments.get(FINISH_ARGUMENT) if isinstance(arguments, dict) else None
    return finish is None or checked_finish(finish, FINISH_ARGUMENT) == "promised"


FAR = 2048
"""Tokens to spare with which a text is far from its end: one token would have to make it take as many more.

Its mask then looks for no way there, which is a walk over the vocabulary at each new place of a text.
"""


def near_end(matcher: Matcher, left: int) -> int | None:
    """The tokens that are left, for the text's mask; None where the text is far from its end."""
    if left > FAR:
        needed = matcher.fewest_tokens()
        if needed is not None and left - needed > FAR:
            return None
    return left


TOO_LATE = "a text may be cut off: reasoning in front of it has left too few tokens to end it"


def too_few_tokens(needed: int, left: int, by: str, cut: str, text: str = "the text") -> TooFewTokens:
    """The error of a text that takes more tokens than there are: more are given it `by` this, and it may break off with `cut`."""
    error = TooFewTokens(
        f"{text} takes {needed} more tokens to end, and {left} are left: "
        f"give it {needed} or more by {by}, or {cut} if it may break off"
    )
    error.needed, error.left = needed, left
    return error


def too_many_tokens(
    needed: int, left: int | None, least: str, most: str, cut: str, text: str = "the text"
) -> TooManyTokens:
    """The error of a text that must take more tokens than any is known to: they are given as `least` and `most`."""
    within = "" if left is None else f", and no more than {left} are left"
    error = TooManyTokens(
        f"{text} is to take {needed} more tokens at least{within}, and none is known that does: "
        f"lower {least}, raise {most}, or {cut} if it may end early"
    )
    error.needed, error.left = needed, left
    return error


def checked_finish(finish: Any, name: str = "finish") -> Any:
    """How texts finish, as it is; ValueError for anything but `promised` and `cut`."""
    if finish not in FINISHES:
        raise ValueError(
            f"{name} is {finish!r}: give 'promised' for texts that are whole within their tokens, "
            "or 'cut' for texts that may break off"
        )
    return finish


# Notes that were logged, as keys; the oldest are forgotten.
_LOGGED: dict[str, None] = {}
_MOST_LOGGED = 1024


def log_notes(logger: logging.Logger, notes: list[str]) -> None:
    """Logs what is not fully enforced, each note once: engines compile a grammar for every request."""
    for note in notes:
        log_once(logger, f"not fully enforced: {note}")


def log_once(logger: logging.Logger, message: str) -> None:
    """Logs a warning that may come again and again."""
    if message not in _LOGGED:
        logger.warning("%s", message)
    _LOGGED.pop(message, None)
    _LOGGED[message] = None
    while len(_LOGGED) > _MOST_LOGGED:
        _LOGGED.pop(next(iter(_LOGGED)), None)


def schema_grammar(schema: str | dict | bool, *, compact: bool = False) -> Grammar:
    """Grammar of a JSON Schema.

    `compact` allows no whitespace between tokens. Otherwise it is bounded: as programs lay JSON out, and not without
    end, so that a model cannot spend its budget on blanks.
    """
    return Grammar.from_json_schema(schema, whitespace="compact" if compact else "bounded")


def written_grammar(text: str) -> Grammar:
    """Grammar of a text in Lark's language, or in EBNF if it defines a rule with `::=`."""
    return Grammar.from_gbnf(text) if _EBNF_RULE.search(text) else Grammar.from_lark(text)


def choice_grammar(choices: str | list[str]) -> Grammar:
    """Grammar of one of several texts: a list, or a JSON array of strings.

    Raises ValueError for anything else.
    """
    found = json.loads(choices) if isinstance(choices, str) else choices
    if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
        raise ValueError(f"choices must be a list of strings that is not empty, not {json.dumps(found)[:200]}")
    return Grammar.from_choices(found)


def expression_grammar(expression: str) -> Grammar:
    """Grammar of a regular expression, matched from beginning to end."""
    return Grammar.from_regex(expression)


def tag_grammar(tag: str | dict) -> Grammar:
    """Grammar of a structural tag, in its present form (`format`) or the older one (`structures` and `triggers`)."""
    return Grammar.from_structural_tag(plain_tag(tag))


def plain_tag(tag: str | dict) -> str | dict:
    """A structural tag as the grammars read it.

    Engines leave the type of the older form out, and write null for what a request did not set.
    """
    found = json.loads(tag) if isinstance(tag, str) else tag
    if not isinstance(found, dict):
        return tag
    if "structures" in found and "type" not in found:
        found = {"type": "structural_tag"} | found
    return _without_nulls(found)


def _without_nulls(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_nulls(one) for one in node]
    if not isinstance(node, dict):
        return node
    # In a schema null is a value like any other.
    return {
        key: value if key in ("json_schema", "schema") else _without_nulls(value)
        for key, value in node.items()
        if value is not None or key in ("json_schema", "schema")
    }
