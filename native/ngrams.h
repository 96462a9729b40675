// n-grams and skip-grams over a sequence of words with ids.
#pragma once
#include <cstdint>

#include "hash.h"

namespace pm {

// Id of an n-gram and one more word. Depends on the order of the words, unlike the id of a product.
inline uint64_t extend_gram(uint64_t gram, uint64_t word) { return mix(gram) + word; }

// Calls add(gram id, value, first word, words) for every n-gram of 2 … ngrams words out of n, with at most `skips`
// words left out inside it. Bit i of `words`: word first + i + 1 belongs to it, so ngrams + skips ≤ 16.
// The value is the product of the words' values. Stops when add returns false, and returns false then.
template <class Add>
struct Grams {
  const uint64_t* ids;
  const float* values;
  int64_t n;
  Add& add;

  bool from(int64_t first, int64_t last, uint64_t gram, double value, uint32_t words, int ngrams, int skips) const {
    for (int skipped = 0; skipped <= skips && last + 1 + skipped < n; ++skipped) {
      const int64_t next = last + 1 + skipped;
      const uint64_t id = extend_gram(gram, ids[next]);
      const double product = value * static_cast<double>(values[next]);
      const uint32_t bits = words | 1u << (next - first - 1);
      if (!add(id, product, first, bits)) return false;
      if (ngrams > 2 && !from(first, next, id, product, bits, ngrams - 1, skips - skipped)) return false;
    }
    return true;
  }
};

template <class Add>
bool for_each_gram(const uint64_t* ids, const float* values, int64_t n, int ngrams, int skips, Add add) {
  const Grams<Add> grams{ids, values, n, add};
  for (int64_t first = 0; first < n && ngrams > 1; ++first)
    if (!grams.from(first, first, ids[first], static_cast<double>(values[first]), 0, ngrams, skips)) return false;
  return true;
}

}  // namespace pm
