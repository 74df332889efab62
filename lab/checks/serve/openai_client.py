#!/usr/bin/env python3
"""Checks of `palmette serve --text` by the `openai` package from PyPI: what its types and its stream reader make of the answers.

    pip install openai
    python ../../python/test-data/smollm2.py smol
    palmette serve --text smol --tool-format smol=hermes --listen 127.0.0.1:8080 &
    python openai_client.py --url http://127.0.0.1:8080/v1

Any text model does, even one of random weights (with a format that knows no reasoning, such as llama3): answers are checked by what was
asked for, not by what they say. Prints a line for each check and ends with 1
where one failed. Takes about a minute with SmolLM2-135M on one core.
"""

import argparse
import json
import sys
import traceback

import openai

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
ASK = [{"role": "user", "content": "Invent a person and tell me name and age."}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]


def check_person(text: str) -> None:
    person = json.loads(text)
    assert set(person) == {"name", "age"}, person
    assert isinstance(person["name"], str) and len(person["name"]) <= 20, person
    assert isinstance(person["age"], int) and 0 <= person["age"] <= 120, person


def check_call(call) -> None:
    assert call.function.name == "get_weather", call
    arguments = json.loads(call.function.arguments)
    assert set(arguments) == {"city", "unit"} and arguments["unit"] in ("C", "F"), arguments


def models(client, model):
    listed = [entry.id for entry in client.models.list()]
    assert model in listed, listed


def chat(client, model):
    answer = client.chat.completions.create(model=model, messages=ASK, max_tokens=20, temperature=0)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content, choice
    assert choice.finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def schema(client, model):
    answer = client.chat.completions.create(model=model, messages=ASK, response_format=FORMAT, seed=1, n=2)
    for choice in answer.choices:
        assert choice.finish_reason == "stop", choice
        check_person(choice.message.content)


def parsed(client, model):
    try:
        from pydantic import BaseModel, Field
    except ImportError:
        return "skipped: no pydantic"

    class Person(BaseModel):
        name: str = Field(max_length=20)
        age: int = Field(ge=0, le=120)

    answer = client.chat.completions.parse(model=model, messages=ASK, response_format=Person, temperature=0, max_tokens=200)
    assert isinstance(answer.choices[0].message.parsed, Person), answer
    return None


def stream(client, model):
    options = {"include_usage": True}
    text, finish, usage = "", None, None
    for chunk in client.chat.completions.create(
        model=model, messages=ASK, response_format=FORMAT, seed=2, stream=True, stream_options=options
    ):
        if chunk.usage:
            usage = chunk.usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    check_person(text)
    assert finish == "stop" and usage.completion_tokens > 0, (finish, usage)
    whole = client.chat.completions.create(model=model, messages=ASK, response_format=FORMAT, seed=2)
    assert whole.choices[0].message.content == text, "the same seed, the same answer"


def tools(client, model):
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        answer = client.chat.completions.create(
            model=model, messages=WEATHER, tools=[TOOL], tool_choice=choice, parallel_tool_calls=False, seed=3, max_tokens=200
        )
        one = answer.choices[0]
        assert one.finish_reason == "tool_calls", one
        check_call(one.message.tool_calls[0])
    # The conversation goes on with what the tool said.
    call = answer.choices[0].message
    said = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "18 degrees, dry"}
    client.chat.completions.create(
        model=model, messages=[*WEATHER, call.model_dump(exclude_none=True), said], max_tokens=10
    )


def streamed_tools(client, model):
    name, arguments, ids, finish = "", "", [], None
    for chunk in client.chat.completions.create(
        model=model, messages=WEATHER, tools=[TOOL], tool_choice="required", parallel_tool_calls=False, seed=3, stream=True,
        max_tokens=200,
    ):
        choice = chunk.choices[0]
        finish = choice.finish_reason or finish
        for call in choice.delta.tool_calls or []:
            ids += [call.id] if call.id else []
            name += call.function.name or ""
            arguments += call.function.arguments or ""
    assert (name, len(ids), finish) == ("get_weather", 1, "tool_calls"), (name, ids, finish)
    assert set(json.loads(arguments)) == {"city", "unit"}, arguments


def stream_events(client, model):
    with client.chat.completions.stream(model=model, messages=ASK, response_format=FORMAT, seed=4) as events:
        kinds = {event.type for event in events}
        final = events.get_final_completion()
    check_person(final.choices[0].message.content)
    assert {"chunk", "content.delta", "content.done"} <= kinds, kinds


def logprobs(client, model):
    answer = client.chat.completions.create(model=model, messages=ASK, logprobs=True, top_logprobs=3, max_tokens=5)
    content = answer.choices[0].logprobs.content
    assert 0 < len(content) <= 5 and len(content[0].top_logprobs) == 3, content
    assert "".join(token.token for token in content) == answer.choices[0].message.content


def completions(client, model):
    answer = client.completions.create(
        model=model, prompt=["The capital of France is", "2 + 2 ="], max_tokens=4, temperature=0, logprobs=2, stop=["\n"]
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert len(answer.choices[0].logprobs.tokens) == len(answer.choices[0].logprobs.token_logprobs)
    chunks = client.completions.create(model=model, prompt="Once", max_tokens=5, stream=True, echo=True)
    assert "".join(chunk.choices[0].text for chunk in chunks).startswith("Once")


def vllm(client, model):
    for extra, is_right in [
        ({"guided_choice": ["red", "green"]}, lambda text: text in ("red", "green")),
        ({"guided_regex": "[0-9]{4}"}, lambda text: len(text) == 4 and text.isdigit()),
        ({"structured_outputs": {"json": SCHEMA}}, lambda text: check_person(text) is None),
        ({"structured_outputs": {"grammar": "root ::= \"yes\" | \"no\""}}, lambda text: text in ("yes", "no")),
    ]:
        answer = client.chat.completions.create(model=model, messages=ASK, extra_body=extra, max_tokens=100)
        assert is_right(answer.choices[0].message.content), answer


def errors(client, model):
    def refused(kind, **arguments):
        try:
            client.chat.completions.create(**{"model": model, "messages": ASK, "max_tokens": 5, **arguments})
        except kind as error:
            return error
        raise AssertionError(f"{arguments} was answered")

    error = refused(openai.NotFoundError, model="no-such-model")
    assert error.code == "model_not_found" and "no-such-model" in error.message, error
    bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}}
    error = refused(openai.BadRequestError, response_format=bad)
    assert error.param == "response_format" and "the types are" in str(error), error
    error = refused(openai.BadRequestError, max_tokens=10**6)
    assert error.param == "max_tokens", error
    refused(openai.BadRequestError, extra_body={"max_token": 5})


CHECKS = [models, chat, schema, parsed, stream, tools, streamed_tools, stream_events, logprobs, completions, vllm, errors]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--model", default="smol")
    parser.add_argument("--key", default="none")
    arguments = parser.parse_args()
    client = openai.OpenAI(base_url=arguments.url, api_key=arguments.key, max_retries=0, timeout=300)
    failed = 0
    for check in CHECKS:
        try:
            said = check(client, arguments.model)
            print(f"{check.__name__}: {said or 'ok'}")
        except Exception:
            failed += 1
            print(f"{check.__name__}: FAILED")
            traceback.print_exc()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
