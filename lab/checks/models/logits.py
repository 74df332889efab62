"""Logits of every architecture that palmette-model reads, by Hugging Face transformers: the cases that table.py compares.

    python3 -m venv venv
    venv/bin/pip install torch transformers safetensors
    venv/bin/python lab/checks/models/logits.py --fixtures crates/model/tests/fixtures/architectures

Each case is a configuration in the shape of a published one, scaled down but for `t5_tiger`, with made-up weights: its
directory is written, and transformers computes logits from it in f32 with eager attention and without a cache: of all
positions of prompts shorter and longer than the sliding windows and the original positions of stretched wavelengths, and of
three continuations as beams of one search. Of an encoder-decoder the encoder reads the prompt, so that there is one position,
the start token's; there it is also checked that padding under a mask changes nothing.

What it writes is what the crate's tests compare with: `crates/model/tests/fixtures/architectures/NAME.json`, both
configurations, names and shapes of the tensors, and logits. The weights are not in them: value i of all tensors in the order of
their names is drawn by `splitmix64`, which the tests do too.
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

TOLERANCE = 1e-4
VOCAB = 64
LENGTHS = (1, 7, 45, 150)
# In fixtures: longer ones keep their last positions only.
FIXTURE_LENGTHS = (1, 7, 45)
FIXTURE_POSITIONS = {1: [0], 7: [0, 3, 6], 45: [8, 17, 44]}

COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}

# Of encoder-decoders, which name theirs otherwise.
COMMON_T5 = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "is_encoder_decoder": True,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 1,
}

# Weights are within plus and minus this, but for norms.
WEIGHT_SCALE = 0.35

# Version 4's spelling; version 5's is what transformers makes of it.
CASES = {
    "qwen3": {
        "model_type": "qwen3",
        "head_dim": 16,
        "rope_theta": 1_000_000.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": 28,
    },
    "qwen3_yarn": {
        "model_type": "qwen3",
        "head_dim": 16,
        "attention_bias": True,
        "rope_theta": 10_000.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    },
    "qwen2": {
        "model_type": "qwen2",
        "rope_theta": 1_000_000.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "sliding_window": 32768,
        "max_window_layers": 28,
    },
    "qwen2_window": {
        "model_type": "qwen2",
        "rope_theta": 10_000.0,
        "use_sliding_window": True,
        "sliding_window": 8,
        "max_window_layers": 1,
    },
    "llama3": {
        "model_type": "llama",
        "head_dim": 16,
        "num_key_value_heads": 1,
        "tie_word_embeddings": True,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
    "llama_linear": {
        "model_type": "llama",
        "num_key_value_heads": 4,
        "attention_bias": True,
        "rope_theta": 10_000.0,
        "rope_scaling": {"type": "linear", "factor": 2.5},
    },
    "mistral": {
        "model_type": "mistral",
        "head_dim": 16,
        "rope_theta": 1_000_000.0,
        "sliding_window": None,
    },
    "mistral_window": {
        "model_type": "mistral",
        "rope_theta": 10_000.0,
        "sliding_window": 8,
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "num_hidden_layers": 4,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 24,
        "sliding_window": 8,
        "sliding_window_pattern": 3,
        "rope_theta": 1_000_000.0,
        "rope_local_base_freq": 10_000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    },
    # As published: Rajput et al., NeurIPS 2023; LETTER and GRID have the same.
    "t5_tiger": {
        "model_type": "t5",
        "d_model": 128,
        "d_kv": 64,
        "d_ff": 1024,
        "num_layers": 4,
        "num_decoder_layers": 4,
        "num_heads": 6,
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
    },
    "t5": {
        "model_type": "t5",
        "relative_attention_num_buckets": 12,
        "relative_attention_max_distance": 30,
    },
    "t5_v1_1": {
        "model_type": "t5",
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "decoder_start_token_id": 5,
    },
    "mt5": {
        "model_type": "mt5",
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "num_decoder_layers": 2,
    },
    "umt5": {
        "model_type": "umt5",
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": True,
    },
}

# Products of a wider model's queries and keys, which T5 does not scale, would drown everything else.
WEIGHT_SCALES = {"t5_tiger": 0.1}

NOTES = {
    "qwen3": "tied",
    "qwen3_yarn": "YaRN × 4, biases",
    "qwen2": "tied",
    "qwen2_window": "window from layer 1",
    "llama3": "Llama 3 positions, tied",
    "llama_linear": "linear × 2.5, biases",
    "mistral": "no window",
    "mistral_window": "window",
    "gemma3": "local and global layers, linear × 8 in the latter, tied",
    "t5_tiger": "the published shape of TIGER: 4 + 4 layers, 6 heads of 64, ReLU, tied",
    "t5": "12 buckets up to 30, ReLU, tied",
    "t5_v1_1": "gated, a head of its own, start token 5",
    "mt5": "gated, a head of its own",
    "umt5": "gated, biases of each layer, tied",
}


def older_config(name: str) -> dict:
    """A case as version 4 spells it."""
    changes = CASES[name]
    common = COMMON_T5 if is_encoder_decoder(changes) else COMMON
    return {**common, **changes}


def is_encoder_decoder(config: dict) -> bool:
    return config["model_type"] in ("t5", "mt5", "umt5")


def auto_model(config: dict):
    return AutoModelForSeq2SeqLM if is_encoder_decoder(config) else AutoModelForCausalLM


def weight_scale(name: str) -> float:
    return WEIGHT_SCALES.get(name, WEIGHT_SCALE)


def splitmix64(first: int, count: int) -> np.ndarray:
    """`count` numbers in [0, 1) from place `first` on: the top 24 bits of each."""
    place = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = place * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)


def weights_of(shapes: dict[str, list[int]], norm_offset: float, scale: float) -> dict[str, np.ndarray]:
    """Weights far from an untrained model's: a wrong norm, position or head then shows. Norms multiply by 0.5 to 1.5."""
    tensors, place = {}, 0
    for name in sorted(shapes):
        count = int(np.prod(shapes[name]))
        uniform = splitmix64(place, count)
        place += count
        if name.endswith("norm.weight"):
            values = uniform + np.float32(0.5 - norm_offset)
        else:
            values = (uniform * np.float32(2.0) - np.float32(1.0)) * np.float32(scale)
        tensors[name] = values.reshape(shapes[name])
    return tensors


def write_case(folder: Path, name: str) -> tuple[dict, dict, dict[str, list[int]]]:
    """Writes the directory; returns the configuration as version 4 writes it and as this one does, and the shapes."""
    older = older_config(name)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(older))
    config = AutoConfig.from_pretrained(folder)
    model = auto_model(older).from_config(copy.deepcopy(config))
    shapes = {key: list(value.shape) for key, value in model.state_dict().items()}
    if is_encoder_decoder(older):
        # Each refers to the shared one, and version 5 says so of the head whatever the configuration does.
        own_head = older.get("tie_word_embeddings") is False
        copies = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
        dropped = copies if own_head else [*copies, "lm_head.weight"]
    else:
        dropped = ["lm_head.weight"] if config.tie_word_embeddings else []
    for key in dropped:
        shapes.pop(key, None)
    offset = 1.0 if older["model_type"].startswith("gemma") else 0.0
    save_file(weights_of(shapes, offset, weight_scale(name)), folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    newer = json.loads((folder / "config.json").read_text())
    return older, newer, shapes


def load(folder: Path, config: dict):
    model, report = auto_model(config).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    return model.eval()


@torch.no_grad()
def logits_of(model, prompt: list[int], continuation: list[int] = ()) -> torch.Tensor:
    """At each position of the decoder: `[tokens, V]`, where an encoder reads the prompt `[1 + continuation, V]`."""
    if not model.config.is_encoder_decoder:
        return model(input_ids=torch.tensor([[*prompt, *continuation]]), use_cache=False).logits[0]
    start = torch.tensor([[model.config.decoder_start_token_id, *continuation]])
    logits = model(input_ids=torch.tensor([prompt]), decoder_input_ids=start, use_cache=False).logits[0]
    for padding in ((3, 0), (0, 5)):
        row, mask = [0] * padding[0] + prompt + [0] * padding[1], [0] * padding[0] + [1] * len(prompt) + [0] * padding[1]
        padded = model(
            input_ids=torch.tensor([row]), attention_mask=torch.tensor([mask]), decoder_input_ids=start, use_cache=False
        ).logits[0]
        assert (padded - logits).abs().max() < TOLERANCE, "padding under a mask changes logits"
    return logits


def tokens_of(seed: int, count: int) -> list[int]:
    return [int(value * VOCAB) for value in splitmix64(1_000_000 * seed, count)]


def requests(lengths) -> list[dict]:
    asked = []
    for seed, length in enumerate(lengths):
        # Beams go on after every prompt, so that windows end in it, at its end, and in what follows.
        continuations = [tokens_of(100 + 10 * seed + beam, 3) for beam in range(3)]
        continuations[1][0] = continuations[0][0]
        asked.append({"prompt": tokens_of(seed + 1, length), "continuations": continuations})
    return asked


def answers(model, asked: list[dict]) -> list[dict]:
    out = []
    for request in asked:
        prompt = request["prompt"]
        beams = [logits_of(model, prompt, c)[-len(c) :] for c in request["continuations"]]
        out.append({"prompt": logits_of(model, prompt), "beams": torch.stack(beams)})
    return out


def ask(program: str, folder: Path, asked: list[dict]) -> list[dict]:
    text = "".join(json.dumps(request) + "\n" for request in asked)
    done = subprocess.run([program, str(folder)], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def difference(want: list[dict], got: list[dict]) -> float:
    """The largest over all logits."""
    worst = 0.0
    for one, other in zip(want, got, strict=True):
        for part in ("prompt", "beams"):
            other_part = torch.tensor(other[part])
            assert one[part].shape == other_part.shape, (one[part].shape, other_part.shape)
            worst = max(worst, (one[part] - other_part).abs().max().item())
    return worst


def rounded(row: torch.Tensor) -> list[float]:
    return [float(f"{value:.6e}") for value in row.tolist()]


def write_fixtures(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            older, newer, shapes = write_case(folder, name)
            model = load(folder, older)
        prompts = []
        for request in requests(FIXTURE_LENGTHS):
            logits, positions = logits_of(model, request["prompt"]), FIXTURE_POSITIONS[len(request["prompt"])]
            if is_encoder_decoder(older):
                positions = [0]
            rows = [rounded(logits[position]) for position in positions]
            prompts.append({"tokens": request["prompt"], "positions": positions, "logits": rows})
        [request] = requests([6])
        [answer] = answers(model, [request])
        incremental = {
            "prompt": request["prompt"],
            "prompt_logits": rounded(answer["prompt"][-1]),
            "continuations": request["continuations"],
            "logits": [[rounded(row) for row in beam] for beam in answer["beams"]],
        }
        document = {
            "made_with": f"transformers {transformers.__version__}",
            "config": newer,
            "older_config": older,
            "tensors": dict(sorted(shapes.items())),
            **({"weight_scale": weight_scale(name)} if name in WEIGHT_SCALES else {}),
            "prompts": prompts,
            "incremental": incremental,
        }
        text = json.dumps(document, separators=(",", ":"))
        path = directory / f"{name}.json"
        path.write_text(text.replace("[[", "[\n[").replace("],[", "],\n[") + "\n")
        print(f"{path}: {path.stat().st_size} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fixtures", type=Path, required=True, help="where to write the tests' fixtures")
    write_fixtures(parser.parse_args().fixtures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
