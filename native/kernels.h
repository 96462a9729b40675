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
  int32_t online_expand(const pm_online& model, const pm_chunk& chunk, void* memory, int64_t memory_bytes,          \
                        int64_t* indptr, uint32_t* columns, float* values, int64_t capacity, int64_t* done);        \
  int32_t online_predict(const pm_online& model, const pm_chunk& chunk, void* memory, int64_t memory_bytes,         \
                         double* predictions);                                                                      \
  int32_t move_products(const pm_region& from, const pm_parents& parents, const int64_t* used, int64_t n,           \
                        int64_t slot_bytes, int64_t tag_byte, const pm_region& to, pm_product* owners,              \
                        uint32_t* places);                                                                          \
  int32_t find_products(const pm_region& region, int64_t slot_bytes, int64_t tag_byte, const uint64_t* keys,        \
                        int64_t n, int64_t* places);                                                                \
  int32_t tuples_explore(pm_tuples& tuples, const uint32_t* codes, int64_t n, const pm_tuples* lower,               \
                         const int32_t* parents, void* memory);                                                     \
  int32_t tuples_rows(const pm_tuples& tuples, const uint32_t* codes, int64_t n, uint32_t* rows);                    \
  int32_t tuples_count(const pm_tuples& tuples, const uint32_t* codes, const int32_t* labels, int64_t n,             \
                       int32_t n_classes, uint32_t* counts);                                                        \
  int32_t tuples_learn(const pm_tuples& tuples, pm_tuple_model& model, const uint32_t* codes, const int32_t* labels, \
                       int64_t n, void* memory);                                                                    \
  int32_t tuples_predict(const pm_tuples& tuples, const float* weights, int64_t stride, const float* bias,          \
                         int32_t n_outputs, const uint32_t* codes, int64_t n, float* scores);                       \
  int32_t tuples_drop(const pm_tuples& tuples, const float* weights, int64_t stride, const float* bias,             \
                      int32_t n_outputs, const uint32_t* codes, const int32_t* labels, int64_t n, double* drops,     \
                      void* memory);                                                                                \
  }                                                                                                                 \
  }

PM_DECLARE_KERNELS(baseline)
PM_DECLARE_KERNELS(v3)
