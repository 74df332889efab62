#!/usr/bin/env bash
# Plants one fault after another into the kernels and says which the tests under emulation see.
#
#   crates/cuda/kernels/faults.sh [name of a kernel file]
#
# A test that sees none is none. Faults in parentheses change no result and must be missed. About 6 minutes of one core; needs
# what the tests need. Fails if a fault is missed, or no longer applies.
set -uo pipefail
cd "$(dirname "$0")"
only=${1:-} failures=0

fault() { # file, tests, name, sed expression
  [[ -z $only || $1 == "$only"* ]] || return 0
  local folder; folder=$(mktemp -d)
  cp ./*.cu ./*.cuh "$folder"
  sed -i -E "$4" "$folder/$1"
  local result
  if cmp -s "$1" "$folder/$1"; then
    result="NOT APPLIED"
  elif PALMETTE_KERNELS=$folder timeout 300 cargo test --quiet --locked -p palmette-cuda --test kernels "$2" > "$folder/out" 2>&1; then
    result=missed
  elif grep -q 'test result: FAILED' "$folder/out"; then
    result=seen
  else
    result="NOT RUN"
  fi
  local expected=seen
  [[ $3 == \(* ]] && expected=missed
  [ "$result" = "$expected" ] || failures=$((failures + 1))
  printf '%-12s %s: %s%s\n' "$result" "$1" "$3" "$([ "$result" = "$expected" ] || echo "  EXPECTED: $expected")"
  rm -r "$folder"
}

p() { fault product_portable.cu product:: "$@"; }
p "copies not waited for" 's/copies_wait<STAGES - 2>/copies_wait<STAGES - 1>/'
p "no barrier before a stage is read and another loaded" 's/^ *__syncthreads\(\);  \/\/ all have copied.*//'
p "rows of x past the end loaded" 's/m \+ row < rows : n/true : n/; s/\(there \? m \+ row : 0\)/(m + row)/'
p "rows of weights past the end loaded" 's/: n \+ row < p.n;/: true;/'
p "right side's matrices in another order" 's/lane % 8 \+ lane \/ 16 \* 8;/lane % 16;/; s/k \* 2 \+ lane \/ 8 % 2, 8/k * 2 + lane \/ 16, 8/'
p "a run does not begin at zero" 's/if \(step % of_run == 0\)/if (step == 0)/'
p "runs not added" 's/step < of_run \? sum\[i\]\[j\]\[e\]/true ? sum[i][j][e]/'
p "parts written over each other" 's/\(size_t\)part \* p.part_rows \* p.n/0/'
p "gate and up exchanged" 's/silu\(x\), y\)/silu(y), x)/'
p "gate far below zero not bounded" 's/power > 126.0f \? 126.0f : power/power/'
p "window not taken off" 's/uint32_t place = column - window\[i\]\[h\];/uint32_t place = column;/'
p "columns past the vocabulary counted" 's/return column < p.n \&\& \(/return (/'
p "maximum of one half only" 's/fmaxf\(largest\[i\]\[h\], halves/fmaxf(-INFINITY, halves/'
p "no barrier before the halves are written again" 's/^ *__syncthreads\(\);  \/\/ before the halves.*//'
p "no barrier before the stages are loaded again" 's/^ *__syncthreads\(\);  \/\/ before the stages.*//'
r() { fault rows.cu "$1" "${@:2}"; }
r rows:: "squares of a part of the row" '/embed_norm\(const/,/^}/s/squares = squares \+ v.x/squares = v.x/'
r rows:: "first part counted twice" 's/for \(int part = 1; part < n.parts/for (int part = 0; part < n.parts/'
r rows:: "parts added one by one to the row" 's/v = \{v.x \+ total.x,/v = {v.x + total.x + 1e-7f,/'
r rows:: "bias of another column" 's/h.bias\[column\]/h.bias[column % C]/'
r rows:: "rotary the other way" 's/value\[i\] = x \* h.cosines\[at\] - y/value[i] = x * h.cosines[at] + y/'
r rows:: "slot of the key for the value" 's/\(\(size_t\)~destination \* 2 \+ 1\)/((size_t)~destination * 2)/'
r rows:: "eight rows that are not in a row stored as one" 's/whole = whole \&\& h.destinations.*;/whole = whole;/'
r rows:: "eight rows at an odd place stored as one" 's/ \&\& h.destinations\[first\] % 8 == 0;/;/'
r rows:: "norm of queries for keys" 's/is_query \? h.query_norm : h.key_norm/h.query_norm/'
r product:: "no barrier before a warp's maximum is written over" '/row_sums\(const/,/^}/s/^ *__syncthreads\(\);  \/\/ before they.*//'
r product:: "tiles past the 256th left out" 's/for \(int i = threadIdx.x; i < r.tiles; i \+= ROWS_THREADS\) largest/for (int i = threadIdx.x; i < 1; i += ROWS_THREADS) largest/'
a() { fault attention_portable.cu attention:: "$@"; }
a "copies not waited for" 's/copies_wait<1>/copies_wait<2>/'
a "no barrier before a buffer is loaded again" 's/^ *__syncthreads\(\);  \/\/ before the buffer.*//'
a "no barrier after the wait" '/copies_wait<0>\(\);/{n;n;s/__syncthreads\(\);//}'
a "keys past what a row sees" 's/key < visible\[e \/ 2\]/true/'
a "factor left out of the sum" 's/sum\[h\] \*= factor;//'
a "minus infinity less minus infinity" 's/float base = most\[h\] == -INFINITY \? 0.0f : most\[h\];/float base = most[h];/'
a "row halves exchanged" 's/lane \/ 4 \+ h \* 8;/lane \/ 4 + (1 - h) * 8;/'
a "right side's matrices in another order" 's/lane % 8 \+ lane \/ 16 \* 8;/lane % 16;/'
a "last run left out of the merge" 's/\(a.visible\[row\] \+ RUN - 1\) \/ RUN/a.visible[row] \/ RUN/'
a "a total that does not fall with the maximum" 's/total\[i\]\[e\] \* w.old/total[i][e]/'
a "pages in order of memory" 's/a.pages\[r.first_page \+ page\]/r.first_page + page/'
a "own slots of the beam itself" 's/a.ancestors\[\(size_t\)token \* a.most_rows \+ row\]/(size_t)token * a.most_rows + row/'
a "query of another head" 's/group \+ packed % group;$/group + packed \/ group % group;/'
a "a page more than a run has" 's/min\(end, \(item.run \+ 1\) \* RUN\)/end/'
s() { fault select.cu select:: "$@"; }
s "ties to the higher place" 's/\(uint32_t\)~place;/(uint32_t)place;/; s/place = ~\(uint32_t\)shared.keys\[i\]/place = (uint32_t)shared.keys[i]/'
s "cut one bin short" 's/s.state\[CUT\] = bin;/s.state[CUT] = max(bin - 1, 0);/'
s "rank count takes one bit too many" 's/1u << rank % 32\) - 1/2u << rank % 32) - 1/'
s "upper bound of children" 's/e.code \+ side/e.code/'
s "no barrier before the maximum is read" '/if \(lane == 0\) shared.of_warps\[warp\] = largest;/{n;s/__syncthreads\(\);//}'
s "no barrier between maximum and sum" 's/^ *__syncthreads\(\);  \/\/ before they are written again//'
s "no barrier in prefix sums of bins" '/if \(lane == 31\) of_warps/{n;s/__syncthreads\(\);//}'
s "no barrier in the sort" '/shared.keys\[high\] = x;/{n;n;n;s/__syncthreads\(\);//}'
s "floor not asked" 's/!\(total >= s.floor\) \|\| bin_of/bin_of/'
s "order of negative scores" 's/bits >> 31 \? 0xffffffffu : 0x80000000u/0x80000000u/'
s "filter ignored at masked levels" 's/if \(rank_count\(filter, starts\[0\]\) == .*\) kept/if (false) kept/; s/if \(rank_count\(filter, starts\[0\]\) == rank_count\(filter, starts\[1\]\)\)/if (false)/'
s "capacity not checked" 's/if \(place < \(uint32_t\)s.capacity\) //'
s "bad rows not counted" 's/atomicAdd\(s.state \+ BAD, 1u\)/0/'
m() { fault masks.cu masks:: "$@"; }
m "columns past the words" 's/int columns = min\(m.columns, m.words \* 32\)/int columns = m.columns/'
m "rows without a mask" 's/if \(mask < 0\) continue;/if (mask < 0) mask = 0;/'
m "bits from the other end" 's/words\[i \/ 32\] >> i % 32/words[i \/ 32] >> (31 - i % 32)/'
d() { fault device.cuh "$@"; }
d arithmetic:: "NaN of a device becomes a number" 's/x == x \? value : x/value/'
d arithmetic:: "a coefficient of the logarithm" 's/3.3333331174e-1f/3.3333431174e-1f/'
d product:: "no swizzle" 's/\(at \^ \(row \& 7\)\)/at/'
exit $((failures > 0))
