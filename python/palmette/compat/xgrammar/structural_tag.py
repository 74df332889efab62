"""XGrammar's `StructuralTag`, and its tags for the answers of families of models, over Palmette's formats of tool calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_BEGUN = "begun"
"""Reasoning that the prompt has begun."""

# XGrammar's names of models, Palmette's formats, and whether the prompt begins the reasoning.
_MODELS: dict[str, tuple[str, str | None]] = {
    "cohere": ("cohere_xml", _BEGUN),
    "deepseek_r1": ("deepseek_r1", _BEGUN),
    "deepseek_v3_1": ("deepseek", _BEGUN),
    "deepseek_v3_2": ("deepseek_xml", _BEGUN),
    "deepseek_v4": ("deepseek_v4", _BEGUN),
    "exaone": ("exaone", _BEGUN),
    "gemma_4": ("gemma4", None),
    "glm_4_7": ("glm_xml", _BEGUN),
    "harmony": ("harmony", None),
    "kimi": ("kimi_k2", _BEGUN),
    "kimi_k3": ("kimi_k3", None),
    "llama": ("llama3", None),
    "minimax": ("minimax_xml", _BEGUN),
    "qwen_3": ("hermes", _BEGUN),
    "qwen_3_5": ("qwen_xml", _BEGUN),
    "qwen_3_coder": ("qwen_xml", _BEGUN),
}


@dataclass
class StructuralTag:
    """A structural tag: its `format`, as a dictionary."""

    format: dict[str, Any]
    type: str = "structural_tag"

    def model_dump(self) -> dict[str, Any]:
        return {"type": self.type, "format": self.format}

    def model_dump_json(self) -> str:
        return json.dumps(self.model_dump())


def get_model_structural_tag(
    model: str,
    tools: list[Any] | None = None,
    tool_choice: Any = "auto",
    reasoning: bool = True,
    force_reasoning: bool = False,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
) -> StructuralTag:
    """Structural tag of a model's answers to a request with tools: reasoning, words, calls.

    `model` is one of XGrammar's names, or of a format of tool calls of Palmette's. `force_reasoning` has no effect, as there, nor has
    `exclude_special_tokens`: special tokens never spell text. Where reasoning is the prompt's to begin it has begun with
    `reasoning=True`, for XGrammar's names; with a format's own name it may come first between its marks. Tools without `parameters`,
    and those that say `"strict": False`, take any object.
    """
    format, begun = _MODELS.get(model, (model, None))
    request: dict[str, Any] = {"tools": [_defined(tool) for tool in tools or []], "lax_tools": True}
    if tool_choice is not None:
        request["tool_choice"] = _plain(tool_choice)
    found = {"type": "tools", "tool_format": format, "request": request, "any_order": any_order}
    said = begun if reasoning else "over"
    if said is not None:
        found["reasoning"] = said
    if max_whitespace_cnt is not None:
        found["max_whitespace_cnt"] = max_whitespace_cnt
    return StructuralTag(found)


get_builtin_structural_tag = get_model_structural_tag
"""The name that XGrammar had before."""


def _plain(value: Any) -> Any:
    """A value of a request, which may be a model of pydantic's."""
    return value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else value


def _defined(tool: Any) -> Any:
    """A tool whose arguments have a schema."""
    tool = _plain(tool)
    if not isinstance(tool, dict):
        raise ValueError(f"a tool is a dictionary, not {type(tool).__name__}")
    inner = tool.get("function", tool)
    if not isinstance(inner, dict) or "name" not in inner and "type" not in tool:
        raise ValueError(f"a tool has a name, in its function: {json.dumps(tool)[:200]}")
    if inner.get("parameters") is None:
        inner = inner | {"parameters": {"type": "object"}}
    return tool | {"function": inner} if "function" in tool else inner
