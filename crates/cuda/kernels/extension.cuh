// An extension of a beam, as selection writes it and the next level reads it.
#pragma once
#include "device.cuh"

struct Extension {
  float score;
  uint32_t parent, code;
};
