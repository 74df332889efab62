// States of a draft head's beams: what a level's codes are predicted from, without a decoder's pass.
//
//   s = squash(A s' + c)    s': the parent's state, A s' a product before; c: the summand of its code
//   x = h + s               h: the hidden state of the level's placeholder
//
// A warp a row, four elements a lane; each element is by itself. 256 rows of 2,048: sums of two
// runs 4 MB, codes, states and inputs 1 MB each, 2 us of an H100 (3 TB/s) behind the product's 8.
#include "extension.cuh"

constexpr int DRAFT_THREADS = 256;

struct alignas(64) DraftStates {
  const int* rows;              // in device memory
  const Extension* extensions;  // [rows]: the beam that each continues, and by which code; or null:
                                // each its own, by none
  const float* sums;            // [parts, part_rows, width]: A s' of the beams before; or null
  const bf16* before;           // [rows before, width]: s', where there are no sums; or null: 0
  const bf16* codes;            // [codes, width]: c, where there are extensions; or null
  const bf16* hidden;           // [width]: h; or null
  bf16* states;                 // [rows, width]: s; or null. Not `before`
  bf16* inputs;                 // [rows, width]: x
  int width, parts, part_rows;  // width: a multiple of 4
  int squashes;                 // by tanh, or not
};

// tanh x as 1 - 2 / (e^2x + 1): the error is of a unit in the last place of 1. NaN stays.
DEVICE float tanh_fixed(float x) {
  float power = __fmul_rn(__fadd_rn(x, x), LOG2E);
  float e = exp2_fixed(power > 126.0f ? 126.0f : power);
  return __fsub_rn(1.0f, __fdiv_rn(2.0f, __fadd_rn(e, 1.0f)));
}

DEVICE float4 four_of(const bf16* from) {
  uint2 v = *(const uint2*)from;
  return {to_float((bf16)v.x), to_float((bf16)(v.x >> 16)), to_float((bf16)v.y),
          to_float((bf16)(v.y >> 16))};
}
DEVICE void write_four(bf16* to, float4 v) {
  *(uint2*)to = uint2{pack_bf16(v.x, v.y), pack_bf16(v.z, v.w)};
}
DEVICE float4 sum_of(float4 a, float4 b) {
  return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

extern "C" __global__ void __launch_bounds__(DRAFT_THREADS, 2) draft_states(const DraftStates d) {
  int warps = DRAFT_THREADS / 32;
  for (int row = blockIdx.x * warps + threadIdx.x / 32; row < *d.rows; row += gridDim.x * warps) {
    size_t parent = row, code = 0;
    if (d.extensions) {
      parent = d.extensions[row].parent;
      code = d.extensions[row].code;
    }
    for (int i = threadIdx.x % 32 * 4; i < d.width; i += 128) {
      size_t from = parent * d.width + i, at = (size_t)row * d.width + i;
      float4 s = {0, 0, 0, 0};
      if (d.sums) {
        s = *(const float4*)(d.sums + from);
        NO_UNROLL
        for (int part = 1; part < d.parts; part++)
          s = sum_of(s, *(const float4*)(d.sums + (size_t)part * d.part_rows * d.width + from));
      } else if (d.before) {
        s = four_of(d.before + from);
      }
      if (d.codes) s = sum_of(s, four_of(d.codes + code * d.width + i));
      if (d.squashes) s = {tanh_fixed(s.x), tanh_fixed(s.y), tanh_fixed(s.z), tanh_fixed(s.w)};
      if (d.states) write_four(d.states + at, s);
      if (d.hidden) s = sum_of(four_of(d.hidden + i), s);
      write_four(d.inputs + at, s);
    }
  }
}
