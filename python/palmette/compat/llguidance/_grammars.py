"""Texts of grammars, as llguidance passes them around, and Palmette's grammars of them.

A text is Lark, or a JSON document `{"grammars": [{"json_schema": …}]}` with `lark_grammar` in place of `json_schema`, or both
inline as `%json` in Lark.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import palmette
from palmette import _requests

GrammarFormat = Literal[
    "lark", "gbnf", "ebnf", "cfg", "grammar", "json_schema", "json", "regex", "choice", "llguidance"
]

OPTIONS_KEY = "x-guidance"
"""Keyword of a schema that holds options of its translation."""


def grammar_from(format: GrammarFormat, text: str) -> str:
    """Text of a grammar that was written in some language.

    Raises ValueError for a language that is not known. The text is read where it is used.
    """
    match format:
        case "lark":
            return grammar_from_lark(text)
        case "gbnf" | "ebnf" | "cfg" | "grammar":
            return json.dumps({"grammars": [{"written": text}]})
        case "json_schema" | "json":
            return grammar_from_json_schema(text)
        case "regex":
            return grammar_from_regex(text)
        case "choice":
            choices = json.loads(text) if isinstance(text, str) else text
            return json.dumps({"grammars": [{"choices": choices}]})
        case "llguidance":
            return text
    raise ValueError(f"there is no grammar format {format!r}; there are {', '.join(GrammarFormat.__args__)}")


def grammar_from_lark(text: str) -> str:
    return json.dumps({"grammars": [{"lark_grammar": text}]})


def grammar_from_regex(text: str) -> str:
    return json.dumps({"grammars": [{"regex": text}]})


def grammar_from_json_schema(
    schema: str | dict | bool, defaults: dict | None = None, overrides: dict | None = None
) -> str:
    """Text of a schema with options: `defaults`, then those of the schema's `x-guidance`, then `overrides`.

    Raises ValueError if it is not JSON.
    """
    if isinstance(schema, str):
        schema = json.loads(schema)
    for one in (defaults, overrides):
        if one is not None and not isinstance(one, dict):
            raise ValueError(f"options are a dictionary, not {one!r:.100}")
    if isinstance(schema, dict):
        options = (defaults or {}) | (schema.get(OPTIONS_KEY) or {}) | (overrides or {})
        schema = schema | ({OPTIONS_KEY: options} if options else {})
    elif defaults or overrides:
        schema = {"allOf": [schema], OPTIONS_KEY: (defaults or {}) | (overrides or {})}
    return json.dumps({"grammars": [{"json_schema": schema}]})


def read(text: str | dict) -> palmette.Grammar:
    """Palmette's grammar of a text.

    Raises ValueError, of which palmette.Error is one, or NotImplementedError.
    """
    if isinstance(text, str):
        if not text.lstrip().startswith("{"):
            return palmette.Grammar.from_lark(text)
        text = json.loads(text)
    grammars = text.get("grammars") if isinstance(text, dict) else None
    if not isinstance(grammars, list) or not grammars:
        raise ValueError('a grammar is Lark, or {"grammars": […]} with one or more')
    if len(grammars) > 1:
        raise NotImplementedError(
            f"{len(grammars)} grammars that refer to each other by @name: write one Lark text, schemas by %json"
        )
    match grammars[0]:
        case {"json_schema": schema}:
            return _schema(schema)
        case {"lark_grammar": str(lark)}:
            return palmette.Grammar.from_lark(lark)
        case {"regex": str(regex)}:
            return palmette.Grammar.from_regex(regex)
        case {"choices": choices}:
            return _requests.choice_grammar(choices)
        case {"written": str(written)}:
            return _requests.written_grammar(written)
    raise ValueError(f"a grammar has 'json_schema' or 'lark_grammar', not {', '.join(map(repr, grammars[0]))}")


def _schema(schema: Any) -> palmette.Grammar:
    options = {}
    if isinstance(schema, dict) and OPTIONS_KEY in schema:
        options = {name: value for name, value in schema[OPTIONS_KEY].items() if value is not None}
        schema = {key: value for key, value in schema.items() if key != OPTIONS_KEY}
    flexible = options.pop("whitespace_flexible", True)
    between = options.pop("item_separator", ","), options.pop("key_separator", ":")
    lenient = options.pop("lenient", False)
    escapes = options.pop("json_allow_general_unicode_escapes", False)
    options.pop("coerce_one_of", None)  # oneOf is exact
    if options:
        raise NotImplementedError(
            f"the option {next(iter(options))!r} of schemas: there are whitespace_flexible, item_separator, key_separator, "
            "lenient, coerce_one_of and json_allow_general_unicode_escapes"
        )
    if flexible and between != (",", ":"):
        raise NotImplementedError(f"separators {between!r} with flexible whitespace: there are ',' and ':', or others without it")
    if tuple(mark.strip(" \t\n\r") for mark in between) != (",", ":"):
        raise NotImplementedError(f"separators {between!r}: JSON has a comma and a colon, between blanks")
    return palmette.Grammar.from_json_schema(
        schema,
        order="schema",
        whitespace="flexible" if flexible else between,
        on_partial="relax" if lenient else "strict",
        escapes="any" if escapes else "needed",
    )


def regex_to_lark(regex: str, use_ascii: str = "d") -> str:
    """Expression as it stands between the slashes of Lark; classes named in `use_ascii` become those of ASCII."""
    ascii_classes = {"d": "0-9", "w": "0-9a-zA-Z_", "s": r" \t\n\r\f\v"}
    found, in_class = [], False
    for part in re.findall(r"\\.|.", regex, re.DOTALL):
        name = part[1:].lower() if part[0] == "\\" else ""
        if name and name in ascii_classes and name in use_ascii:
            members = ascii_classes[name]
            if part[1].isupper():
                found.append(part if in_class else f"[^{members}]")
            else:
                found.append(members if in_class else f"[{members}]")
            continue
        in_class = part == "[" or (in_class and part != "]")
        found.append({"/": r"\/", "\n": r"\n"}.get(part, part))
    return "".join(found)
