#!/usr/bin/env bash
# Checks a machine's NVIDIA device and times it: laws first, then times, ours and peers' on the same card in the same run.
#
#   python/bench/gpu.sh [--device cuda:0|emulated] [--out FOLDER] [--programs FOLDER] [--static FOLDER]
#       [--model FOLDER --catalog FILE --histories FILE]
#
# Needs two programs that were built beforehand, in `--programs` (target/release) or below it, and no Rust:
#   cargo build --release -p palmette-cli
#   cargo build --release -p palmette-cuda --example palmette-cuda-check
# Python with torch and transformers is for peers and for `palmette.cuda` alone, `--static` a checkout of STATIC. Whatever is missing is left out and named at the end. Everything that is
# printed is kept in `--out` (gpu-check). Stops at the first law that does not hold. Clocks, power and modes of the card are left alone.
# `--device emulated` runs the script itself over the emulation, at the smallest sizes.
set -euo pipefail
cd "$(dirname "$0")/../.."

device=cuda:0 out=gpu-check programs=target/release static='' model='' catalog='' histories=''
while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || { echo "$1 needs a value" >&2; exit 2; }
  case $1 in
    --device) device=$2 ;;
    --out) out=$2 ;;
    --programs) programs=$2 ;;
    --static) static=$2 ;;
    --model) model=$2 ;;
    --catalog) catalog=$2 ;;
    --histories) histories=$2 ;;
    *) echo "unknown option $1; see the head of this script" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$out"

left_out=()
leave_out() { left_out+=("$1: $2"); echo "LEFT OUT  $1: $2"; }
program() { # name: the program, where it was built
  local at
  for at in "$programs/$1" "$programs/examples/$1"; do [[ -x $at ]] && { echo "$at"; return; }; done
  return 1
}
has_module() { python3 -c "import $1" 2> /dev/null; }
part() { # name, command: runs it, keeps what it prints, ends the script where it fails
  local name=$1; shift
  echo "== $name"
  if ! "$@" 2>&1 | tee "$out/$name.txt"; then
    echo "STOPPED at $name: what comes after it would say nothing. See $out/$name.txt"
    exit 1
  fi
}

check=$(program palmette-cuda-check) || {
  echo "palmette-cuda-check is not in $programs: cargo build --release -p palmette-cuda --example palmette-cuda-check" >&2
  exit 2
}
is_emulated=false; [[ $device == emulated ]] && is_emulated=true
has_torch=false
if ! $is_emulated && has_module torch && python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then has_torch=true; fi
torch_device=cuda:${device#cuda:}

# 1. The card.
card() {
  date -u +%FT%TZ
  git log -1 --format='commit %h' 2> /dev/null || true
  if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,power.limit --format=csv
  fi
  if $has_torch; then
    python3 - "$torch_device" << 'EOF'
import statistics, sys, torch

device = torch.device(sys.argv[1])
def milliseconds(work):
    times = []
    for _ in range(35):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(); work(); end.record(); torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[5:])

source = torch.rand(1 << 28, device=device)
target = torch.empty_like(source)
print(f"copy      {2 * source.nbytes / milliseconds(lambda: target.copy_(source)) / 1e6:.0f} GB/s")
a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
print(f"product   8192^3 torch {2 * 8192**3 / milliseconds(lambda: a @ b.T) / 1e9:.0f} TFLOP/s")
for rows in (256, 1024, 8000):
    for name, n, k in (("qkv", 4096, 2048), ("o", 2048, 2048), ("gate+up", 12288, 2048), ("down", 2048, 6144)):
        # As many weights as no cache holds, in turn.
        count = -(-(160 << 20) // (2 * n * k))
        x = torch.randn(rows, k, device=device, dtype=torch.bfloat16)
        w = torch.randn(count, n, k, device=device, dtype=torch.bfloat16)
        def work():
            for matrix in w:
                torch.nn.functional.linear(x, matrix)
        work()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        took = milliseconds(graph.replay) / count
        print(f"product   torch    {rows:5} rows {name:8} {took * 1e3:8.1f} us {2 * rows * n * k / took / 1e9:7.1f} TFLOP/s")
EOF
  fi
}
part card card
command -v nvidia-smi > /dev/null || leave_out "card" "no nvidia-smi"
$has_torch || leave_out "copy and products of torch" "no torch with a device"

# 2 to 4. What has to hold.
part steps "$check" --device "$device" steps
part golden "$check" --device "$device" golden
if ! $is_emulated && command -v compute-sanitizer > /dev/null; then
  for tool in memcheck racecheck; do
    part "$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 "$check" --device "$device" --smallest golden laws
  done
else
  leave_out "memory and races" "no compute-sanitizer, or no device"
fi
part laws "$check" --device "$device" laws

# Kernels from Python, in captured graphs too: the beams of torch's tables and the logits of plain masks.
if $has_torch && has_module palmette && has_module pytest; then
  part python python3 -m pytest -q -p no:cacheprovider python/tests/engines/test_cuda_device.py
else
  leave_out "palmette.cuda" "torch with a device, pytest and palmette's package are needed"
fi

# 5 and 6. Times.
part kernels "$check" --device "$device" kernels
part cells "$check" --device "$device" cells
if $has_torch && has_module palmette && has_module transformers; then
  part peers python3 python/bench/transformers_beams.py --device "$torch_device"
  part tables python3 python/bench/device_tables.py --device "$torch_device" ${static:+--static "$static"}
  part masks python3 python/bench/device_masks.py --device "$torch_device"
else
  leave_out "searches of transformers, selection by torch" "torch with a device, transformers and palmette's package are needed"
fi

# 7. A server.
serve() {
  local port=8765 server
  "$palmette" serve --model "$model" --catalog "$catalog" --device "$device" --listen "127.0.0.1:$port" > "$out/server.txt" 2>&1 &
  server=$!
  trap 'kill $server 2> /dev/null || true' RETURN
  for _ in $(seq 120); do
    curl -fsS "http://127.0.0.1:$port/readyz" > /dev/null 2>&1 && break
    kill -0 $server 2> /dev/null || { cat "$out/server.txt"; return 1; }
    sleep 0.5
  done
  "$palmette" loadtest --url "http://127.0.0.1:$port" --histories "$histories" --deadline-ms 500 --rate 20,80,160 --seconds 10
}
if $is_emulated; then
  leave_out "a server" "an emulated device serves nobody"
elif ! palmette=$(program palmette); then
  leave_out "a server" "palmette is not in $programs"
elif [[ -z $model || -z $catalog || -z $histories ]]; then
  leave_out "a server" "--model, --catalog and --histories say what is served"
else
  part serve serve
fi

{
  echo "== all"
  for name in card steps golden laws kernels cells; do grep -hE '^(card|copy|steps|golden|laws|product|norm|cell) ' "$out/$name.txt" || true; done | awk '!seen[$0]++'
  for what in "${left_out[@]}"; do echo "LEFT OUT  $what"; done
} | tee "$out/summary.txt"
