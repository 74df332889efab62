"""XGrammar's `Grammar` over `palmette.Grammar`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import palmette
from palmette import _requests
from palmette.compat.xgrammar.exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    GrammarRefused,
    InvalidJSONError,
    InvalidStructuralTagError,
    refusals,
)

VERSION = "palmette-1"
"""Version of serialised grammars."""


@dataclass
class StructuralTagItem:
    """A tag of the older form: text between `begin` and `end` that a schema holds."""

    begin: str
    schema: Any
    end: str


def schema_text(schema: Any) -> str:
    """JSON of a schema, which may be a text, a value, or a model of pydantic's."""
    if isinstance(schema, str):
        return schema
    if hasattr(schema, "model_json_schema"):
        return json.dumps(schema.model_json_schema())
    if isinstance(schema, (dict, bool)):
        return json.dumps(schema)
    raise ValueError(f"a schema is a text, a dictionary or a pydantic model, not {type(schema).__name__}")


class Grammar:
    """A grammar as it was written.

    `palmette` is Palmette's grammar. `source` says what it was made of, which is what is serialised, and what grammars are
    joined by: a format of a structural tag, or Lark.
    """

    def __init__(self, grammar: palmette.Grammar, source: dict) -> None:
        self.palmette = grammar
        self.source = source

    def __str__(self) -> str:
        text = self.source.get("grammar")
        if text is None:
            raise NotImplementedError(
                f"a grammar of the type {self.source['type']!r} has no text in EBNF: Palmette does not go by way of EBNF"
            )
        return text

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Grammar of a text in EBNF, as llama.cpp's GBNF."""
        with refusals():
            made = palmette.Grammar.from_gbnf(ebnf_string, root=root_rule_name)
            made.check()
        return Grammar(made, {"type": "grammar", "grammar": ebnf_string, "root": root_rule_name})

    @staticmethod
    def from_json_schema(
        schema: Any,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> Grammar:
        """Grammar of a JSON Schema."""
        if print_converted_ebnf:
            raise NotImplementedError("print_converted_ebnf: Palmette does not go by way of EBNF")
        if max_whitespace_cnt is not None:
            raise NotImplementedError(
                "max_whitespace_cnt: whitespace is free, or none, or a space after commas and colons; "
                'palmette.Grammar.from_json_schema(…, whitespace="bounded") bounds it as programs lay JSON out'
            )
        whitespace = "flexible" if any_whitespace else _spacing(indent, separators)
        try:
            found = json.loads(schema_text(schema))
        except ValueError as error:
            raise GrammarRefused(f"the schema is not JSON: {error}") from None
        if strict_mode:
            found = closed(found)
        order = "any" if any_order else "schema"
        with refusals():
            made = palmette.Grammar.from_json_schema(found, whitespace=whitespace, order=order)
            made.check()
        source = {"type": "json_schema", "json_schema": found, "whitespace": whitespace, "order": order}
        return Grammar(made, source)

    @staticmethod
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """Grammar of a regular expression, matched from beginning to end."""
        if print_converted_ebnf:
            raise NotImplementedError("print_converted_ebnf: Palmette does not go by way of EBNF")
        with refusals():
            made = palmette.Grammar.from_regex(regex_string)
            made.check()
        return Grammar(made, {"type": "regex", "pattern": regex_string})

    @staticmethod
    def from_lark(lark_string: str, *, tokenizer_info: Any = None, named_grammars: dict | None = None) -> Grammar:
        """Grammar in Lark's language. Names of special tokens are looked up when it is compiled."""
        if named_grammars:
            raise NotImplementedError(
                f"named_grammars ({', '.join(named_grammars)}): write the rules into one Lark text, schemas by %json"
            )
        with refusals():
            made = palmette.Grammar.from_lark(lark_string)
            made.check()
        return Grammar(made, {"type": "lark", "lark": lark_string})

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """Grammar of a structural tag: one argument, or the older `tags, triggers`."""
        # As in `from_json_schema`: strict schemas.
        return _of_tag(_closed_schemas(tag_of(*args, **kwargs)))

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Grammar of JSON objects and arrays."""
        return Grammar.from_json_schema({"type": ["object", "array"]}, strict_mode=False)

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """Texts of the grammars one after another."""
        return _of_tag(_joined("sequence", grammars))

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """Texts of any of the grammars."""
        return _of_tag(_joined("or", grammars))

    def serialize_json(self) -> str:
        """Source of the grammar, as JSON."""
        return json.dumps({"__VERSION__": VERSION, "source": self.source})

    @staticmethod
    def deserialize_json(json_string: str) -> Grammar:
        return deserialised(json_string)[0]


def deserialised(text: str) -> tuple[Grammar, dict]:
    """Grammar of a serialised text, and the text's object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidJSONError(f"not JSON: {error}") from None
    if not isinstance(found, dict) or "__VERSION__" not in found:
        raise DeserializeFormatError("this is no serialised grammar: it has no __VERSION__")
    if found["__VERSION__"] != VERSION:
        raise DeserializeVersionError(
            f"the text has the version {found['__VERSION__']!r}, and Palmette reads {VERSION!r}: XGrammar's own are not read; "
            "serialise the grammar anew"
        )
    source = found.get("source")
    try:
        match source:
            case {"type": "grammar", "grammar": str(ebnf), **rest}:
                return Grammar.from_ebnf(ebnf, root_rule_name=rest.get("root", "root")), found
            case {"type": "json_schema", "json_schema": schema, "whitespace": (str() | [str(), str()]) as space, "order": str(order)}:
                space = space if isinstance(space, str) else tuple(space)
                made = palmette.Grammar.from_json_schema(schema, whitespace=space, order=order)
                return Grammar(made, source), found
            case {"type": "regex", "pattern": str(pattern)}:
                return Grammar.from_regex(pattern), found
            case {"type": "lark", "lark": str(lark)}:
                return Grammar.from_lark(lark), found
            case {"type": str()}:
                return _of_tag({"type": "structural_tag", "format": source}), found
    except ValueError as error:
        raise DeserializeFormatError(str(error)) from error
    raise DeserializeFormatError("this is no serialised grammar: its source has no known type")


def tag_of(*args: Any, **kwargs: Any) -> dict:
    """A structural tag in its present form, however it was given."""
    if len(args) == 2 or "tags" in kwargs:
        tags, triggers = args if len(args) == 2 else (kwargs["tags"], kwargs["triggers"])
        schemas = [json.loads(schema_text(getattr(tag, "schema_", None) or tag.schema)) for tag in tags]
        structures = [{"begin": tag.begin, "schema": one, "end": tag.end} for tag, one in zip(tags, schemas)]
        return _of_structures(structures, triggers)
    (tag,) = args or (kwargs.get("structural_tag"),)
    if hasattr(tag, "model_dump_json"):
        tag = tag.model_dump_json()
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except ValueError as error:
            raise InvalidJSONError(f"the structural tag is not JSON: {error}") from None
    elif not isinstance(tag, dict):
        raise TypeError(f"a structural tag is a text, a dictionary or a model, not {type(tag).__name__}")
    if isinstance(tag, dict) and isinstance(tag.get("structures"), list):
        return _of_structures(tag["structures"], tag.get("triggers"))
    if not isinstance(tag, dict) or not isinstance(tag.get("format"), dict):
        raise InvalidStructuralTagError("a structural tag has a 'format', or 'structures' and 'triggers'")
    return _requests.plain_tag(tag)


def _of_structures(structures: list[dict], triggers: Any) -> dict:
    tags = [
        {"begin": one["begin"], "content": {"type": "json_schema", "json_schema": one["schema"]}, "end": one["end"]}
        for one in structures
    ]
    return {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": triggers, "tags": tags}}


def _of_tag(tag: dict) -> Grammar:
    """Grammar of a structural tag, with blanks anywhere and members in the schema's order, as `from_json_schema` has them."""
    with refusals(InvalidStructuralTagError):
        made = palmette.Grammar.from_structural_tag(tag, whitespace="flexible", order="schema")
        made.check()
    return Grammar(made, tag["format"])


def _closed_schemas(node: Any) -> Any:
    """A structural tag whose schemas are `closed`."""
    if isinstance(node, list):
        return [_closed_schemas(one) for one in node]
    if not isinstance(node, dict):
        return node
    schemas = ("json_schema", "parameters")
    return {key: closed(value) if key in schemas else _closed_schemas(value) for key, value in node.items()}


def _joined(kind: str, grammars: tuple[Grammar, ...]) -> dict:
    for one in grammars:
        if one.source["type"] == "lark" or one.source.get("root", "root") != "root":
            raise NotImplementedError(
                f"a grammar of the type {one.source['type']!r} is not joined with others: write one Lark text, or EBNF from `root`"
            )
    options = ("whitespace", "order", "root")
    elements = [{key: value for key, value in one.source.items() if key not in options} for one in grammars]
    return {"type": "structural_tag", "format": {"type": kind, "elements": elements}}


def _spacing(indent: int | None, separators: tuple[str, str] | None) -> tuple[str, str]:
    if indent is not None:
        raise NotImplementedError(f"indent={indent}: with any_whitespace=True every layout is allowed")
    comma, colon = separators or (", ", ": ")
    if (comma.strip(" \t\n\r"), colon.strip(" \t\n\r")) != (",", ":"):
        raise NotImplementedError(f"separators={(comma, colon)!r}: JSON has a comma and a colon, between blanks")
    return comma, colon


# Keywords whose schemas hold for the same value as the schema around them.
_IN_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "$ref", "$dynamicRef", "dependentSchemas", "not")


def closed(schema: Any) -> Any:
    """Schema that allows no members and no items but those it names, as `strict_mode` has it.

    What holds for the same value in several schemas is closed once, around them all (`unevaluatedProperties`).
    """
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    names = schema.get("properties"), schema.get("patternProperties")
    joined = any(key in schema for key in _IN_PLACE)
    has_names = any(isinstance(one, dict) for one in names)
    found = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, dict):
            found[key] = {name: closed(one) for name, one in value.items()}
        elif key in ("enum", "const", "default", "examples", "required") or (key in _IN_PLACE and has_names):
            found[key] = value
        else:
            found[key] = closed(value)
    if has_names and not {"additionalProperties", "unevaluatedProperties"} & schema.keys():
        found["unevaluatedProperties" if joined else "additionalProperties"] = False
    if isinstance(schema.get("prefixItems"), list) and not {"items", "additionalItems", "unevaluatedItems"} & schema.keys():
        found["items"] = False
    return found
