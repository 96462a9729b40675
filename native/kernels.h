// The kernels as compiled for each instruction set (PM_ISA names one).
#pragma once
#include "pomona.h"

#define PM_DECLARE_KERNELS(isa)                                                                                     \
  namespace pm {                                                                                                    \
  namespace isa {                                                                                                   \
  int64_t online_scratch_bytes(const pm_online& model, const pm_chunk& chunk);                                      \
  int32_t online_learn(pm_online& model, const pm_chunk& chunk, const int64_t* order, int64_t n_order, void* memory, \
                       int64_t memory_bytes, double* predictions, int64_t* done);                                   \
  void text_bounds(const char* text, int64_t size, int64_t* lines, int64_t* features, int64_t* bars);                \
  int32_t parse_vw(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows);              \
  int32_t parse_svmlight(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows);        \
  int32_t online_predict(const pm_online& model, const pm_chunk& chunk, void* memory, int64_t memory_bytes,         \
                         double* predictions);                                                                      \
  }                                                                                                                 \
  }

PM_DECLARE_KERNELS(baseline)
PM_DECLARE_KERNELS(v3)
