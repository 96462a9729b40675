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
