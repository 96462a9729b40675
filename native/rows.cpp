// Fingerprints of examples: equal ones are counted together, and the order of learning follows from what the
// examples are, not from where they stood.
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
