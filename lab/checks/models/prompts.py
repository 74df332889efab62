"""Prompts token by token, compared with those of Hugging Face transformers.

    python3 -m venv venv
    venv/bin/pip install transformers jinja2 tokenizers safetensors numpy
    venv/bin/python lab/checks/models/prompts.py --fixtures CHECKOUT

    venv/bin/python lab/checks/models/prompts.py --model DIRECTORY --index INDEX.json --histories ROWS.csv palmette

`--fixtures` writes what the tests compare with, below a checkout: `chats.json`, conversations with the texts that transformers'
chat templates make of them, and in `crates/recommend/tests/recommend/fixtures/prompts` two small tokenizers with the codes of
a made-up index, added as `sorted(set(tokens))`, and prompts of published kinds with the tokens that AutoTokenizer makes of
them. The texts are put together here by f-strings, as the authors' programs do, and not by templates.

`--model` makes the directory of a model: a byte-level tokenizer to which the codes of a real index are added, MiniOneRec's template and a
small Qwen3 with random weights, so that `palmette recommend` and `palmette eval` can be tried on it as on a trained one. Then every row of the histories is asked of `palmette model inspect --prompt` and of AutoTokenizer; it fails where tokens differ.
"""

import argparse
import ast
import csv
import datetime
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast
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


TEXTS = [
    "Below is an instruction that describes a task, paired with an input that provides further context.",
    "Write a response that appropriately completes the request. The user has interacted with these items in order.",
    "Can you predict the next possible item that the user may expect? Tents, mats and stoves for the next tour.",
]
# As Qwen's tokenizers split text.
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
HEAD = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request. \n\n### Instruction:\n"
    "Can you predict the next possible item that the user may expect?\n\n"
)


def byte_level(codes, bos=None, vocab_size=300):
    """A tokenizer as Qwen's, trained on a few lines, to which codes are added as `sorted(set(tokens))`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=[], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + ([bos] if bos else [])
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in ["<think>", "</think>"]])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=bos, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.add_tokens(sorted(set(codes)))
    fast.add_special_tokens({"additional_special_tokens": ["<|sid_begin|>", "<|sid_end|>"]})
    if bos:
        template = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, fast.convert_tokens_to_ids(bos))])
        fast.backend_tokenizer.post_processor = template
    fast.chat_template = CHAT
    return fast


def preset(name):
    path = Path(__file__).parents[3] / "crates/recommend/src/presets" / f"{name}.json"
    return json.loads(path.read_text())


def minionerec(tokenizer, history):
    """The two parts are cut each alone, and a beginning token stands before both, as the authors' data sets do."""
    rest = (
        "### User Input: \nCan you predict the next possible item the user may expect, given the following chronological "
        f"interaction history: {', '.join(history)}\n\n### Response:\n"
    )
    tokens = []
    for part in [HEAD, rest]:
        ids = tokenizer.encode(part)
        while ids and ids[0] == tokenizer.bos_token_id:
            ids = ids[1:]
        tokens += ids
    bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    return bos + tokens


def prompts(out):
    out.mkdir(parents=True, exist_ok=True)
    items = [
        {"id": f"i{n}", "codes": [n % 7, n * 13 % 12, n * 29 % 14], "title": f"Tent “{n}” <b>{'é' * (n % 3)}</b>"} for n in range(40)
    ]
    spelled = [[f"<{letter}_{code}>" for letter, code in zip("abc", item["codes"])] for item in items]
    sids = ["".join(codes) for codes in spelled]
    directories = {}
    for name, bos in [("plain", None), ("with_bos", "<s>")]:
        byte_level([code for codes in spelled for code in codes], bos).save_pretrained(out / name)
        for file in ["special_tokens_map.json", "added_tokens.json"]:
            (out / name / file).unlink(missing_ok=True)
        directories[name] = AutoTokenizer.from_pretrained(out / name)
    plain, with_bos = directories["plain"], directories["with_bos"]
    cases = []

    def case(directory, template, history, tokens, end, **request):
        tokenizer = directories[directory]
        cases.append({"directory": directory, "template": template, "history": history, "tokens": tokens,
                      "end": tokenizer(end, add_special_tokens=False)["input_ids"], **request})

    for directory, tokenizer in directories.items():
        for history in [[5], [0, 11, 39, 11], []]:
            tokens = minionerec(tokenizer, [sids[i] for i in history])
            case(directory, preset("minionerec"), history, tokens, "\n" + tokenizer.eos_token)
    text = "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n### Instruction:\nThe user has interacted with items {inters} in chronological order. Can you predict the next possible item that the user may expect?\n\n### Response:"
    for directory, tokenizer in directories.items():
        history = [3, 4, 30]
        tokens = tokenizer(text.format(inters=", ".join(sids[i] for i in history)))["input_ids"]
        case(directory, preset("lc-rec"), history, tokens, tokenizer.eos_token)
    history = [1, 2, 38]
    system, user = [message["content"] for message in preset("openonerec")["messages"]]
    user = user.split("{%")[0] + "".join(f"<|sid_begin|>{sids[i]}<|sid_end|>" for i in history)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    for thinks in [False, True]:
        chat = plain.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=thinks)
        tokens = plain(chat + ("<think>\n" if thinks else "<|sid_begin|>"), add_special_tokens=False)["input_ids"]
        case("plain", preset("openonerec"), history, tokens, "", thinks=thinks)
    template = {
        "prompt": "{{ user.name }}, {{ user.age }}, asks: {{ query }}\n{% for item in history %}{{ loop.index }}. {{ item.title }} {{ item }} ({{ item.id }})\n{% endfor %}{% if user.member %}*{% endif %}=>",
        "special_tokens": False,
    }
    lines = "".join(f"{n}. {items[i]['title']} {sids[i]} (i{i})\n" for n, i in enumerate(history, 1))
    for directory, tokenizer in directories.items():
        tokens = tokenizer(f"Zoë, 31, asks: something light\n{lines}=>", add_special_tokens=False)["input_ids"]
        case(directory, template, history, tokens, "", query="something light", user={"name": "Zoë", "age": 31})
    text = json.dumps({"items": items, "cases": cases}, ensure_ascii=False)
    (out / "prompts.json").write_text(text.replace('{"directory"', '\n{"directory"').replace('{"id"', '\n{"id"') + "\n")


def random_weights(directory, vocab_size, width=64, hidden=128, layers=2, head=16, heads=4):
    """A Qwen3 checkpoint of made-up weights."""
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": vocab_size, "hidden_size": width,
        "intermediate_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads,
        "head_dim": head, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu",
        "tie_word_embeddings": True, "torch_dtype": "float32",
    }
    (directory / "config.json").write_text(json.dumps(config, indent=1))
    random = np.random.default_rng(0)
    shapes = {"model.embed_tokens": (vocab_size, width), "model.norm": (width,)}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        shapes |= {at + "input_layernorm": (width,), at + "post_attention_layernorm": (width,)}
        shapes |= {f"{at}self_attn.{name}_proj": (heads * head, width) for name in "qkv"}
        shapes |= {at + "self_attn.o_proj": (width, heads * head)}
        shapes |= {f"{at}self_attn.{name}_norm": (head,) for name in "qk"}
        shapes |= {f"{at}mlp.{name}_proj": (hidden, width) for name in ["gate", "up"]} | {at + "mlp.down_proj": (width, hidden)}
    weights = {
        name + ".weight": np.ones(shape, np.float32) if len(shape) == 1 else (random.standard_normal(shape) * 0.05).astype(np.float32)
        for name, shape in shapes.items()
    }
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def compare(args):
    """The tokens of every row of histories, by palmette and by AutoTokenizer."""
    index = json.loads(args.index.read_text())
    codes = [code for codes in index.values() for code in codes]
    byte_level(codes, vocab_size=2000).save_pretrained(args.model)
    (args.model / "prompt_template.json").write_text(json.dumps(preset("minionerec")))
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    random_weights(args.model, len(tokenizer))
    token = {code: tokenizer.convert_tokens_to_ids(code) for code in set(codes)}
    first = {letter: min(id for code, id in token.items() if code[1] == letter) for letter in {code[1] for code in token}}
    runs = sum(id == first[code[1]] + int(code[3:-1]) for code, id in token.items())
    print(f"{len(token):,} codes, {runs:,} of them at the lowest token of their level plus the code")
    catalog = args.model / "catalog.palm"
    subprocess.run([args.palmette, "catalog", "build", args.index, "--out", catalog], check=True, stdout=subprocess.DEVNULL)
    with args.histories.open(newline="") as file:
        rows = [ast.literal_eval(row["history_item_sid"]) for row in csv.DictReader(file)]
    asked = "\n".join(json.dumps(row[-50:]) for row in rows)
    command = [args.palmette, "model", "inspect", args.model, "--catalog", catalog, "--prompts", "-"]
    answers = subprocess.run(command, check=True, input=asked, text=True, capture_output=True).stdout.splitlines()
    differ = 0
    for row, answer in zip(rows, answers, strict=True):
        differ += minionerec(tokenizer, row[-50:]) != json.loads(answer)["tokens"]
    print(f"{len(rows):,} prompts, {differ} with other tokens")
    sys.exit(bool(differ))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", type=Path, metavar="CHECKOUT")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--histories", type=Path)
    parser.add_argument("palmette", nargs="?")
    args = parser.parse_args()
    if args.model:
        compare(args)
    out = args.fixtures / "crates/model-template/tests/template/fixtures"
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(list(chats()), ensure_ascii=False, indent=1)
    (out / "chats.json").write_text(text + "\n")
    prompts(args.fixtures / "crates/recommend/tests/recommend/fixtures/prompts")


if __name__ == "__main__":
    main()
