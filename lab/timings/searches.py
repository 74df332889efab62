"""Searches with queries, and a small language model of text before its training: what draft.sh trains heads of.

    python3 searches.py ~/data/Scientific Scientific WORK

The data set is one of CollisionGenRec's, with the items' categories. A search is a history, the item that came next, and in the place of
the query, which the data does not have, the last two categories of that item: words that some items share. Written to WORK:
`train.jsonl`, one search for each item of a history but the first and the last; `test.jsonl`, one for each last item; `start/`, a
checkpoint in the form of Hugging Face with weights from a seed, a tokenizer of the words in queries, and the template of prompts.

    palmette catalog build DATA/indexes/rqvae_zcr/NAME.index.json --out WORK/NAME.palm
    palmette-train train --from WORK/start --catalog WORK/NAME.palm --histories WORK/train.jsonl --hold-out nothing --epochs 12 --out WORK/text
    MODEL=WORK/text CATALOG=WORK/NAME.palm HISTORIES=WORK/train.jsonl TEST=WORK/test.jsonl HOLD_OUT=nothing HOW=joint DRAFT_EPOCHS=8 \\
        DROPOUT=0.1 NEXT_TOKEN_WEIGHT=0.2 USERS=4000 QUERY="screws wood screws" draft.sh WORK/drafts

draft.sh trains the head's other forms too; "nezha-joint-SEED" by masks is the head, by beam the same weights searched without it.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import struct

SPECIAL = ["<|pad|>", "<|end|>", "<|unknown|>"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--history", type=int, default=6, help="items of a prompt")
    parser.add_argument("--words", type=int, default=1500, help="words of the tokenizer, the most frequent of the queries")
    args = parser.parse_args()
    histories = json.loads((args.data / f"{args.name}.inter.json").read_text())
    items = json.loads((args.data / f"{args.name}.item.json").read_text())
    queries = {item: query(about) for item, about in items.items()}
    args.work.mkdir(parents=True, exist_ok=True)
    write_searches(args.work, histories, queries)
    start = args.work / "start"
    start.mkdir(exist_ok=True)
    words = collections.Counter(word for text in queries.values() for word in re.findall(r"\w+|[^\w\s]+", text))
    vocabulary = SPECIAL + [word for word, _ in words.most_common(args.words)]
    write_tokenizer(start, vocabulary)
    write_model(start, len(vocabulary), args)
    template = {
        "prompt": "{{ history | join('') }}wanted {{ query }}",
        "special_tokens": False,
        "max_history_items": args.history,
        "max_prompt_tokens": 64,
    }
    (start / "prompt_template.json").write_text(json.dumps(template, indent=2))


def query(about):
    categories = [part.strip() for part in about.get("categories", "").split(",") if part.strip()]
    return " ".join(categories[-2:]).lower() or "anything"


def write_searches(work, histories, queries):
    with (work / "train.jsonl").open("w") as train, (work / "test.jsonl").open("w") as test:
        for user, items in histories.items():
            items = [str(item) for item in items]
            for at in range(1, len(items)):
                out = test if at == len(items) - 1 else train
                row = {"user": user, "items": items[:at], "target": items[at], "query": queries[items[at]]}
                out.write(json.dumps(row) + "\n")


def write_tokenizer(start, vocabulary):
    added = [{"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for number, text in enumerate(SPECIAL)]  # fmt: skip
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {text: number for number, text in enumerate(vocabulary)}, "unk_token": "<|unknown|>"},
    }
    (start / "tokenizer.json").write_text(json.dumps(tokenizer))
    (start / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "pad_token": "<|pad|>", "unk_token": "<|unknown|>"}))


def write_model(start, words, args):
    hidden, inner, layers = args.hidden, 3 * args.hidden, args.layers
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": words,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": args.heads,
        "num_key_value_heads": args.heads,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "hidden_act": "silu",
        "attention_bias": False,
        "torch_dtype": "float32",
        "eos_token_id": SPECIAL.index("<|end|>"),
    }
    (start / "config.json").write_text(json.dumps(config, indent=2))
    shapes = {"model.embed_tokens.weight": [words, hidden], "model.norm.weight": [hidden]}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        shapes |= {at + f"{name}_layernorm.weight": [hidden] for name in ("input", "post_attention")}
        shapes |= {at + f"self_attn.{name}_proj.weight": [hidden, hidden] for name in "qkvo"}
        shapes |= {at + f"mlp.{name}_proj.weight": [inner, hidden] for name in ("gate", "up")}
        shapes[at + "mlp.down_proj.weight"] = [hidden, inner]
    draw, header, data = random.Random(0), {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if len(shape) == 1 else [draw.gauss(0, 0.02) for _ in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (start / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)


if __name__ == "__main__":
    main()
