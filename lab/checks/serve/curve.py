#!/usr/bin/env python3
"""Goodput and p99 of a server over offered load, beside the simulation of its scheduler.

    cargo build --release -p palmette-cli && cargo build --release -p palmette-serve --example random
    lab/checks/serve/curve.py --out curve [--loads .3,.5,.8,1,1.5,2] [--seconds 30] [--server-cpus 0] [--driver-cpus 1]

Starts the example `random` (10 million parameters unless told otherwise, three levels of 256 codes) on its own processors with a stream for each, measures
its capacity by requests one after the other, offers the loads by `palmette loadtest` from other processors, and gives `palmette
simulate` the costs that the server fitted, the same lengths of history and the noise that was seen. Writes curve.json and curve.svg
to --out and prints a table. With one processor for the server and one for the driver neither takes time of the other.
"""

import argparse
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--loads", default=".3,.5,.8,1,1.5,2")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--deadline-ms", type=int, default=200)
    parser.add_argument("--beam-width", type=int, default=128)
    parser.add_argument("--params", default="10m", help="1m or 10m")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--history", type=int, default=60)
    parser.add_argument("--server-cpus", default="0")
    parser.add_argument("--driver-cpus", default="1")
    parser.add_argument("--target-dir", default=os.environ.get("CARGO_TARGET_DIR", "target"))
    return parser.parse_args()


def main():
    options = arguments()
    os.makedirs(options.out, exist_ok=True)
    palmette = os.path.join(options.target_dir, "release/palmette")
    histories = os.path.join(options.out, "histories.jsonl")
    record = os.path.join(options.out, "record.jsonl")
    streams = len(options.server_cpus.split(","))
    server = subprocess.Popen(
        ["taskset", "-c", options.server_cpus, os.path.join(options.target_dir, "release/examples/random"),
         "--items", str(options.items), "--params", options.params, "--history", str(options.history), "--streams", str(streams),
         "--record", record, "--histories", histories],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "RAYON_NUM_THREADS": str(streams)})
    try:
        measure(options, server, palmette, histories, record, streams)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def measure(options, server, palmette, histories, record, streams):
    url = None
    while url is None:
        line = server.stdout.readline()
        if not line:
            sys.exit("the server ended before it listened")
        found = re.search(r"http://[0-9.:]+", line)
        url = found and found.group()
    driver = ["taskset", "-c", options.driver_cpus, palmette, "loadtest", "--url", url, "--histories", histories,
              "--beam-width", str(options.beam_width)]
    subprocess.run(driver + ["--sequential", "--requests", "200"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # What one stream does, request after request, by the record: the capacity is as many streams.
    costs, worked, jobs = read_record(record)
    mean_ms = statistics.fmean(worked) / 1e3
    capacity = streams * 1e3 / mean_ms
    loads = [float(load) for load in options.loads.split(",")]
    rates = [round(load * capacity, 2) for load in loads]
    ratios = [log_ratio(costs, job, took) for job, took in zip(jobs, worked)]
    noise, scale = statistics.pstdev(ratios), math.exp(statistics.fmean(ratios))

    # Foretold before it is measured.
    simulated = {"runs": simulate(options, palmette, histories, streams, rates, costs, noise, scale)}
    foretold = os.path.join(options.out, "simulated.json")
    with open(foretold, "w") as file:
        json.dump(simulated, file, indent=1)
    plot = os.path.join(options.out, "curve.svg")
    done = subprocess.run(driver + ["--rate", ",".join(map(str, rates)), "--seconds", str(options.seconds), "--deadline-ms",
                                    str(options.deadline_ms), "--json", "--plot", plot, "--beside", foretold],
                          check=True, stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout)
    with urllib.request.urlopen(url + "/metrics") as answer:
        cpu = re.search(r"\nprocess_cpu_seconds_total ([0-9.]+)", answer.read().decode())
    out = {"capacity": capacity, "mean_ms": mean_ms, "noise": noise, "scale": scale, "costs": costs, "loads": loads,
           "measured": measured, "simulated": simulated, "server_cpu_seconds": float(cpu.group(1))}
    with open(os.path.join(options.out, "curve.json"), "w") as file:
        json.dump(out, file, indent=1)
    print(f"capacity {capacity:.1f}/s, {mean_ms:.1f} ms a request, noise {noise:.2f}, actual/fitted {scale:.2f}")
    print("load  offered/s  goodput/s  simulated  ratio   p99 ms  simulated  late%  refused  refused p99 ms  driver cores")
    for load, rate, report, run in zip(loads, rates, measured["rates"], simulated["runs"]):
        row(load, rate, report, run)


def simulate(options, palmette, histories, streams, rates, costs, noise, scale):
    """A run of the scheduler for each rate, over the lengths of the same histories."""
    levels, runs = 3, []
    with open(histories) as file:
        lengths = [len(json.loads(line)["items"]) for line in file]
    with tempfile.TemporaryDirectory() as scratch:
        cost_file, trace = os.path.join(scratch, "model.cost"), os.path.join(scratch, "trace.jsonl")
        with open(cost_file, "w") as file:
            json.dump({name: value * scale for name, value in costs.items()}, file)
        for rate in rates:
            rng, at = random.Random(3), 0.0
            with open(trace, "w") as file:
                for n in range(max(500, int(rate * options.seconds * 2))):
                    at += rng.expovariate(rate) * 1e3
                    tokens = 1 + levels * min(lengths[n % len(lengths)], options.history)
                    file.write(json.dumps({"at_ms": at, "prompt_tokens": tokens}) + "\n")
            done = subprocess.run(
                [palmette, "simulate", "--trace", trace, "--cost", cost_file, "--noise", str(noise), "--beam",
                 str(options.beam_width), "--passes", str(levels - 1), "--streams", str(streams), "--deadline-ms",
                 str(options.deadline_ms), "--json"], check=True, stdout=subprocess.PIPE, text=True)
            runs += json.loads(done.stdout)["runs"]
    return runs


def row(load, rate, report, run):
    answered = report["in_time"] + report["late"]
    print(f"{load:4.1f} {rate:10.1f} {report['goodput_per_s']:10.1f} {run['goodput']:10.1f}"
          f" {report['goodput_per_s'] / run['goodput']:6.2f} {report['latency_ms']['p99']:8.1f} {run['p99_ms']:10.1f}"
          f" {100 * report['late'] / max(1, answered):6.2f} {report['status_429']:8} {(report['refusal_ms'] or {}).get('p99', 0.0):15.1f}"
          f" {report['driver']['cpu_share']:13.2f}")


def read_record(path):
    """Costs, and the microseconds and shapes of what ran to its end on one thread."""
    costs, shapes, started, worked, jobs = None, {}, {}, [], []
    with open(path) as file:
        for line in file:
            record = json.loads(line)
            event = record.get("event", {})
            if isinstance(event, dict):
                if "costs" in event:
                    costs = event["costs"]["costs"]
                if "arrive" in event:
                    shapes[event["arrive"]["id"]] = event["arrive"]["shape"]
                if "ended" in event:
                    job = started.pop(event["ended"]["stream"], None)
                    if job is not None:
                        worked.append(event["ended"]["worked"])
                        jobs.append(shapes.pop(job))
            for action in record.get("actions", []):
                if isinstance(action, dict) and "start" in action and action["start"]["threads"] == 1:
                    started[action["start"]["stream"]] = action["start"]["jobs"][0]["job"]
    return costs, worked, jobs


def log_ratio(costs, shape, took):
    tokens, passes, rows = shape["prompt_tokens"], shape["passes"], shape["rows"]
    predicted = (costs["c0"] + costs["c1"] * tokens + costs["c2"] * tokens**2 + costs["r0"] * passes
                 + costs["r1"] * rows + costs["r2"] * rows * tokens)
    return math.log(took / predicted)


main()
