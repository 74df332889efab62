#!/usr/bin/env python3
"""Latency over the rate of arrivals, of Palmette's server and of another engine behind a plain one.

    cargo build --release -p palmette-cli && cargo build --release -p palmette-serve --example random
    lab/peers/rates.py --out rates --engine ctranslate2 --python PYTHON [--params 1m,10m] [--beams 128,256,512] [--seconds 10]

Both search with a model of random weights of the same shape after a prompt of the same length; the other knows no catalog. Each server
has one processor and computes on one thread, the driver another. What a server does one request after the other is its capacity; it is then
offered `--loads` of it by `palmette loadtest`, without a deadline that refuses anybody. Writes rates.json to --out, and rates.svg where
matplotlib is there; prints a table. PYTHON has the engine (README.md).
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys

LEVELS, CODES = 3, 256


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--engine", choices=["ctranslate2", "transformers"], default="ctranslate2")
    parser.add_argument("--python", default=sys.executable, help="a Python that has the engine")
    parser.add_argument("--params", default="1m,10m")
    parser.add_argument("--beams", default="128,256,512")
    parser.add_argument("--loads", default=".2,.5,.8,.95")
    parser.add_argument("--history", type=int, default=20, help="items of every history")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--server-cpu", default="0")
    parser.add_argument("--driver-cpu", default="1")
    parser.add_argument("--target-dir", default=os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("--profile", default="release")
    return parser.parse_args()


def main():
    options = arguments()
    os.makedirs(options.out, exist_ok=True)
    built = os.path.join(options.target_dir, options.profile)
    palmette = os.path.join(built, "palmette")
    histories = os.path.join(options.out, "histories.jsonl")
    draw = random.Random(1)
    with open(histories, "w") as file:
        for _ in range(200):
            file.write(json.dumps({"items": [str(draw.randrange(options.items)) for _ in range(options.history)]}) + "\n")
    rows = []
    for params in options.params.split(","):
        for beam in map(int, options.beams.split(",")):
            own = [os.path.join(built, "examples/random"), "--items", str(options.items), "--params", params, "--history", str(options.history),
                   "--streams", "1", "--cache-mb", "0"]
            shape = os.path.join(options.out, f"{params}-{beam}.json")
            bench = [palmette, "bench", "recommend", "--params", params, "--prompt", str(1 + LEVELS * options.history), "--beam", str(beam), "--levels",
                     str(LEVELS), "--codes", str(CODES), "--items", str(options.items), "--threads", "1", "--repeat", "3", "--json"]
            with open(shape, "w") as file:
                subprocess.run(bench, check=True, stdout=file, stderr=subprocess.DEVNULL)
            other = [options.python, os.path.join(os.path.dirname(__file__), "random_generate.py"), "--engine", options.engine, "--report", shape,
                     "--threads", "1", "--listen", "127.0.0.1:0"]
            for name, command in [("palmette", own), (options.engine, other)]:
                for row in measure(options, palmette, histories, command, beam):
                    rows.append({"server": name, "params": params, "beam": beam, **row})
                    print_row(rows[-1])
    with open(os.path.join(options.out, "rates.json"), "w") as file:
        json.dump(rows, file, indent=1)
    draw_plot(rows, os.path.join(options.out, "rates.svg"))


def measure(options, palmette, histories, command, beam):
    """The capacity of a server, and its latencies at shares of it."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(["taskset", "-c", options.server_cpu, *command], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        url = None
        while url is None:
            line = server.stdout.readline()
            if not line:
                sys.exit(f"the server ended before it listened: {' '.join(command)}")
            found = re.search(r"http://[0-9.:]+", line)
            url = found and found.group()
        driver = ["taskset", "-c", options.driver_cpu, palmette, "loadtest", "--url", url, "--histories", histories, "--beam-width", str(beam),
                  "--with", json.dumps({"mode": "beam", "priority": "bulk"}), "--json"]
        alone = run(driver + ["--sequential", "--requests", "12"])["rates"][0]
        capacity = 1e3 / alone["latency_ms"]["p50"]
        rates = [round(float(load) * capacity, 3) for load in options.loads.split(",")]
        # At least some thirty requests at each.
        seconds = max(options.seconds, 30 / rates[-1])
        offered = run(driver + ["--rate", ",".join(map(str, rates)), "--seconds", str(seconds)])["rates"]
        for load, rate, report in zip(options.loads.split(","), rates, offered):
            latency = report["latency_ms"]
            yield {"capacity": capacity, "load": float(load), "rate": rate, "p50": latency["p50"], "p99": latency["p99"], "failed": report.get("failed", 0)}
    finally:
        server.terminate()
        server.wait(30)


def run(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)


def print_row(row):
    print("| {server} | {params} | {beam} | {capacity:.2f} | {rate:.2f} | {p50:.0f} | {p99:.0f} |".format(**row), flush=True)


def draw_plot(rows, path):
    try:
        import matplotlib
    except ImportError:
        return print("no plot: matplotlib is not installed", file=sys.stderr)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "rates"
    shapes = list(dict.fromkeys(row["params"] for row in rows))
    figure, panels = plt.subplots(1, len(shapes), figsize=(4.5 * len(shapes), 3.4), squeeze=False)
    for panel, params in zip(panels[0], shapes):
        for server, style in zip(dict.fromkeys(row["server"] for row in rows), ["-o", "--s"]):
            panel.set_prop_cycle(None)
            for beam in dict.fromkeys(row["beam"] for row in rows):
                of = [row for row in rows if (row["server"], row["params"], row["beam"]) == (server, params, beam)]
                panel.plot([row["rate"] for row in of], [row["p99"] for row in of], style, markersize=3, label=f"{server}, {beam} beams")
        panel.set(xscale="log", yscale="log", xlabel="requests a second", ylabel="p99, ms", title=f"{params} parameters")
        panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
