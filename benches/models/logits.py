"""Logits of every architecture that palmette-model reads, compared with those of Hugging Face transformers.

    python3 -m venv venv
    venv/bin/pip install torch transformers safetensors
    cargo build --release -p palmette-model --example logits
    venv/bin/python benches/models/logits.py target/release/examples/logits

Each case is a configuration in the shape of a published one, scaled down, with made-up weights: its directory is written,
transformers computes logits from it in f32 with eager attention and without a cache, and the program named on the command
line reads the same directory. Compared are all positions of prompts shorter and longer than the sliding windows and the
original positions of stretched wavelengths, and three continuations as beams of one search. Each configuration is read
twice, as transformers 5 writes it and as version 4 did. Prints a table; fails where a difference is above 1e-4.

With `--fixtures DIRECTORY` in place of the program it writes what the crate's tests compare with:
`crates/palmette-model/tests/fixtures/architectures/NAME.json`, both configurations, names and shapes of the tensors, and
logits. The weights are not in them: value i of all tensors in the order of their names is drawn by `splitmix64`, which the
tests do too.
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
from transformers import AutoConfig, AutoModelForCausalLM

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
}


def splitmix64(first: int, count: int) -> np.ndarray:
    """`count` numbers in [0, 1) from place `first` on: the top 24 bits of each."""
    place = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = place * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)


def weights_of(shapes: dict[str, list[int]], norm_offset: float) -> dict[str, np.ndarray]:
    """Weights far from an untrained model's: a wrong norm, position or head then shows. Norms multiply by 0.5 to 1.5."""
    tensors, place = {}, 0
    for name in sorted(shapes):
        count = int(np.prod(shapes[name]))
        uniform = splitmix64(place, count)
        place += count
        if name.endswith("norm.weight"):
            values = uniform + np.float32(0.5 - norm_offset)
        else:
            values = (uniform * np.float32(2.0) - np.float32(1.0)) * np.float32(0.35)
        tensors[name] = values.reshape(shapes[name])
    return tensors


def write_case(folder: Path, older: dict) -> tuple[dict, dict[str, list[int]]]:
    """Writes the directory; returns the configuration as this version of transformers writes it, and the shapes."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(older))
    config = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(copy.deepcopy(config))
    tied = config.tie_word_embeddings
    shapes = {
        name: list(value.shape)
        for name, value in model.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    offset = 1.0 if older["model_type"].startswith("gemma") else 0.0
    save_file(weights_of(shapes, offset), folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    newer = json.loads((folder / "config.json").read_text())
    return newer, shapes


def load(folder: Path):
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    return model.eval()


@torch.no_grad()
def logits_of(model, tokens: list[int]) -> torch.Tensor:
    """`[tokens, V]`"""
    return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


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
        beams = [logits_of(model, prompt + c)[len(prompt) :] for c in request["continuations"]]
        out.append({"prompt": logits_of(model, prompt), "beams": torch.stack(beams)})
    return out


def ask(program: str, folder: Path, asked: list[dict]) -> list[dict]:
    text = "".join(json.dumps(request) + "\n" for request in asked)
    done = subprocess.run([program, str(folder)], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def difference(want: list[dict], got: list[dict]) -> tuple[float, float]:
    """The largest over all logits, and the largest logit."""
    worst, largest = 0.0, 0.0
    for one, other in zip(want, got, strict=True):
        for part in ("prompt", "beams"):
            other_part = torch.tensor(other[part])
            assert one[part].shape == other_part.shape, (one[part].shape, other_part.shape)
            worst = max(worst, (one[part] - other_part).abs().max().item())
            largest = max(largest, one[part].abs().max().item())
    return worst, largest


def compare(program: str) -> bool:
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print("| case | read as written by | loads | largest difference | largest logit |")
    print("|---|---|---|---|---|")
    sound, asked = True, requests(LENGTHS)
    for name, changes in CASES.items():
        older = {**COMMON, **changes}
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            newer, _ = write_case(folder, older)
            want = answers(load(folder), asked)
            for version, config in ((5, newer), (4, older)):
                (folder / "config.json").write_text(json.dumps(config))
                try:
                    worst, largest = difference(want, ask(program, folder, asked))
                except RuntimeError as error:
                    sound = False
                    print(f"| {name} | {version} | no: {error} | | |")
                    continue
                sound &= worst <= TOLERANCE
                print(f"| {name} | {version} | yes | {worst:.1e} | {largest:.1f} |")
    return sound


def rounded(row: torch.Tensor) -> list[float]:
    return [float(f"{value:.6e}") for value in row.tolist()]


def write_fixtures(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, changes in CASES.items():
        older = {**COMMON, **changes}
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            newer, shapes = write_case(folder, older)
            model = load(folder)
        prompts = []
        for request in requests(FIXTURE_LENGTHS):
            logits, positions = logits_of(model, request["prompt"]), FIXTURE_POSITIONS[len(request["prompt"])]
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
            "prompts": prompts,
            "incremental": incremental,
        }
        text = json.dumps(document, separators=(",", ":"))
        path = directory / f"{name}.json"
        path.write_text(text.replace("[[", "[\n[").replace("],[", "],\n[") + "\n")
        print(f"{path}: {path.stat().st_size} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", help="the built example `logits` of palmette-model")
    parser.add_argument("--fixtures", type=Path, help="write the tests' fixtures there instead")
    args = parser.parse_args()
    if args.fixtures:
        write_fixtures(args.fixtures)
        return 0
    if not args.program:
        parser.error("name the program, or --fixtures")
    return 0 if compare(args.program) else 1


if __name__ == "__main__":
    sys.exit(main())
