// Calls the kernels compiled for the best instruction set this processor has.
#include "kernels.h"

namespace {

bool has_v3() {
#ifdef PM_HAVE_V3
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  return has;
#else
  return false;
#endif
}

}  // namespace

#ifdef PM_HAVE_V3
#define PM_DISPATCH(call) (has_v3() ? pm::v3::call : pm::baseline::call)
#else
#define PM_DISPATCH(call) pm::baseline::call
#endif

const char* pm_instruction_set(void) { return has_v3() ? "v3" : "baseline"; }

int64_t pm_online_scratch_bytes(const pm_online* model, const pm_chunk* chunk) {
  return PM_DISPATCH(online_scratch_bytes(*model, *chunk));
}

int32_t pm_online_learn(pm_online* model, const pm_chunk* chunk, const int64_t* order, int64_t n_order, void* scratch,
                        int64_t scratch_bytes, double* predictions, int64_t* done) {
  return PM_DISPATCH(online_learn(*model, *chunk, order, n_order, scratch, scratch_bytes, predictions, done));
}

int32_t pm_online_predict(const pm_online* model, const pm_chunk* chunk, void* scratch, int64_t scratch_bytes,
                          double* predictions) {
  return PM_DISPATCH(online_predict(*model, *chunk, scratch, scratch_bytes, predictions));
}

int32_t pm_move_products(const pm_region* from, const pm_parents* parents, const int64_t* used, int64_t n,
                         int64_t slot_bytes, int64_t tag_byte, const pm_region* to, pm_product* owners,
                         uint32_t* places) {
  return PM_DISPATCH(move_products(*from, *parents, used, n, slot_bytes, tag_byte, *to, owners, places));
}

int32_t pm_find_products(const pm_region* region, int64_t slot_bytes, int64_t tag_byte, const uint64_t* keys, int64_t n,
                         int64_t* places) {
  return PM_DISPATCH(find_products(*region, slot_bytes, tag_byte, keys, n, places));
}

int32_t pm_online_expand(const pm_online* model, const pm_chunk* chunk, void* scratch, int64_t scratch_bytes,
                         int64_t* indptr, uint32_t* columns, float* values, int64_t capacity, int64_t* done) {
  return PM_DISPATCH(
      online_expand(*model, *chunk, scratch, scratch_bytes, indptr, columns, values, capacity, done));
}

void pm_text_bounds(const char* text, int64_t size, int64_t* lines, int64_t* features, int64_t* bars) {
  PM_DISPATCH(text_bounds(text, size, lines, features, bars));
}

int32_t pm_parse_vw(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows) {
  return PM_DISPATCH(parse_vw(text, size, options, rows));
}

int32_t pm_parse_svmlight(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows) {
  return PM_DISPATCH(parse_svmlight(text, size, options, rows));
}

int32_t pm_tuples_explore(pm_tuples* tuples, const uint32_t* codes, int64_t n, const pm_tuples* lower,
                          const int32_t* parents, void* scratch) {
  return PM_DISPATCH(tuples_explore(*tuples, codes, n, lower, parents, scratch));
}

int32_t pm_tuples_rows(const pm_tuples* tuples, const uint32_t* codes, int64_t n, uint32_t* rows) {
  return PM_DISPATCH(tuples_rows(*tuples, codes, n, rows));
}

int32_t pm_tuples_count(const pm_tuples* tuples, const uint32_t* codes, const int32_t* labels, int64_t n,
                        int32_t n_classes, uint32_t* counts) {
  return PM_DISPATCH(tuples_count(*tuples, codes, labels, n, n_classes, counts));
}

int32_t pm_tuples_learn(const pm_tuples* tuples, pm_tuple_model* model, const uint32_t* codes, const int32_t* labels,
                        int64_t n, void* scratch) {
  return PM_DISPATCH(tuples_learn(*tuples, *model, codes, labels, n, scratch));
}

int32_t pm_tuples_predict(const pm_tuples* tuples, const float* weights, int64_t stride, const float* bias,
                          int32_t n_outputs, const uint32_t* codes, int64_t n, float* scores) {
  return PM_DISPATCH(tuples_predict(*tuples, weights, stride, bias, n_outputs, codes, n, scores));
}

int32_t pm_tuples_drop(const pm_tuples* tuples, const float* weights, int64_t stride, const float* bias,
                       int32_t n_outputs, const uint32_t* codes, const int32_t* labels, int64_t n, double* drops,
                       void* scratch) {
  return PM_DISPATCH(tuples_drop(*tuples, weights, stride, bias, n_outputs, codes, labels, n, drops, scratch));
}
