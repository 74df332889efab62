"""Grammars from the request fields of serving engines: schemas, expressions, EBNF or Lark, choices, structural tags.

vLLM and SGLang hand a kind and a text over; the functions here are the only place where such a text is read, so that
both engines, and the check in front of them, accept the same.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from palmette import Grammar

# A rule of GBNF or EBNF, `name ::= …`; Lark writes `name: …`.
_EBNF_RULE = re.compile(r"^\s*[A-Za-z_][\w.-]*\s*::=", re.MULTILINE)

ANY_OBJECT = {"type": "object"}

NO_ENDS = (
    "the vocabulary has no end tokens, so that no text could end: give ends, such as [model.generation_config.eos_token_id], "
    "or make the vocabulary with ends"
)

# Notes that were logged, as keys; the oldest are forgotten.
_LOGGED: dict[str, None] = {}
_MOST_LOGGED = 1024


def log_notes(logger: logging.Logger, notes: list[str]) -> None:
    """Logs what is not fully enforced, each note once: engines compile a grammar for every request."""
    for note in notes:
        if note not in _LOGGED:
            logger.warning("not fully enforced: %s", note)
        _LOGGED.pop(note, None)
        _LOGGED[note] = None
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
