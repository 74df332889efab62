"""One recommendation by CTranslate2 or Hugging Face `generate`, at the shape of a `palmette bench recommend` report.

Weights are random, of the same shape; the beam search is unconstrained, so neither knows a catalog. README.md says how
to run it. With `--listen` it is a server instead: every POST is one search, one after the other.
"""

import argparse
import contextlib
import http.server
import json
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path


def prompt_of(report: dict) -> list[int]:
    """A beginning token, then random codes of the levels in turn."""
    draw = random.Random(1)
    levels, codes = report["levels"], report["codes"]
    code = lambda place: 2 + place % levels * codes + draw.randrange(codes)
    return [1] + [code(place) for place in range(report["prompt_tokens"] - 1)]


def ctranslate2_engine(report: dict, threads: int):
    """A function that runs one search, and the version."""
    import ctranslate2
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec

    shape = report["model"]
    width, inner, vocab = shape["hidden_size"], shape["intermediate_size"], shape["vocab_size"]
    heads, kv_heads, head = shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"]
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        shape["num_hidden_layers"],
        heads,
        activation=common_spec.Activation.SWISH,
        ffn_glu=True,
        rms_norm=True,
        rotary_dim=head,
        rotary_interleave=False,
        rotary_base=shape["rope_theta"],
        num_heads_kv=None if kv_heads == heads else kv_heads,
        head_dim=head,
        qk_norm=True,
    )
    draw = np.random.default_rng(1)

    def matrix(outputs: int, inputs: int):
        return draw.uniform(-1, 1, (outputs, inputs)).astype(np.float32) * np.float32((3 / inputs) ** 0.5)

    ones = lambda size: np.ones(size, dtype=np.float32)
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = matrix(vocab, width)
    decoder.layer_norm.gamma = ones(width)
    decoder.projection.weight = matrix(vocab, width)
    for layer in decoder.layer:
        attention, ffn = layer.self_attention, layer.ffn
        attention.layer_norm.gamma, ffn.layer_norm.gamma = ones(width), ones(width)
        attention.q_norm.gamma, attention.k_norm.gamma = ones(head), ones(head)
        attention.linear[0].weight = matrix((heads + 2 * kv_heads) * head, width)
        attention.linear[1].weight = matrix(width, heads * head)
        ffn.linear_0.weight, ffn.linear_0_noact.weight = matrix(inner, width), matrix(inner, width)
        ffn.linear_1.weight = matrix(width, inner)
    names = ["<pad>", "<s>"] + [f"c{token}" for token in range(2, vocab - 1)] + ["</s>"]
    spec.register_vocabulary(names)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<pad>"
    spec.config.layer_norm_epsilon = shape["rms_norm_eps"]
    spec.validate()
    with tempfile.TemporaryDirectory() as directory:
        spec.save(directory)
        generator = ctranslate2.Generator(
            directory, device="cpu", compute_type="float32", inter_threads=1, intra_threads=threads
        )
    prompt = [names[token] for token in prompt_of(report)]
    beam, levels = report["beam"], report["levels"]

    def search():
        result = generator.generate_batch(
            [prompt],
            beam_size=beam,
            num_hypotheses=min(beam, 10),
            max_length=levels,
            min_length=levels,
            include_prompt_in_result=False,
            return_scores=True,
        )[0]
        assert all(len(ids) == levels for ids in result.sequences_ids), result.sequences_ids

    return search, f"ctranslate2 {ctranslate2.__version__}"


def transformers_engine(report: dict, threads: int):
    """A function that runs one search, and the version."""
    import torch
    import transformers
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    shape = {key: value for key, value in report["model"].items() if key != "rope_theta"}
    model = Qwen3ForCausalLM(Qwen3Config(**shape)).eval()
    model.generation_config = GenerationConfig()
    prompt = torch.tensor([prompt_of(report)])
    beam, levels = report["beam"], report["levels"]

    def search():
        output = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            num_beams=beam,
            num_return_sequences=min(beam, 10),
            max_new_tokens=levels,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        assert output.shape[1] == prompt.shape[1] + levels

    return search, f"transformers {transformers.__version__}, torch {torch.__version__}"


def serve(search, address: str) -> None:
    """Answers every POST by a search, as the API of `palmette serve` has it as far as a load test reads."""
    turn = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet: a body of its own would wait 40 ms for the head's receipt.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            with turn:
                search()
            body = b'{"items": [{}]}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 1024

    host, port = address.rsplit(":", 1)
    server = Server((host, int(port)), Handler)
    print(f"listening on http://{host}:{server.server_port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


ENGINES = {"ctranslate2": ctranslate2_engine, "transformers": transformers_engine}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--report", type=Path, required=True, help="what `palmette bench recommend --json` printed")
    parser.add_argument("--threads", type=int, help="as the report's if not given")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--listen", help="serve at this address, such as 127.0.0.1:0, instead of timing")
    args = parser.parse_args()
    report = json.loads(args.report.read_text())
    threads = args.threads or report["threads"]
    search, version = ENGINES[args.engine](report, threads)
    search()
    if args.listen:
        serve(search, args.listen)
    times = []
    for _ in range(args.repeat):
        start = time.perf_counter()
        search()
        times.append((time.perf_counter() - start) * 1e3)
    median = statistics.median(times)
    print(
        json.dumps(
            {
                "engine": version,
                "threads": threads,
                "prompt_tokens": report["prompt_tokens"],
                "beam": report["beam"],
                "median_ms": median,
                "all_ms": times,
                "palmette_ms": report["total_ms"],
                "ratio": median / report["total_ms"],
            }
        )
    )


if __name__ == "__main__":
    main()
