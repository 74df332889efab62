"""llguidance's `StructTag`: regions in free text that a schema or grammar holds."""

from __future__ import annotations

import json
from typing import Any


class StructTag:
    """A region from `begin` to `end`. `trigger`, with which `begin` starts, is the text that decides for it."""

    def __init__(self, *, trigger: str, begin: str, grammar: str | dict[str, Any], end: str) -> None:
        if not trigger:
            raise AssertionError("trigger must not be empty")
        if not begin.startswith(trigger):
            raise AssertionError(f"begin must start with the trigger: {begin!r} does not start with {trigger!r}")
        self.trigger = trigger
        self.begin = begin
        self.grammar = grammar
        self.end = end

    @staticmethod
    def to_grammar(tags: list[StructTag], *, assume_special: bool = True, text_regex: str = r"(.|\n)*") -> str:
        """Lark's text of free text with these regions.

        A trigger `<…>` is a special token where `assume_special` says so; any other is a text that the free text around cannot
        hold, so that whoever writes it goes on with a region.
        """
        if not tags:
            raise AssertionError("tags must not be empty")
        if "/" in text_regex:
            raise AssertionError(f"text_regex must not contain a slash: {text_regex!r}")
        bodies: dict[str, list[str]] = {}
        for tag in tags:
            parts = _quoted(tag.begin[len(tag.trigger) :]), _inner(tag.grammar), _quoted(tag.end)
            bodies.setdefault(tag.trigger, []).append(" ".join(part for part in parts if part))
        written = [one for one in bodies if not (assume_special and one.startswith("<") and one.endswith(">"))]
        anything = r"/(.|\n)*/"
        free = [f"/{text_regex}/", *(f"~({anything} {_quoted(one)} {anything})" for one in written)]
        lines = [
            f"start: ({' | '.join(f'region_{place}' for place in range(len(bodies)))})* TEXT",
            f"TEXT: {' & '.join(free)}",
        ]
        for place, (trigger, alternatives) in enumerate(bodies.items()):
            body = f"({' | '.join(alternatives)})"
            if trigger in written:
                lines.append(f"trigger_{place}[lazy]: /{text_regex}/ {_quoted(trigger)}")
                lines.append(f"region_{place}: trigger_{place} {body}")
            else:
                lines.append(f"region_{place}: TEXT {trigger} {body}")
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text) if text else ""


def _inner(grammar: str | dict) -> str:
    if isinstance(grammar, str) and not grammar.lstrip().startswith("{"):
        return f"%lark {{\n{grammar}\n}}"
    schema = json.loads(grammar) if isinstance(grammar, str) else grammar
    if not isinstance(schema, dict):
        raise ValueError(f"a tag's grammar is a schema or a Lark text, not {schema!r:.100}")
    if "grammars" in schema:
        (only,) = schema["grammars"]
        if "json_schema" not in only:
            return _inner(only["lark_grammar"])
        schema = only["json_schema"]
    return f"%json {json.dumps(schema)}"
