"""Schemas on which engines take long, with instances: a line each, as `prepare --schemas` reads them.

    python3 hostile.py > hostile.jsonl
"""

import argparse
import json
import random
import sys

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for make in [max_length, enum, enum_alike, optional, any_order, nesting, recursion, any_json, items, pattern, any_of]:
        schema, valid, invalid = make(random.Random(make.__name__))
        tests = [{"valid": True, "data": data} for data in valid] + [{"valid": False, "data": data} for data in invalid]
        print(json.dumps({"name": make.__name__, "schema": schema, "tests": tests}))


def max_length(rng):
    """A string of at most 100,000 characters."""
    text = " ".join(word(rng) for _ in range(400))
    return {"type": "string", "maxLength": 100_000}, [text], ["x" * 100_001]


def enum(rng):
    """One of 10,000 strings."""
    names = [f"{word(rng)}-{word(rng)}-{number}" for number in range(10_000)]
    return {"enum": names}, names[::1000], ["nothing of this", names[5000] + "0"]


def enum_alike(rng):
    """One of 10,000 strings that begin alike and differ at their ends."""
    names = [f"https://example.org/catalog/items/{number:05}/details" for number in range(10_000)]
    return {"enum": names}, names[::1000], [names[5000].replace("05000", "15000")]


def optional(rng):
    """An object of 500 properties, none required, in the schema's order."""
    schema, names = object_of_500(rng)
    some = [name for name in names if rng.random() < 0.1]
    members = {name: value(at) for at, name in enumerate(names)}
    return schema, [members, {name: members[name] for name in some}, {}], [{"no such": 1}, {names[0]: "text"}]


def any_order(rng):
    """The same with members in another order, which JSON Schema does not mind."""
    schema, names = object_of_500(rng)
    some = rng.sample(names, 50)
    values = {name: value(at) for at, name in enumerate(names)}
    return schema, [{name: values[name] for name in some}], [{"no such": 1}]


def nesting(rng):
    """60 objects, each the only member of the one around it."""
    schema, data = {"type": "integer"}, 7
    for _ in range(60):
        name = word(rng)
        schema = {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}
        data = {name: data}
    return schema, [data], [{}, {"a": data}]


def recursion(rng):
    """A tree through a recursive reference; texts 50 deep and 300 nodes wide."""
    node = {"type": "object", "properties": {"value": {"type": "integer"}, "children": {
        "type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["value", "children"], "additionalProperties": False}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
    deep = {"value": 0, "children": []}
    for number in range(50):
        deep = {"value": number, "children": [deep]}
    wide = {"value": 0, "children": [{"value": number, "children": []} for number in range(300)]}
    return schema, [deep, wide], [{"value": 1, "children": [{"value": 1}]}]


def any_json(rng):
    """Any JSON; texts 100 arrays and 100 objects deep."""
    arrays, objects = [], {}
    for _ in range(100):
        arrays = [arrays, 1]
    for _ in range(100):
        objects = {word(rng): objects, "x": None}
    return {}, [arrays, objects], []


def items(rng):
    """Between 1,000 and 2,000 integers."""
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 1000, "maxItems": 2000}
    return schema, [[rng.randrange(1000) for _ in range(1200)]], [[1] * 999, [1] * 2001]


def pattern(rng):
    """A regular expression whose deterministic automaton has 2¹⁶ states."""
    text = "".join(rng.choice("ab") for _ in range(200)) + "a" + "b" * 15
    return {"type": "string", "pattern": "^(a|b)*a(a|b){15}$"}, [text], [text[:-15] + "b" * 40, "abc"]


def any_of(rng):
    """Any of 200 objects that begin with the same members."""
    def choice(number):
        properties = {"kind": {"type": "string"}, "size": {"type": "integer"}, f"only{number}": {"const": number}}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    valid = [{"kind": "k", "size": 1, f"only{number}": number} for number in (0, 99, 199)]
    return {"anyOf": [choice(number) for number in range(200)]}, valid, [{"kind": "k", "size": 1, "only7": 8}]


def object_of_500(rng):
    types = [{"type": "integer"}, {"type": "boolean"}, {"type": "string", "maxLength": 20}]
    names = [f"{word(rng)}_{number}" for number in range(500)]
    properties = {name: types[at % 3] for at, name in enumerate(names)}
    return {"type": "object", "properties": properties, "additionalProperties": False}, names


def value(at):
    return [at, True, f"text {at}"][at % 3]


def word(rng):
    return "".join(rng.choice(LETTERS) for _ in range(rng.randrange(3, 9)))


if __name__ == "__main__":
    sys.exit(main())
