"""Loads a model directory with transformers and prints the logits of a prompt.

    python3 check_export.py --model DIR --tokens 1,5,9

Fails when a weight is missing, unexpected or of another shape, or when the rotary base or the
norm epsilon that transformers computes with is not the one written in config.json. Output, one JSON
object: {"tokens": [...], "positions": [...], "logits": [[V floats] per position]}, computed
in f32 with eager attention and written with seven significant digits.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM


def load(folder: Path, dtype: torch.dtype):
    model, report = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=dtype,
        attn_implementation="eager",
        local_files_only=True,
        output_loading_info=True,
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if report.get(kind):
            sys.exit(f"{folder}: {kind}: {sorted(map(str, report[kind]))}")
    return model.eval()


def check_constants(folder: Path, model) -> None:
    """Fields that transformers would replace by a default without a word if it knew another name."""
    written = json.loads((folder / "config.json").read_text())
    nested = written.get("rope_parameters") or {}
    theta = nested.get("rope_theta", written.get("rope_theta"))
    if theta is None:
        sys.exit(f"{folder}: config.json has no rope_theta; readers differ in what they assume")
    head_dim = model.config.head_dim
    expected = theta ** -(torch.arange(0, head_dim, 2) / head_dim)
    if not torch.allclose(model.model.rotary_emb.inv_freq.float(), expected, rtol=1e-5):
        sys.exit(f"{folder}: rope_theta {theta} is in config.json but not in the model")
    used = model.model.norm.variance_epsilon
    if written.get("rms_norm_eps", 1e-6) != used:
        sys.exit(f"{folder}: rms_norm_eps is {written['rms_norm_eps']}, the model uses {used}")
    tied = model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    if tied != written.get("tie_word_embeddings", False):
        sys.exit(f"{folder}: tie_word_embeddings is {not tied}, the model was loaded otherwise")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokens", required=True, help="the prompt: token numbers, with commas")
    parser.add_argument("--last-only", action="store_true", help="only the last position's logits")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    args = parser.parse_args()

    tokens = [int(token) for token in args.tokens.split(",")]
    model = load(args.model, getattr(torch, args.dtype))
    check_constants(args.model, model)
    if not all(0 <= token < model.config.vocab_size for token in tokens):
        sys.exit(f"tokens must be below vocab_size, {model.config.vocab_size}")
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].float()
    positions = [len(tokens) - 1] if args.last_only else list(range(len(tokens)))
    rows = [[float(f"{value:.6e}") for value in logits[p].tolist()] for p in positions]
    print(json.dumps({"tokens": tokens, "positions": positions, "logits": rows}))


if __name__ == "__main__":
    main()
