#!/usr/bin/env bash
# Plants one fault after another into the kernels and says which the tests under emulation see.
#
#   crates/cuda/kernels/faults.sh [name of a kernel file]
#
# A test that sees none is none. Faults in parentheses change no result and must be missed. About 45 minutes of one core; needs
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
p "maximum of one half only" 's/fmaxf\(largest\[i\]\[h\], halves/fmaxf(-INFINITY, halves/'
p "no barrier before the halves are written again" 's/^ *__syncthreads\(\);  \/\/ before the halves.*//'
p "no barrier before the stages are loaded again" 's/^ *__syncthreads\(\);  \/\/ before the stages.*//'
c() { fault product.cuh product:: "$@"; }
c "parts written over each other" 's/\(size_t\)part \* p.part_rows \* p.n/0/'
c "gate and up exchanged" 's/silu\(x\), y\)/silu(y), x)/'
c "gate far below zero not bounded" 's/power > 126.0f \? 126.0f : power/power/'
c "window not taken off" 's/uint32_t place = column - window;/uint32_t place = column;/'
c "columns past the vocabulary counted" 's/return column < p.n \&\& \(/return (/'
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
r int8:: "factor of another row for integers" 's/float of_row = n.row_factors\[row\]/float of_row = n.row_factors[0]/'
r rows:: "factor of another head's column" 's/h.column_factors\[column\]/h.column_factors[column % C]/'
r rows:: "largest of three values in four" 's/max\(magnitude\(v.z\), magnitude\(v.w\)\)/magnitude(v.z)/'
r rows:: "bytes of a word exchanged" 's/low_byte\(v.y, rounding.inverse\) << 8/low_byte(v.y, rounding.inverse) << 16/; s/low_byte\(v.z, rounding.inverse\) << 16/low_byte(v.z, rounding.inverse) << 8/'
r rows:: "rounded without the weight" '/most = max\(max/,/^}/s/= normed\(i\)/= *(const float4*)(n.x + at + i)/'
r rows:: "first part of integers alone" '/if \(h.row_factors\)/,/scaled_sum/s/part < h.parts/part < 1/'
q() { fault int8.cu int8:: "$@"; }
q "copies not waited for" 's/copies_wait<STAGES - 2>/copies_wait<STAGES - 1>/'
q "no barrier before a stage is read and another loaded" 's/^ *__syncthreads\(\);  \/\/ all have copied.*//'
q "no barrier before the stages are loaded again" 's/^ *__syncthreads\(\);  \/\/ the stages are free.*//'
q "the next part's integers in the last tile" 's/ \&\& k < of_part;/;/'
q "right side's matrices in another order" 's/lane % 8 \+ lane \/ 16 \* 8;/lane % 16;/; s/k \* 2 \+ lane \/ 8 % 2, 8/k * 2 + lane \/ 16, 8/'
q "parts written over each other" 's/\(size_t\)part \* p.part_rows \* p.n/0/'
q "factor of the gate for up" 's/p.w_factors\[column \+ 1\]/p.w_factors[column]/'
e() { fault int8.cuh "$@"; }
e int8:: "largest of a lane for the row's" 's/^ *for \(int d = 16; d; d >>= 1\) most = .*//'
e int8:: "a factor where the inverse is infinite" 's/\{is_zero \? 0.0f : /{/'
e int8:: "rounded a quarter lower" 's/__fmul_rn\(value, inverse\), 12/__fmul_rn(value, inverse) - 0.25f, 12/'
e rows:: "signs kept in magnitudes" 's/ \& 0x7fffffff\)/)/'
a() { fault attention_portable.cu attention:: "$@"; }
a "copies not waited for" 's/copies_wait<1>/copies_wait<2>/'
a "no barrier before a buffer is loaded again" 's/^ *__syncthreads\(\);  \/\/ before the buffer.*//'
a "no barrier after the wait" '/copies_wait<0>\(\);/{n;n;s/__syncthreads\(\);//}'
a "right side's matrices in another order" 's/lane % 8 \+ lane \/ 16 \* 8;/lane % 16;/'
a "last run left out of the merge" 's/\(a.visible\[row\] \+ RUN - 1\) \/ RUN/a.visible[row] \/ RUN/'
a "pages in order of memory" 's/a.pages\[r.first_page \+ page\]/r.first_page + page/'
a "own slots of the beam itself" 's/a.ancestors\[\(size_t\)token \* a.most_rows \+ row\]/(size_t)token * a.most_rows + row/'
t() { fault attention.cuh attention:: "$@"; }
t "keys past what a row sees" 's/column \+ n \* 8 \+ e % 2 < visible\[e \/ 2\]/true/'
t "factor left out of the sum" 's/sum\[h\] \*= factor;//'
t "minus infinity less minus infinity" 's/float base = most\[h\] == -INFINITY \? 0.0f : most\[h\];/float base = most[h];/'
t "rows of a warp exchanged" 's/int packed = first \+ h \* 8;/int packed = first + (1 - h) * 8;/'
t "a total that does not fall with the maximum" 's/out\[i\]\[e\] \* w.old/out[i][e]/'
t "query of another head" 's/group \+ packed % group;$/group + packed \/ group % group;/'
t "a page more than a run has" 's/min\(end, \(item.run \+ 1\) \* RUN\)/end/'
h() { fault product_hopper.cu hopper "$@"; }
h "no wait for the last products" 's/products_wait<0>\(\);//'
h "stage given back before its products end" 's/products_wait<1>\(\);/products_wait<2>();/'
h "no fence before products" 's/products_begin\(\);//'
h "no wait for empty stages" 's/barrier_wait\(empty \+ at.stage, at.parity \^ 1\);//'
h "no wait for full stages" 's/^ *barrier_wait\(full \+ at.stage, at.parity\);//'
h "parity of empty stages inverted" 's/at.parity \^ 1\)/at.parity)/'
h "one arrival a warpgroup" 's/READERS = 8/READERS = 2/; s/lane == 0\) barrier_arrive/threadIdx.x % WARPGROUP == 0) barrier_arrive/'
h "too few arrivals" 's/READERS = 8/READERS = 4/'
h "bytes of the weights not expected" 's/barrier_expect\(full \+ at.stage, STAGE_BYTES\)/barrier_expect(full + at.stage, X_BYTES)/'
h "second warpgroup reads the first's rows" 's/consumer \* 64 \* TILE_K \* 2/0/'
h "descriptor goes on by 64 bytes" 's/x \+ k \* 32/x + k * 64/'
h "a run does not begin at zero" 's/step > 0 \|\| k > 0/true/'
h "runs not added" 's/run == 0 \? sum/true ? sum/'
h "rows of a warp exchanged" 's/lane \/ 4 \+ h \* 8, n/lane \/ 4 + (1 - h) * 8, n/'
h "maximum of two lanes only" 's/^ *largest = fmaxf\(largest, __shfl_xor_sync\(~0u, largest, 2\)\);//'
h "halves of a tile in one sum" 's/side \* 8 \+ j/j * 2 + side/'
h "no row of a warpgroup, and stages kept" 's/^ *give_back\(at.stage\);//'
i() { fault hopper.cuh hopper "$@"; }
i "no barrier after the barriers are made" 's/^ *__syncthreads\(\);  \/\/ before anyone.*//'
i "no fence of the barriers" 's/^ *barriers_made\(\);//'
i "parity of a ring not changed" 's/parity \^= 1;//'
i "eight rows of another stride" 's/8 \* 128 >> 4/8 * 64 >> 4/'
b() { fault attention_hopper.cu attention:: "$@"; }
b "no wait before scores are read" '/multiply_64\(score/,/products_wait/s/products_wait<0>\(\);//'
b "no wait before a page is given back" '/multiply_64\(run.out/,/products_wait/s/products_wait<0>\(\);//'
b "no wait for empty pages" 's/barrier_wait\(empty \+ at.stage, at.parity \^ 1\);//'
b "one arrival a warpgroup" 's/PAGE_READERS = 8/PAGE_READERS = 2/; s/lane == 0\) barrier_arrive/threadIdx.x % WARPGROUP == 0) barrier_arrive/'
b "bytes of values not expected" 's/barrier_expect\(full \+ at.stage, 2 \* /barrier_expect(full + at.stage, /'
b "second half of keys over the first" 's/keys \+ half \* PAGE \* BOX_COLUMNS \* 2,/keys,/'
b "descriptor of values goes on by 64 bytes" 's/values \+ k \* 32/values + k * 64/'
b "pages in order of memory" 's/a.pages\[t.request.first_page \+ page\]/(t.request.first_page + page)/'
b "halves of a query exchanged" 's/side \* 2 \+ h\]/h * 2 + side]/'
b "scores added to the page's before" 's/k % 4 \* 32\), k > 0\)/k % 4 * 32), true)/'
b "the last run of several not added" "s/ \|\| page == t.pages - 1//"
s() { fault select.cu select:: "$@"; }
s "ties to the higher place" 's/\(uint32_t\)~place;/(uint32_t)place;/; s/place = ~\(uint32_t\)shared.keys\[i\]/place = (uint32_t)shared.keys[i]/'
s "cut one bin short" 's/s.state\[CUT\] = bin;/s.state[CUT] = max(bin - 1, 0);/'
s "rank count takes one bit too many" 's/1u << rank % 32\) - 1/2u << rank % 32) - 1/'
s "upper bound of children" 's/at.end, code \+ 1\)/at.end, code)/'
s "no barrier before the maximum is read" '/if \(lane == 0\) shared.of_warps\[warp\] = largest;/{n;s/__syncthreads\(\);//}'
s "no barrier between maximum and sum" 's/^ *__syncthreads\(\);  \/\/ before they are written again//'
s "no barrier in prefix sums of bins" '/if \(lane == 31\) of_warps/{n;s/__syncthreads\(\);//}'
s "no barrier in the sort" '/shared.keys\[high\] = x;/{n;n;n;s/__syncthreads\(\);//}'
s "floor not asked" 's/!\(total >= s.floor\) \|\| bin_of/bin_of/'
s "order of negative scores" 's/bits >> 31 \? 0xffffffffu : 0x80000000u/0x80000000u/'
s "filter ignored at masked levels" 's/has \&\& allows_any\(filter, start\[0\], start\[1\]\)/has/'
s "capacity not checked" 's/if \(place < \(uint32_t\)s.capacity\) //'
s "bad rows not counted" 's/atomicAdd\(s.state \+ BAD, 1u\)/0/'
s "rows of the plan and not of the device" 's/s.live \? min\(.*\) : s.rows/s.rows/'
s "masks not cleared" 's/s.masks\[i\] = 0;/;/'
s "last piece of a range left out" 's/piece - 1\) \/ piece/0) \/ piece/'
s "first piece of a range for each" 's/span.begin \+= piece \* size;//'
s "(turns begin anew with a batch)" 's/turn -= pieces;/turn = blockIdx.x;/'
s "no barrier in sums of pieces" '/shared.of_warps\[threadIdx.x \/ 32\] = end;/{n;s/__syncthreads\(\);//}'
s "the first of equal words sets its own bit alone" 's/if \(its_word == word\) bits \|= other;//'
s "neighbouring words taken for one" 's/if \(its_word == word\) bits/bits/'
s "exclusions not asked of ranges" 's/if \(f.num_excluded \&\& count\) count -= .*;//'
s "exclusions not asked of ranks" 's/return place == \(uint32_t\)f.num_excluded/return true || place == (uint32_t)f.num_excluded/'
s "exclusions of the ranges before counted" 's/f.num_excluded = end - begin;/f.num_excluded = end;/'
s "place of a listed prefix for its rank" 's/to.begin = level.starts\[place\];/to.begin = place;/'
s "codes of 32 bits read as 16" 's/return level.wide \? \(\(const uint32_t/return false ? ((const uint32_t/'
s "a neighbour of a listed code taken" 's/place < span.end \&\& code_at\(level, place\) == code/place < span.end/'
s "filtered children kept" 's/if \(!allows_any\(filter, to.begin, to.end\)\)/if (false)/'
s "first column ignored" 's/\[s.first \+ code\]/[code]/'
s "columns past the codes left out of the sum" 's/for \(int i = threadIdx.x; i < s.columns; i/for (int i = threadIdx.x; i < s.codes; i/'
s "beams continue their own place" 's/b.most_rows \+ e.parent\]/b.most_rows + row]/'
s "slots of a pass among another's rows" 's/pass \* b.pass_rows \+ row/pass * b.most_rows + row/'
s "rows that were not found" 's/if \(row < count\) e = /e = /'
l() { fault select.cu callers:: "$@"; }
l "requests of a caller share their logits" 's/c.logits \+ \(size_t\)i \* c.rows \* c.columns/c.logits/'
l "scores of a first level taken by request" 's/size_t row = c.found \? \(size_t\)i \* c.rows : 0/size_t row = (size_t)i * c.rows/'
l "one filter taken by request" 's/c.own_filters \? \(size_t\)i \* c.segments : 0/(size_t)i * c.segments/'
l "candidates of the level before for its extensions" 's/\(size_t\)i \* 4 \+ FOUND : nullptr/(size_t)i * 4 + COUNT : nullptr/'
l "log-probabilities normalised by what was there" 's/c.normalisers\[i\] = 0;/;/'
l "beams that were not found written" 's/if \(i < found\) e = c.best\[place\];/e = c.best[place];/'
l "tokens of another request" 's/\(\(size_t\)request \* c.rows \+ e.parent\) \* c.level/(size_t)e.parent * c.level/'
l "codes for tokens" 's/c.first \+ \(int\)e.code : 0/(int)e.code : 0/'
m() { fault masks.cu masks:: "$@"; }
m "columns past the words" 's/int columns = min\(m.columns, m.words \* 32\)/int columns = m.columns/'
m "rows without a mask" 's/if \(mask < 0\) continue;/if (mask < 0) mask = 0;/'
m "columns of a caller past its words left alone" 's/first \/ 32 < words \? (.*) : 0;/first \/ 32 < words ? \1 : 15;/'
m "masks past the last one read" 's/mask < m.num_masks \? m.words : 0/m.words/'
m "rows outside of the logits written" 's/row < 0 \|\| row >= m.num_rows \|\| //'
m "four columns written where a row ends" 's/first \+ MASK_COLUMNS <= m.columns \&\& //'
m "four columns written where they are not aligned" 's/ \&\& \(size_t\)to % sizeof\(Columns\) == 0//'
m "masks one behind another" 's/\(size_t\)mask \* m.mask_stride/(size_t)mask * m.words/'
m "rows one behind another" 's/\(size_t\)row \* m.row_stride/(size_t)row * m.columns/'
m "bits from the other end" 's/words\[i \/ 32\] >> i % 32/words[i \/ 32] >> (31 - i % 32)/'
n() { fault draft.cu draft:: "$@"; }
n "beams continue their own place" 's/parent = d.extensions\[row\].parent;/parent = row;/'
n "summand of another code" 's/code = d.extensions\[row\].code;/code = row;/'
n "parts of the sums left out" 's/int part = 1; part < d.parts/int part = 1; part < 1/'
n "parts one behind another" 's/part \* d.part_rows \* d.width/part * *d.rows * d.width/'
n "states with the hidden state" 's/if \(d.states\) write_four\(d.states \+ at, s\);//; s/write_four\(d.inputs \+ at, s\);/if (d.states) write_four(d.states + at, s); write_four(d.inputs + at, s);/'
n "exponential of x for that of 2 x" 's/__fadd_rn\(x, x\), LOG2E/x, LOG2E/'
n "large values are no numbers" 's/power > 126.0f \? 126.0f : power/power/'
d() { fault device.cuh "$@"; }
d arithmetic:: "NaN of a device becomes a number" 's/x == x \? value : x/value/'
d arithmetic:: "a coefficient of the logarithm" 's/3.3333331174e-1f/3.3333431174e-1f/'
d product:: "no swizzle" 's/\(at \^ \(row \& 7\)\)/at/'
exit $((failures > 0))
