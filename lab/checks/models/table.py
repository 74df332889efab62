"""The table of architectures: which load, whose logits and whose beam searches are those of Hugging Face transformers.

    python3 -m venv venv
    venv/bin/pip install torch transformers safetensors
    cargo build --release -p palmette-model --example logits
    cargo build --release -p palmette-cli
    venv/bin/python lab/checks/models/table.py target/release/examples/logits target/release/palmette

Each case of `logits.py` is written as a model directory twice, as transformers 5 writes its configuration and as version 4
did, and both are read.

- Loads: the directory is read.
- Logits: the largest difference between those of the first program and of transformers, over all positions of prompts of 1 to
  150 tokens and of three continuations as beams of one search.
- Beam search: `palmette recommend --model DIRECTORY`, over a catalog of 300 items with semantic IDs of 3 levels of 16 codes,
  gives the items that `generate` gives with `prefix_allowed_tokens_fn`, in the same order, each with its score; the column is
  the largest difference of scores. Histories are of 1, 5 and 20 items, so that prompts are longer than the windows.

Prints the table in Markdown, and on the standard error what went wrong. Fails where a model does not load, a difference is above
1e-4, or items or their order differ.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from logits import CASES, LENGTHS, NOTES, TOLERANCE, answers, ask, difference, load, requests, splitmix64, write_case

LEVELS, CODES, ITEMS = 3, 16, 300
HISTORIES = (1, 5, 20)
WIDTH = 8
BOS, FIRST_CODE = 1, 2


def token(level: int, code: int) -> int:
    return FIRST_CODE + level * CODES + code


def catalog_items() -> list[list[int]]:
    """Semantic IDs, each once."""
    drawn = (splitmix64(9_000_000, ITEMS * 4 * LEVELS) * CODES).astype(int).reshape(-1, LEVELS)
    return [list(codes) for codes in dict.fromkeys(tuple(map(int, row)) for row in drawn)][:ITEMS]


def write_catalog(program: str, folder: Path, items: list[list[int]]) -> Path:
    lines = [json.dumps({"id": f"i{place}", "codes": codes}) for place, codes in enumerate(items)]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n")
    out = folder / "items.palm"
    sizes = ",".join([str(CODES)] * LEVELS)
    run([program, "catalog", "build", str(folder / "items.jsonl"), "--out", str(out), "--codes-per-level", sizes])
    return out


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip())
    return done.stdout


def write_format(folder: Path) -> None:
    levels = [{"prefix": "abc"[level], "first_token": token(level, 0), "num_codes": CODES} for level in range(LEVELS)]
    document = {"bos_token": BOS, "pad_token": 0, "levels": levels, "max_history_items": max(HISTORIES)}
    (folder / "semantic_ids.json").write_text(json.dumps(document))


@torch.no_grad()
def generated(model, prompt: list[int], items: list[list[int]]) -> list[tuple[list[int], float]]:
    """Codes and scores, best first, by beam search under a prefix function."""
    children: dict[tuple[int, ...], set[int]] = {}
    for codes in items:
        tokens = [token(level, code) for level, code in enumerate(codes)]
        for level in range(LEVELS):
            children.setdefault(tuple(tokens[:level]), set()).add(tokens[level])
    before = 1 if model.config.is_encoder_decoder else len(prompt)
    input_ids = torch.tensor([prompt])
    output = model.generate(
        input_ids,
        attention_mask=torch.ones_like(input_ids),
        num_beams=WIDTH,
        num_return_sequences=WIDTH,
        prefix_allowed_tokens_fn=lambda _, row: sorted(children[tuple(row[before:].tolist())]),
        max_new_tokens=LEVELS,
        do_sample=False,
        length_penalty=0.0,
        early_stopping=False,
        eos_token_id=None,
        pad_token_id=0,
        # transformers 5.24 makes a cache for as many layers as the encoder has, and a decoder may have more.
        use_cache=not model.config.is_encoder_decoder,
        return_dict_in_generate=True,
        output_scores=True,
    )
    rows, scores = output.sequences[:, before:].tolist(), output.sequences_scores.tolist()
    return [([t - token(level, 0) for level, t in enumerate(row)], score) for row, score in zip(rows, scores, strict=True)]


def recommended(program: str, folder: Path, catalog: Path, history: list[list[int]]) -> list[tuple[list[int], float]]:
    command = [program, "recommend", "--model", str(folder), "--catalog", str(catalog), "--history", json.dumps(history)]
    options = ["-k", str(WIDTH), "--beam-width", str(WIDTH), "--include-seen", "--json"]
    return [(item["codes"], item["score"]) for item in json.loads(run(command + options))["items"]]


def search_difference(program: str, folder: Path, catalog: Path, model, items: list[list[int]]) -> float:
    """The largest difference of scores; fails where items or their order differ."""
    worst = 0.0
    for length in HISTORIES:
        history = [items[(7 * place + length) % len(items)] for place in range(length)]
        prompt = [BOS, *(token(level, code) for codes in history for level, code in enumerate(codes))]
        want, got = generated(model, prompt, items), recommended(program, folder, catalog, history)
        if [codes for codes, _ in want] != [codes for codes, _ in got]:
            raise RuntimeError(f"other items after a history of {length}: {got}, by transformers {want}")
        worst = max([worst, *(abs(one - other) for (_, one), (_, other) in zip(want, got, strict=True))])
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logits", help="the built example `logits` of palmette-model")
    parser.add_argument("palmette", help="the built command line")
    parser.add_argument("cases", nargs="*", default=list(CASES), help="some of the cases only")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    # Models are small: threads would wait for one another.
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, beams of {WIDTH} over {ITEMS} items\n")
    print("| case | what it has | loads | logits | beam search |")
    print("|---|---|---|---|---|")
    sound, asked, items = True, requests(LENGTHS), catalog_items()
    with tempfile.TemporaryDirectory() as temporary:
        catalog = write_catalog(args.palmette, Path(temporary), items)
        for name in args.cases:
            folder = Path(temporary) / name
            older, newer, _ = write_case(folder, name)
            write_format(folder)
            model = load(folder, older)
            want = answers(model, asked)
            # Of both spellings; the worse of two differences, and of two refusals the first.
            columns = [0.0, 0.0]
            loads = True
            for version, config in ((5, newer), (4, older)):
                (folder / "config.json").write_text(json.dumps(config))
                try:
                    found = difference(want, ask(args.logits, folder, asked))
                    columns[0] = max(columns[0], found)
                    columns[1] = max(columns[1], search_difference(args.palmette, folder, catalog, model, items))
                except RuntimeError as error:
                    loads, sound = False, False
                    print(f"{name}, version {version}: {error}", file=sys.stderr)
            sound &= all(column <= TOLERANCE for column in columns)
            cells = [f"equal, {column:.1e}" if column <= TOLERANCE else f"**{column:.1e}**" for column in columns]
            loaded, cells = ("yes", cells) if loads else ("**no**", ["", ""])
            print(f"| {name} | {NOTES[name]} | {loaded} | {cells[0]} | {cells[1]} |", flush=True)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
