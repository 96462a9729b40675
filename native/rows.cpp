// Fingerprints of examples: equal ones are counted together, and the order of learning follows from what the
// examples are, not from where they stood. Examples, and the features of each, in another order.
#include <algorithm>
#include <vector>

#include "hash.h"
#include "pomona.h"

namespace {

// A sum over the features, so that it does not depend on their order and the multiplications do not wait for another.
template <class Index>
uint64_t features_hash(const Index* indices, const float* values, int64_t first, int64_t stop) {
  uint64_t sum = 0;
  for (int64_t k = first; k < stop; ++k) {
    if (values[k] == 0.0f) continue;  // means the same as absence
    uint32_t bits;
    std::memcpy(&bits, &values[k], sizeof bits);
    sum += pm::fold_multiply(indices[k] ^ 0x2d358dccaa6c78a5ull, bits * 0x9e3779b97f4a7c15ull ^ 0x8bb84b93962eacc9ull);
  }
  return sum;
}

}  // namespace

int32_t pm_hash_rows(const pm_chunk* chunk, uint64_t* hashes) {
  for (int64_t e = 0; e < chunk->n; ++e) {
    const int64_t first = chunk->indptr[e], stop = chunk->indptr[e + 1];
    uint64_t h = chunk->wide ? features_hash(static_cast<const uint64_t*>(chunk->indices), chunk->values, first, stop)
                             : features_hash(static_cast<const uint32_t*>(chunk->indices), chunk->values, first, stop);
    if (chunk->labels) {
      const double label = chunk->labels[e] + 0.0;  // -0 is 0
      uint64_t bits;
      std::memcpy(&bits, &label, sizeof bits);
      h = pm::mix(h) ^ bits;
    }
    hashes[e] = pm::mix(h);
  }
  return PM_OK;
}

int32_t pm_starts_rise(const int64_t* indptr, int64_t n) {
  int64_t fallen = indptr[0] < 0;
  for (int64_t e = 0; e < n; ++e) fallen |= indptr[e + 1] < indptr[e];
  return !fallen;
}

int32_t pm_rows_rise(const pm_chunk* chunk) {
  const uint32_t* const rows = static_cast<const uint32_t*>(chunk->indices);
  for (int64_t e = 0; e < chunk->n; ++e)
    for (int64_t k = chunk->indptr[e] + 1; k < chunk->indptr[e + 1]; ++k)
      if (rows[k] <= rows[k - 1]) return 0;
  return 1;
}

int32_t pm_sort_rows(const pm_chunk* chunk, uint32_t* indices, float* values, uint16_t* fields) {
  const int64_t start = chunk->n ? chunk->indptr[0] : 0;
  const uint32_t* const rows = static_cast<const uint32_t*>(chunk->indices);
  std::vector<uint64_t> order;  // index and position as one number
  for (int64_t e = 0; e < chunk->n; ++e) {
    const int64_t first = chunk->indptr[e], count = chunk->indptr[e + 1] - first;
    if (count > int64_t{UINT32_MAX}) return PM_BAD_INPUT;
    order.resize(static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k)
      order[static_cast<size_t>(k)] = static_cast<uint64_t>(rows[first + k]) << 32 | static_cast<uint32_t>(k);
    std::sort(order.begin(), order.end());
    int64_t to = first - start;
    for (const uint64_t one : order) {
      const int64_t from = first + static_cast<uint32_t>(one);
      indices[to] = static_cast<uint32_t>(one >> 32);
      values[to] = chunk->values[from];
      if (chunk->fields) fields[to] = chunk->fields[from];
      ++to;
    }
  }
  return PM_OK;
}

int32_t pm_gather_rows(const pm_chunk* chunk, const int64_t* order, int64_t n, int64_t* indptr, void* indices,
                       float* values, uint16_t* fields, double* labels, double* weights) {
  const size_t width = chunk->wide ? sizeof(uint64_t) : sizeof(uint32_t);
  int64_t used = 0;
  indptr[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t e = order[i], first = chunk->indptr[e];
    const size_t count = static_cast<size_t>(chunk->indptr[e + 1] - first);
    if (count) {
      std::memcpy(static_cast<char*>(indices) + width * static_cast<size_t>(used),
                  static_cast<const char*>(chunk->indices) + width * static_cast<size_t>(first), width * count);
      std::memcpy(values + used, chunk->values + first, sizeof(float) * count);
      if (chunk->fields) std::memcpy(fields + used, chunk->fields + first, sizeof(uint16_t) * count);
    }
    labels[i] = chunk->labels[e];
    if (chunk->weights) weights[i] = chunk->weights[e];
    indptr[i + 1] = used += static_cast<int64_t>(count);
  }
  return PM_OK;
}
