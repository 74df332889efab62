// Rounding of rows to 8 bits, and what sums of such integers stand for: as palmette-model, to the
// bit.
//
// A row is integers from -127 to 127 and a factor, by which the largest magnitude is 127.
#pragma once
#include "device.cuh"

struct Rounding {
  float factor;   // what an integer of the row stands for
  float inverse;  // what its values are multiplied by
};

// As integers, magnitudes have their order, and NaN comes last.
DEVICE int magnitude(float value) { return (int)(__float_as_uint(value) & 0x7fffffff); }

// The rounding of a row, a warp: `most` is the largest magnitude that a lane has seen.
DEVICE Rounding row_rounding(int most) {
  for (int d = 16; d; d >>= 1) most = max(most, __shfl_xor_sync(~0u, most, d));
  float largest = __uint_as_float(most), inverse = __fdiv_rn(127.0f, largest);
  // Rows of 0, and of values whose inverse is infinite, are 0.
  bool is_zero = inverse == INFINITY;
  return {is_zero ? 0.0f : __fdiv_rn(largest, 127.0f), is_zero ? 0.0f : inverse};
}

// The low byte of a value over its row's factor, rounded to nearest even: added to 1.5 · 2^23, a
// small number leaves its nearest integer in the lowest bits.
DEVICE uint32_t low_byte(float value, float inverse) {
  return __float_as_uint(__fadd_rn(__fmul_rn(value, inverse), 12582912.0f)) & 0xff;
}

// What an exact sum of 8-bit integers stands for.
DEVICE float scaled_sum(int sum, float of_row, float of_column) {
  return __fmul_rn((float)sum, __fmul_rn(of_row, of_column));
}
