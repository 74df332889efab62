#!/usr/bin/env python3
"""Recommendations for everyone by several ways: are the rows the same, and how many users a second?

    everyone.py --palmette target/release/palmette --folder /tmp/everyone [--users 100000] [-k 10] [--beam-width 10]
        [--items 0] [--threads N] [--ways command shards killed daft ray]

Run by a Python that has pyarrow, and for their ways daft and ray, with this package's wheel. Makes the built-in shop and a Parquet file of
so many users in row groups of 10,000: the shop's 6,000 histories, each time without one more of their last items; of each the last --items, or all. Then the command answers
them as one shard; as three; as one that is killed (kill -9) again and again and goes on with --resume; and the examples for Daft and Ray do.
Every way's rows must equal the first's, user by user, and the resumed file must equal it byte for byte; exit status 1 otherwise.
Processor time is of all processes of a way. Answers that are there from an earlier call are not asked for again, but compared.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).parents[3]
WAYS = ["command", "shards", "killed", "daft", "ray"]


def users(options, folder):
    """The file of histories."""
    path = folder / f"users-{options.users}-{options.items}.parquet"
    if path.exists():
        return path
    run = lambda *command: subprocess.run([options.palmette, *command], cwd=folder, check=True, capture_output=True)
    run("demo", "--export", "shop")
    run("catalog", "build", "shop/items.jsonl", "--out", "shop.palm")
    shop = list(json.loads((folder / "shop/histories.json").read_text()).items())
    names, histories = [], []
    for number in range(options.users):
        user, items = shop[number % len(shop)]
        left_out = number // len(shop)
        names.append(f"{user}-{left_out}")
        # A window that moves back: other prompts, of about the same length.
        histories.append(items[: max(1, len(items) - left_out)][-options.items :])
    table = pa.table({"user": names, "history": histories})
    pq.write_table(table, path, row_group_size=10_000)
    return path


def run_killed(command, out, kills):
    """Runs a command that is killed so often, at moments at which it has written something new, and goes on; how many answers it had."""
    partial, had = out.with_name(out.name + ".partial"), []
    if out.exists():
        return "there already"
    draw = random.Random(7)
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        start = partial.stat().st_size if partial.exists() else 0
        while process.poll() is None and not (partial.exists() and partial.stat().st_size > start):
            time.sleep(0.05)
        time.sleep(draw.uniform(0.5, 30))
        process.kill()
        process.wait()
        if out.exists():
            break
        had.append(partial.read_bytes().count(b"\n"))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return f"had {', '.join(f'{count:,}' for count in had)}"


def measured(act):
    """Wall clock and processor time of what a function starts and waits for."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    said = act()
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def rows(files):
    """All answers, by user."""
    tables = [pq.read_table(file) for file in files]
    table = pa.concat_tables([table.select(["user", "items", "scores", "codes", "skipped", "error"]) for table in tables])
    return {row["user"]: row for row in table.to_pylist()}, len(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--palmette", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--beam-width", type=int, default=10)
    parser.add_argument("--items", type=int, default=0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    options.palmette = os.path.abspath(options.palmette)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    histories = users(options, folder)
    files = {"--model": folder / "shop/model", "--catalog": folder / "shop.palm", "--histories": histories}
    files = [str(part) for option in files.items() for part in option]
    engine = [*files, "-k", str(options.k), "--beam-width", str(options.beam_width)]
    command = [options.palmette, "recommend", *engine, "--unknown", "skip", "--json"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    made = folder / f"answers-{options.users}-{options.items}-{options.k}-{options.beam_width}"
    made.mkdir(exist_ok=True)

    def shards(count):
        for shard in range(count):
            there = ["--out", str(made / f"of-{count}.parquet"), "--shard", f"{shard}/{count}", "--resume"]
            subprocess.run([*command, *there], check=True, stdout=subprocess.DEVNULL)

    def by_engine(script, *rest):
        out = made / script
        if list(out.glob("*.parquet")):
            return "there already"
        example = [sys.executable, str(ROOT / "python/examples" / script), *engine, "--out", str(out), *rest]
        said = subprocess.run(example, check=True, capture_output=True, text=True, cwd=folder).stdout
        return f"{float(said.split()[-2]):.0f} s without its start"

    killed = [*command, "--out", str(made / "killed.parquet"), "--resume"]
    ways = {
        "command": ("one shard", lambda: shards(1), lambda: made.glob("of-1-*.parquet")),
        "shards": ("three shards, one after the other", lambda: shards(3), lambda: made.glob("of-3-*.parquet")),
        "killed": (
            f"killed {options.kills} times and resumed",
            lambda: run_killed(killed, made / "killed.parquet", options.kills),
            lambda: [made / "killed.parquet"],
        ),
        "daft": ("Daft", lambda: by_engine("daft_frames.py"), lambda: (made / "daft_frames.py").glob("*.parquet")),
        "ray": (
            f"Ray Data, {options.actors} actors",
            lambda: by_engine("ray_data.py", "--actors", str(options.actors)),
            lambda: (made / "ray_data.py").glob("*.parquet"),
        ),
    }
    expected, faults = None, []
    print("| | users | processor time, each | wall clock | a second | rows | |\n|---|---|---|---|---|---|---|", flush=True)
    for way in options.ways:
        name, act, answers = ways[way]
        wall, processor, said = measured(act)
        found, count = rows(sorted(answers()))
        expected = expected or found
        is_same = found == expected and count == len(found) == options.users
        if not is_same:
            faults.append(f"{name}: {count} rows, {sum(found.get(user) != row for user, row in expected.items())} other ones")
        each = f"{1000 * processor / options.users:.2f} ms"
        same = "the same" if is_same else "OTHERS"
        print(f"| {name} | {count:,} | {each} | {wall:.0f} s | {options.users / wall:.0f} | {same} | {said or ''} |", flush=True)
    one, resumed = next(made.glob("of-1-00000-*.parquet"), None), made / "killed.parquet"
    if one and resumed.exists():
        equal = one.read_bytes() == resumed.read_bytes()
        print(f"the resumed file is {'equal to' if equal else 'ANOTHER than'} the first, byte for byte")
        faults += [] if equal else ["the resumed file"]
    for fault in faults:
        print("FAULT:", fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
