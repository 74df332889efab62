"""Schemas whose alternatives exclude one another, as cases for `mask_times --walks 0 --slowest 99`: a line each, without texts."""

import json

STRING = {"type": "string"}


def kinds(count, own, condition=None, **more):
    """Objects with another `type` each, and with a property of their own or one that all have."""
    made = []
    for at in range(count):
        kind = condition(at) if condition else {"const": f"kind{at}"}
        properties = {"type": {"type": "string", **kind}, "x": {}, f"z{at}" if own else "z": {}}
        made.append({"properties": properties, "required": ["type"], "additionalProperties": False, **more})
    return {"oneOf": made}


def optional(count):
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {"type": {"const": f"t{at}"}, f"p{at}": STRING},
                "additionalProperties": False,
            }
            for at in range(count)
        ]
    }


def patterns(count):
    named = {f"^p{at}-": STRING for at in range(count)}
    return {"type": "object", "patternProperties": named, "additionalProperties": False}


def prefixes(count):
    return kinds(count, True, lambda at: {"pattern": f"^x{at}-[a-z]+$"}, type="object")


def unevaluated(count):
    names = [f"t{at}" for at in range(count)]
    conditions = [
        {"if": {"properties": {"t": {"const": name}}}, "then": {"properties": {f"a{at}": STRING}}}
        for at, name in enumerate(names)
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"t": {"enum": names}},
        "required": ["t"],
        "allOf": conditions,
        "unevaluatedProperties": False,
    }


SCHEMAS = {
    "80 kinds": kinds(80, False),
    "40 kinds, own properties": kinds(40, True),
    **{f"{count} closed, type optional": optional(count) for count in (10, 20, 50)},
    **{f"{count} patternProperties": patterns(count) for count in (15, 40)},
    **{f"{count} kinds by prefixes": prefixes(count) for count in (15, 40)},
    **{f"{count} conditions, unevaluated": unevaluated(count) for count in (15, 40)},
}

for name, schema in SCHEMAS.items():
    print(json.dumps({"name": name, "kind": "json_schema", "grammar": json.dumps(schema), "texts": []}))
