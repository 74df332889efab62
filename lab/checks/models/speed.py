"""How fast is one sequence through a model of 0.6 billion parameters, beside llama.cpp and transformers?

    python lab/checks/models/speed.py WORK_DIR [--threads 1 2] [--engines palmette llama.cpp transformers]

The model has the shape of Qwen3-0.6B and made-up weights: time does not depend on what they say. Each engine reads a
prompt of 512 tokens at once, then one token at a time. Prints a line of JSON for each engine, format and number of
threads, medians over the repetitions; engines take turns, so that what else the machine does meets them alike.

`palmette` is `cargo run --release -p palmette-model --example speed`, or PALMETTE_SPEED, the program that it builds. With one thread speeds are given by processor time too, which says more on a
machine that does other things beside.
llama.cpp is the package `xllamacpp` (its server, without HTTP) with a GGUF file that the package `gguf` writes into
WORK_DIR; transformers needs `torch`. Each runs in a process of its own.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SHAPE = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
}
FORMATS = {
    "palmette": ["f32", "bf16", "int8", "bf16+int8"],
    "llama.cpp": ["F16", "BF16", "Q8_0"],
    "transformers": ["float32", "bfloat16"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--engines", nargs="+", default=list(FORMATS), choices=list(FORMATS))
    parser.add_argument("--formats", nargs="+", help="only these of each engine's")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "FORMAT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    (args.work / "config.json").write_text(json.dumps(SHAPE))
    if args.one:
        engine, weights = args.one
        run = llama if engine == "llama.cpp" else transformers
        print(json.dumps(report(args, engine, weights, *run(args, weights))))
        return
    for threads in args.threads:
        for engine in args.engines:
            for weights in FORMATS[engine]:
                if args.formats and weights not in args.formats:
                    continue
                if engine == "palmette":
                    command = palmette(args, weights, threads)
                else:
                    numbers = ["--prompt", args.prompt, "--tokens", args.tokens, "--repeat", args.repeat]
                    one = [args.work, "--threads", threads, *numbers, "--one", engine, weights]
                    command = [sys.executable, __file__, *map(str, one)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                print(done.stdout.strip().splitlines()[-1], flush=True)


def palmette(args: argparse.Namespace, weights: str, threads: int) -> list[str]:
    program = os.environ.get("PALMETTE_SPEED")
    cargo = ["cargo", "run", "--release", "-q", "-p", "palmette-model", "--example", "speed", "--"]
    numbers = [threads, args.prompt, args.tokens, args.repeat]
    return [*([program] if program else cargo), str(args.work / "config.json"), weights, *map(str, numbers)]


Times = list[tuple[float, float]]
"""Seconds by the clock and of processor time, one pair a repetition."""


def report(args, engine: str, weights: str, prefill: Times, decode: Times, weight_bytes: int) -> dict:
    """Speeds by the median times, `prefill` of the prompt and `decode` of all tokens after it."""

    def speed(tokens: int, times: list[tuple[float, float]]) -> dict:
        clock, processor = (tokens / statistics.median(kind) for kind in zip(*times))
        return {"clock": clock, "processor": processor if args.threads[0] == 1 else None}

    return {
        "engine": engine,
        "weights": weights,
        "threads": args.threads[0],
        "weight_bytes": weight_bytes,
        "prompt": args.prompt,
        "tokens": args.tokens,
        "prefill_tokens_per_s": speed(args.prompt, prefill),
        "decode_tokens_per_s": speed(args.tokens, decode),
    }


def llama(args, weights: str) -> tuple[Times, Times, int]:
    path = args.work / f"random-{weights}.gguf"
    if not path.exists():
        write_gguf(path, weights)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = args.prompt + args.tokens + 64
    params.n_batch = params.n_ubatch = 512
    params.n_parallel = 1
    params.warmup = True
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = args.threads[0]
    server = xllamacpp.Server(params)
    prefill, decode = [], []
    for run in range(args.repeat + 1):
        # Another first token each time: nothing is kept from the run before.
        prompt = [(run * 31 + n * 7919) % 150000 for n in range(args.prompt)]
        asked = {"prompt": prompt, "ignore_eos": True, "cache_prompt": False}
        asked |= {"temperature": 0.0, "samplers": ["top_k"], "top_k": 1}
        # The prompt's time is that of a first token. Then the same prompt is there already, but for its last token.
        start = now()
        timings = server.handle_completions(asked | {"n_predict": 1})["timings"]
        assert timings["prompt_n"] == args.prompt, timings
        prefill.append((timings["prompt_ms"] / 1e3, since(start)[1]))
        start = now()
        timings = server.handle_completions(asked | {"n_predict": args.tokens, "cache_prompt": True})["timings"]
        assert timings["prompt_n"] < 8 and timings["predicted_n"] == args.tokens, timings
        clock = (timings["prompt_ms"] + timings["predicted_ms"]) / 1e3
        passes = timings["prompt_n"] + timings["predicted_n"] - 1
        decode.append((clock * args.tokens / passes, since(start)[1] * args.tokens / passes))
    return prefill[1:], decode[1:], path.stat().st_size


def write_gguf(path: Path, weights: str) -> None:
    import gguf
    import numpy as np

    shape = SHAPE
    d, f, c = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    queries, keys = shape["num_attention_heads"] * c, shape["num_key_value_heads"] * c
    partial = path.with_suffix(".part")
    writer = gguf.GGUFWriter(partial, "qwen3")
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(d)
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(f)
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_key_length(c)
    writer.add_value_length(c)
    writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_file_type({"F16": 1, "BF16": 32, "Q8_0": 7}[weights])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    tokens = [f"w{n}" for n in range(shape["vocab_size"])]
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["w 0"])
    writer.add_eos_token_id(0)
    kind = getattr(gguf.GGMLQuantizationType, weights)
    chance = np.random.default_rng(1)

    def matrix(name: str, outputs: int, inputs: int) -> None:
        values = (chance.random((outputs, inputs), dtype=np.float32) * 2 - 1) * np.sqrt(3 / inputs)
        writer.add_tensor(name, gguf.quants.quantize(values.astype(np.float32), kind), raw_dtype=kind)

    def norm(name: str, width: int) -> None:
        writer.add_tensor(name, np.ones(width, np.float32))

    matrix("token_embd.weight", shape["vocab_size"], d)
    norm("output_norm.weight", d)
    for layer in range(shape["num_hidden_layers"]):
        at = f"blk.{layer}."
        norm(at + "attn_norm.weight", d)
        norm(at + "ffn_norm.weight", d)
        norm(at + "attn_q_norm.weight", c)
        norm(at + "attn_k_norm.weight", c)
        matrix(at + "attn_q.weight", queries, d)
        matrix(at + "attn_k.weight", keys, d)
        matrix(at + "attn_v.weight", keys, d)
        matrix(at + "attn_output.weight", d, queries)
        matrix(at + "ffn_gate.weight", f, d)
        matrix(at + "ffn_up.weight", f, d)
        matrix(at + "ffn_down.weight", d, f)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(path)


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> tuple[float, float]:
    return tuple(end - begun for end, begun in zip(now(), start))


def transformers(args, weights: str) -> tuple[Times, Times, int]:
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    torch.set_num_threads(args.threads[0])
    shape = {name: value for name, value in SHAPE.items() if name != "model_type"}
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(Qwen3Config(**shape), dtype=getattr(torch, weights)).eval()
    prefill, decode = [], []
    with torch.inference_mode():
        for run in range(args.repeat + 1):
            prompt = torch.tensor([[(run * 31 + n * 7919) % 150000 for n in range(args.prompt)]])
            start = now()
            out = model(prompt, use_cache=True, logits_to_keep=1)
            prefill.append(since(start))
            start = now()
            for n in range(args.tokens):
                token = torch.tensor([[n * 104729 % 150000]])
                out = model(token, past_key_values=out.past_key_values, use_cache=True, logits_to_keep=1)
            decode.append(since(start))
    size = sum(value.numel() * value.element_size() for value in model.parameters())
    return prefill[1:], decode[1:], size


if __name__ == "__main__":
    main()
