#!/usr/bin/env python3
"""Calls of `palmette serve --text` by clients that people use, each as its documentation has it: a table of calls and results.

    pip install openai anthropic instructor "pydantic-ai-slim[openai]" langchain-openai litellm llm
    npm install ai @ai-sdk/openai-compatible zod        # for --node, the folder with node_modules
    python ../../python/test-data/smollm2.py smol
    palmette serve --text smol --tool-format smol=hermes --listen 127.0.0.1:8080 &
    python clients.py --url http://127.0.0.1:8080/v1 [--node DIR] [--json OUT] [--only WORD]

Schemas are plain pydantic models: nothing in them forbids members that they do not declare. A client that is not installed is
told as such. Prints a Markdown table, and with `--json` writes the results, so that two servers can be compared
(`--before FILE` adds the column of another run). Exit status 1 where a call failed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

try:
    import pydantic
except ImportError:
    sys.exit("clients.py: there is no pydantic, of which every schema here is a model; pip install pydantic")

RUNS = 20  # answers of plain models; `--runs` says otherwise
QUESTION = "Invent a person and tell me name and age."


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=120)


def weather(city: str) -> str:
    """The weather of a city."""
    return f"It is sunny in {city}."


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]},
    },
}
PING = {"type": "function", "function": {"name": "ping"}}
ASK = [{"role": "user", "content": QUESTION}]

CALLS = []


def call(client, what):
    def add(function):
        CALLS.append((client, what, function))
        return function

    return add


class Server:
    def __init__(self, url, model, node, runs=RUNS):
        self.url, self.model, self.node, self.runs = url, model, node, runs

    def openai(self):
        import openai

        return openai.OpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=300)

    def post(self, path, body):
        base = self.url.removesuffix("/v1")
        request = urllib.request.Request(base + path, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)


# openai


@call("openai", "`guided_json` of a plain pydantic model, seed by seed")
def runaways(server):
    client, bad = server.openai(), 0
    for seed in range(server.runs):
        answer = client.chat.completions.create(
            model=server.model, messages=ASK, seed=seed, temperature=0.7, max_tokens=200, extra_body={"guided_json": Person.model_json_schema()}
        )
        try:
            bad += set(json.loads(answer.choices[0].message.content)) != {"name", "age"}
        except ValueError:
            bad += 1
    assert not bad, f"{bad} of {server.runs} are no person"
    return f"0 of {server.runs} run away"


@call("openai", "`response_format` of a plain schema, {reasoning, answer}: the order, 10 seeds")
def order(server):
    client, wrong = server.openai(), 0
    schema = {"type": "object", "properties": {"reasoning": {"type": "string", "maxLength": 60}, "answer": {"type": "boolean"}}, "required": ["reasoning", "answer"]}
    for seed in range(10):
        answer = client.chat.completions.create(
            model=server.model,
            messages=[{"role": "user", "content": "Is 7 prime? Think first."}],
            max_tokens=120,
            temperature=0.5,
            seed=seed,
            response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
        )
        wrong += list(json.loads(answer.choices[0].message.content)) != ["reasoning", "answer"]
    assert not wrong, f"{wrong} of 10 are in another order or no answer"
    return "10 of 10 in the schema's order"


@call("openai", "`chat.completions.parse` of a pydantic model")
def parse(server):
    answer = server.openai().chat.completions.parse(model=server.model, messages=ASK, max_tokens=200, seed=1, response_format=Person)
    return repr(answer.choices[0].message.parsed)


@call("openai", "streamed chat")
def streamed(server):
    parts = server.openai().chat.completions.create(model=server.model, messages=ASK, max_tokens=20, stream=True, stream_options={"include_usage": True})
    parts = list(parts)
    assert parts[-1].usage.completion_tokens > 0
    return f"{len(parts)} parts"


@call("openai", "a tool is called, streamed")
def streamed_tool(server):
    stream = server.openai().chat.completions.stream(
        model=server.model, messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=100, seed=1
    )
    with stream as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message
    assert set(json.loads(message.tool_calls[0].function.arguments)) == {"city"}, message
    assert not getattr(message, "reasoning_content", None), message
    return message.tool_calls[0].function.arguments


@call("openai", "a tool without `parameters`")
def no_parameters(server):
    answer = server.openai().chat.completions.create(
        model=server.model, messages=[{"role": "user", "content": "Ping."}], tools=[PING], tool_choice="required", parallel_tool_calls=False, max_tokens=60, temperature=1, seed=0
    )
    arguments = answer.choices[0].message.tool_calls[0].function.arguments
    assert json.loads(arguments) == {}, arguments
    return arguments


@call("openai", "a `custom` tool with a grammar")
def custom(server):
    grammar = {"syntax": "lark", "definition": 'start: "SELECT " ("1" | "2")'}
    tool = {"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar", "grammar": grammar}}}
    answer = server.openai().chat.completions.create(
        model=server.model, messages=[{"role": "user", "content": "One."}], tools=[tool], tool_choice="required", parallel_tool_calls=False, max_tokens=60, seed=1
    )
    called = answer.choices[0].message.tool_calls[0]
    assert called.type == "custom" and called.custom.input in ("SELECT 1", "SELECT 2"), called
    return called.custom.input


@call("openai", "`allowed_tools`")
def allowed(server):
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "ping"}}]}
    answer = server.openai().chat.completions.create(
        model=server.model, messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[TOOL, PING], tool_choice={"type": "allowed_tools", "allowed_tools": allowed}, parallel_tool_calls=False, max_tokens=60, seed=1
    )
    assert answer.choices[0].message.tool_calls[0].function.name == "ping", answer
    return "ping"


@call("openai", "`responses.create`")
def responses(server):
    answer = server.openai().responses.create(model=server.model, input=QUESTION, max_output_tokens=20, instructions="Be brief.")
    assert answer.output_text and answer.usage.output_tokens > 0
    return f"{answer.status}, {answer.usage.output_tokens} tokens"


@call("openai", "`responses.parse` of a pydantic model")
def responses_parse(server):
    answer = server.openai().responses.parse(model=server.model, input=QUESTION, text_format=Person, max_output_tokens=200)
    return repr(answer.output_parsed)


@call("openai", "`responses.stream` with a flat tool, and its output sent back")
def responses_stream(server):
    client = server.openai()
    tool = {"type": "function", **TOOL["function"]}
    asked = [{"role": "user", "content": "Weather in Oslo?"}]
    more = {"model": server.model, "tools": [tool], "parallel_tool_calls": False, "max_output_tokens": 100}
    with client.responses.stream(input=asked, tool_choice="required", **more) as events:
        kinds = {event.type for event in events}
        answer = events.get_final_response()
    assert "response.function_call_arguments.delta" in kinds, kinds
    [called] = [item for item in answer.output if item.type == "function_call"]
    asked += [called.model_dump(exclude={"parsed_arguments"}), {"type": "function_call_output", "call_id": called.call_id, "output": "sunny"}]
    again = client.responses.create(input=asked, tool_choice="none", **{**more, "max_output_tokens": 10})
    assert again.output_text
    return called.arguments


@call("openai", "`models.retrieve`, and a model that is not there")
def retrieve(server):
    import openai

    client = server.openai()
    assert client.models.retrieve(server.model).id == server.model
    try:
        client.chat.completions.create(model="nobody", messages=ASK)
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error.code
        return error.code
    raise AssertionError("no error")


@call("openai", "a prompt that is too long")
def too_long(server):
    import openai

    try:
        server.openai().completions.create(model=server.model, prompt="word " * 9000)
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded", error.code
        return error.code
    raise AssertionError("no error")


@call("openai", "a role that is none")
def robot(server):
    import openai

    try:
        server.openai().chat.completions.create(model=server.model, messages=[{"role": "robot", "content": "x"}], max_tokens=2)
    except openai.BadRequestError as error:
        return str(error.param)
    raise AssertionError("taken")


@call("openai", "a grammar of which no text is left")
def empty(server):
    import openai

    client, taken = server.openai(), []
    for outputs in [{"regex": "(?=a)b"}, {"grammar": "start: x\nx: x"}, {"grammar": "root ::= root \"a\""}]:
        try:
            client.chat.completions.create(model=server.model, messages=ASK, max_tokens=16, extra_body={"structured_outputs": outputs})
            taken.append(outputs)
        except openai.BadRequestError:
            pass
    assert not taken, f"{taken} are answered"
    return "400"


@call("openai", "`reasoning_effort` and neutral values")
def neutral(server):
    outputs = {"json": None, "regex": "ab", "choice": None, "grammar": None, "json_object": None, "disable_fallback": False, "disable_any_whitespace": False, "disable_additional_properties": False, "whitespace_pattern": None, "structural_tag": None}
    answer = server.openai().chat.completions.create(model=server.model, messages=ASK, max_tokens=4, reasoning_effort="low", extra_body={"structured_outputs": outputs})
    assert answer.choices[0].message.content == "ab", answer
    return "ab"


@call("openai", "`echo` with `logprobs` and `max_tokens: 0`, as lm-eval asks for likelihoods")
def likelihoods(server):
    tokens = server.post("/tokenize", {"model": server.model, "prompt": "The sky is blue."})["tokens"]
    answer = server.openai().completions.create(model=server.model, prompt=tokens, echo=True, logprobs=1, max_tokens=0)
    found = answer.choices[0].logprobs.token_logprobs
    assert len(found) == len(tokens) and found[0] is None and all(value < 0 for value in found[1:]), found
    assert server.post("/detokenize", {"model": server.model, "tokens": tokens})["prompt"] == "The sky is blue."
    return f"sum {sum(found[1:]):.2f}"


@call("openai", "the block of Python in docs/http.md")
def documented(server):
    import openai  # noqa: F401: the block needs it

    text = (Path(__file__).parents[3] / "docs/http.md").read_text()
    [block] = [part.split("```")[0] for part in text.split("```python\n")[1:] if "openai" in part]
    code = block.replace("http://127.0.0.1:8080/v1", server.url).replace('"smol"', repr(server.model))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr.strip().splitlines()[-1]
    return ran.stdout


# others


# anthropic


def anthropic_client(server):
    import anthropic

    return anthropic.Anthropic(base_url=server.url.removesuffix("/v1"), api_key="none", max_retries=0, timeout=300)


WEATHER = {"name": "weather", "description": "The weather of a city.", "input_schema": TOOL["function"]["parameters"]}


@call("anthropic", "`messages.create` with a system's words and stop sequences")
def message(server):
    answer = anthropic_client(server).messages.create(
        model=server.model, max_tokens=30, system="Be short.", stop_sequences=["."], messages=[{"role": "user", "content": "Name a colour."}]
    )
    assert answer.content[0].type == "text" and answer.usage.output_tokens, answer
    assert (answer.stop_reason, answer.stop_sequence) in [("stop_sequence", "."), ("end_turn", None), ("max_tokens", None)], answer
    return f"{answer.stop_reason}, {answer.usage.input_tokens} and {answer.usage.output_tokens} tokens"


@call("anthropic", "`messages.stream`, and its message is that of `create`")
def message_stream(server):
    asked = {"model": server.model, "max_tokens": 60, "messages": ASK, "extra_body": {"seed": 3}}
    with anthropic_client(server).messages.stream(**asked) as stream:
        told = "".join(stream.text_stream)
        streamed = stream.get_final_message()
    whole = anthropic_client(server).messages.create(**asked)
    assert told == streamed.content[0].text == whole.content[0].text, (told, whole)
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    return f"{len(told)} characters"


@call("anthropic", "a tool is called, and what it gave is sent back")
def message_tool(server):
    client, ask = anthropic_client(server), {"role": "user", "content": "Is it raining in Oslo?"}
    asked = {"model": server.model, "max_tokens": 100, "tools": [WEATHER]}
    with client.messages.stream(messages=[ask], tool_choice={"type": "any", "disable_parallel_tool_use": True}, **asked) as stream:
        called = stream.get_final_message()
    (use,) = [block for block in called.content if block.type == "tool_use"]
    assert called.stop_reason == "tool_use" and set(use.input) == {"city"}, called
    result = {"type": "tool_result", "tool_use_id": use.id, "content": weather(**use.input)}
    blocks = [block.to_dict() for block in called.content]
    messages = [ask, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    answer = client.messages.create(messages=messages, tool_choice={"type": "none"}, **asked)
    assert answer.content[0].type == "text", answer
    return f"weather({use.input['city']!r})"


@call("anthropic", "`output_config.format`: a JSON schema")
def message_format(server):
    schema = {**Person.model_json_schema(), "additionalProperties": False}
    answer = anthropic_client(server).messages.create(
        model=server.model, max_tokens=200, messages=ASK, extra_body={"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    )
    return repr(Person.model_validate_json(answer.content[0].text))


@call("anthropic", "`messages.count_tokens` is what `create` counts")
def message_tokens(server):
    client = anthropic_client(server)
    counted = client.messages.count_tokens(model=server.model, messages=ASK).input_tokens
    assert counted == client.messages.create(model=server.model, max_tokens=1, messages=ASK).usage.input_tokens
    return counted


@call("anthropic", "an image is refused by its place")
def message_image(server):
    import anthropic

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    try:
        anthropic_client(server).messages.create(model=server.model, max_tokens=9, messages=[{"role": "user", "content": [image]}])
    except anthropic.BadRequestError as error:
        assert "image" in str(error) and error.body["error"]["param"] == "messages[0].content[0].type", error.body
        return error.body["error"]["message"]
    raise AssertionError("taken")


# instructor


@call("instructor", "mode TOOLS")
def instructor_tools(server):
    import instructor

    client = instructor.from_openai(server.openai(), mode=instructor.Mode.TOOLS)
    return repr(client.chat.completions.create(model=server.model, messages=ASK, response_model=Person, max_retries=0, max_tokens=200, seed=1))


@call("instructor", "mode JSON_SCHEMA")
def instructor_schema(server):
    import instructor

    client = instructor.from_openai(server.openai(), mode=instructor.Mode.JSON_SCHEMA)
    return repr(client.chat.completions.create(model=server.model, messages=ASK, response_model=Person, max_retries=0, max_tokens=200, seed=1))


def pydantic_model(server, responses=False):
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIResponsesModel if responses else OpenAIChatModel
    return kind(server.model, provider=OpenAIProvider(base_url=server.url, api_key="none"))


@call("pydantic-ai", "an agent with an output type, by a tool")
def pydantic_tool(server):
    from pydantic_ai import Agent

    agent = Agent(pydantic_model(server), output_type=Person, retries=0, model_settings={"max_tokens": 200, "seed": 1})
    return repr(agent.run_sync(QUESTION).output)


@call("pydantic-ai", "an agent with a native output type")
def pydantic_native(server):
    from pydantic_ai import Agent, NativeOutput

    agent = Agent(pydantic_model(server), output_type=NativeOutput(Person), retries=0, model_settings={"max_tokens": 200, "seed": 1})
    return repr(agent.run_sync(QUESTION).output)


@call("pydantic-ai", "an agent over `/v1/responses`")
def pydantic_responses(server):
    from pydantic_ai import Agent, NativeOutput

    agent = Agent(pydantic_model(server, True), output_type=NativeOutput(Person), retries=0, model_settings={"max_tokens": 200})
    return repr(agent.run_sync(QUESTION).output)


def chat_openai(server, **more):
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=server.model, base_url=server.url, api_key="none", max_retries=0, max_tokens=200, seed=1, **more)


@call("langchain-openai", "`with_structured_output`")
def langchain_structured(server):
    return repr(chat_openai(server).with_structured_output(Person).invoke(QUESTION))


@call("langchain-openai", "`bind_tools`, and the tool's message sent back")
def langchain_tools(server):
    from langchain_core.messages import HumanMessage, ToolMessage

    asked = [HumanMessage("Weather in Oslo?")]
    model = chat_openai(server)
    answer = model.bind_tools([weather], tool_choice="any", parallel_tool_calls=False).invoke(asked)
    [called] = answer.tool_calls
    asked += [answer, ToolMessage(weather(**called["args"]), tool_call_id=called["id"])]
    assert model.bind(max_tokens=10).invoke(asked).content
    return str(called["args"])


@call("litellm", "`completion` with a pydantic model and `reasoning_effort`")
def litellm_schema(server):
    import litellm

    answer = litellm.completion(
        model=f"openai/{server.model}", api_base=server.url, api_key="none", messages=ASK, response_format=Person, max_tokens=200, seed=1, reasoning_effort="low", allowed_openai_params=["reasoning_effort"], num_retries=0
    )
    return repr(Person.model_validate_json(answer.choices[0].message.content))


@call("litellm", "`completion` with a tool")
def litellm_tool(server):
    import litellm

    answer = litellm.completion(
        model=f"openai/{server.model}", api_base=server.url, api_key="none", messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=100, seed=1, num_retries=0
    )
    return answer.choices[0].message.tool_calls[0].function.arguments


@call("llm", "`prompt` with a schema and streamed")
def llm_schema(server):
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(LLM_USER_PATH=home, OPENAI_API_KEY="none")
        listed = f"- model_id: served\n  model_name: {server.model}\n  api_base: {server.url}\n  supports_schema: true\n"
        (Path(home) / "extra-openai-models.yaml").write_text(listed)
        import llm

        model = llm.get_model("served")
        person = model.prompt(QUESTION, schema=Person, max_tokens=200, seed=1).text()
        assert "".join(model.prompt(QUESTION, max_tokens=10))
        return repr(Person.model_validate_json(person))


NODE = """
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateObject, generateText, streamText, tool } from 'ai'
import { z } from 'zod'
const [url, model, what] = process.argv.slice(2)
const served = createOpenAICompatible({ name: 'palmette', baseURL: url, apiKey: 'none', supportsStructuredOutputs: true })(model)
const common = { model: served, maxOutputTokens: 200, seed: 1, maxRetries: 0 }
if (what === 'object') {
  const { object } = await generateObject({ ...common, schema: z.object({ name: z.string().max(20), age: z.number().int().min(0).max(120) }), prompt: 'Invent a person and tell me name and age.' })
  console.log(JSON.stringify(object))
} else if (what === 'tool') {
  const weather = tool({ description: 'The weather of a city.', inputSchema: z.object({ city: z.string().max(20) }) })
  const { toolCalls } = await generateText({ ...common, tools: { weather }, toolChoice: 'required', prompt: 'Weather in Oslo?' })
  console.log(JSON.stringify(toolCalls[0].input))
} else {
  let parts = 0
  for await (const _ of streamText({ ...common, maxOutputTokens: 10, prompt: 'Hello' }).textStream) parts += 1
  if (!parts) throw new Error('no parts')
  console.log(parts + ' parts')
}
"""


def node(server, what):
    if not server.node:
        raise ImportError("--node is not given")
    script = Path(server.node) / "palmette-clients.mjs"
    script.write_text(NODE)
    ran = subprocess.run(["node", script.name, server.url, server.model, what], cwd=server.node, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr.strip()[-500:]
    return ran.stdout.strip().splitlines()[-1]


for what, title in [("object", "`generateObject` of a zod object"), ("tool", "`generateText` with a tool"), ("text", "`streamText`")]:
    CALLS.append(("ai (npm)", title, lambda server, what=what: node(server, what)))


def shown(text):
    return " ".join(str(text).split()).replace("|", "\\|")[:110]


def run(server, function):
    try:
        return True, shown(function(server))
    except ImportError as error:
        return None, f"not there: {shown(error)}"
    except Exception as error:  # noqa: BLE001: whatever a client has against the answer
        return False, f"{type(error).__name__}: {shown(error)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", default="smol")
    parser.add_argument("--node", help="a folder with node_modules")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.model, arguments.node, arguments.runs)
    before = json.loads(arguments.before.read_text()) if arguments.before else None
    asyncio.set_event_loop(asyncio.new_event_loop())
    print("| client | call |" + (" before |" if before else "") + " result | s |")
    print("|---|---|" + ("---|" if before else "") + "---|---|")
    results, failed = {}, 0
    for client, what, function in CALLS:
        if arguments.only not in f"{client} {what}":
            continue
        began = time.perf_counter()
        worked, result = run(server, function)
        failed += worked is False
        word = {True: "yes", False: "**no**", None: "–"}[worked]
        results[f"{client}: {what}"] = f"{word}: {result}"
        earlier = f" {before.get(f'{client}: {what}', '')} |" if before else ""
        print(f"| {client} | {what} |{earlier} {word}: {result} | {time.perf_counter() - began:.1f} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
