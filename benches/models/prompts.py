"""Prompts token by token, compared with those of Hugging Face transformers.

    python3 -m venv venv
    venv/bin/pip install transformers jinja2 tokenizers
    venv/bin/python benches/models/prompts.py --fixtures DIRECTORY

`--fixtures` writes what the tests compare with: `chats.json`, conversations with the texts that transformers' chat templates make
of them (`crates/palmette-template/tests/template/fixtures`). The templates are made up; together they use what published ones use.
"""

import argparse
import datetime
import json
from pathlib import Path

from transformers.utils import chat_template_utils

# 2025-11-24T16:00:00Z; the tests give the same moment.
NOW = datetime.datetime.fromtimestamp(1_764_000_000, datetime.timezone.utc)

TALK = [
    {"role": "system", "content": "You know every tent."},
    {"role": "user", "content": "  Which is lighter?\n"},
    {"role": "assistant", "content": "<think>\nMat or tent.\n</think>\n\nThe first."},
    {"role": "user", "content": "Thanks — “really”?"},
]
TOOLS = [{"type": "function", "function": {"name": "weigh", "parameters": {"properties": {"id": {"type": "string", "enum": ["é", "<b>"]}}, "required": []}}}]

CASES = {
    "marks": "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
    "blocks": "{% for m in messages %}\n    {% if m.role == 'user' %}\nUSER: {{ m.content | trim }}\n    {% else %}\n{{ m.role | upper }}: {{ m.content }}\n    {% endif %}\n{% endfor %}\nEND\n",
    "special": "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}{{ nothing }}",
    "loops": "{% for m in messages %}{% if loop.first %}[{% endif %}{{ loop.index0 }}/{{ loop.length }}{% if loop.previtem is defined %}<{{ loop.previtem.role }}{% endif %}{% if not loop.last %}, {% else %}]{% endif %}{% endfor %}",
    "namespace": "{% set ns = namespace(seen=false, n=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' and not ns.seen %}{% set ns.seen = true %}{% set ns.n = loop.index0 %}{% endif %}{% endfor %}{{ ns.seen }} {{ ns.n }} {{ none }} {{ 1.0 }} {{ 3 // 2 }}",
    "strings": "{% for m in messages %}{% set c = m.content %}{{ c.strip().split(' ')[0] }}|{{ c.startswith('You') }}|{{ c.rstrip('.').lstrip() }}|{{ c.split('</think>')[-1].lstrip('\n') }}|{{ '<think>' in c }}|{{ c | length }}\n{% endfor %}",
    "controls": "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }};{% if loop.index > 2 %}{% break %}{% endif %}{% endfor %}",
    "macros": "{% macro say(who, what='nothing') %}{{ who }} says {{ what }}.{% endmacro %}{% for m in messages %}{{ say(m.role, m.content | trim) }}{% endfor %}{{ say('nobody') }}",
    "tools": "{% for t in tools %}{{ t | tojson }}\n{{ t.function | tojson(indent=2) }}\n{{ t.function.parameters.items() | list | length }}{% for k, v in t.function.items() %}{{ k }}={{ v | string | length > 0 }} {% endfor %}{% endfor %}",
    "messages_as_json": "{{ messages[0] | tojson }} {{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }}",
    "refuses": "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}",
    "date": "Today is {{ strftime_now('%d %B %Y') }}.",
    "options": "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>{% endif %}{{ style | default('plain') }}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% endif %}{% endfor %}",
    "whitespace": "{%- for m in messages -%}\n  {{- m.role -}}  \n  {%- if not loop.last %}, {% endif -%}\n{%- endfor -%}\n\n",
    "slices": "{{ messages[-1].content[:6] }}{{ messages[1:] | length }}{{ (messages | last).role }}{{ 'a' ~ 1 ~ true }}{{ 'x' if false }}{{ [1, 2] + [3] }}{{ {'a': 'b', 'c': [none, true, 1.5, \"it's\", 'a\\n\"b\"']} }}",
}
OPTIONS = {
    "marks": {"add_generation_prompt": True},
    "tools": {"tools": TOOLS},
    "options": {"extra": {"enable_thinking": False}},
}


def chats():
    for name, template in CASES.items():
        options = OPTIONS.get(name, {})
        case = {"name": name, "template": template, "messages": TALK, "options": options}
        compiled = chat_template_utils._compile_jinja_template(template)
        compiled.environment.globals["strftime_now"] = NOW.strftime
        try:
            text = compiled.render(
                messages=TALK,
                tools=options.get("tools"),
                documents=None,
                add_generation_prompt=options.get("add_generation_prompt", False),
                bos_token="<s>",
                eos_token="</s>",
                strftime_now=NOW.strftime,
                **options.get("extra", {}),
            )
            case["text"] = text
        except Exception as error:
            case["raised"] = str(error)
        yield case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", type=Path, required=True)
    args = parser.parse_args()
    args.fixtures.mkdir(parents=True, exist_ok=True)
    text = json.dumps(list(chats()), ensure_ascii=False, indent=1)
    (args.fixtures / "chats.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
