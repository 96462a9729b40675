// apple: eight products at once, those that belong to others left out.
#pragma once
#if defined(__AVX2__) && defined(__BMI2__)
#include <immintrin.h>

#include <cstdint>

namespace pm {
namespace PM_ISA {

// Which of eight numbers come first when those without a bit are left out.
struct Compression {
  alignas(64) uint8_t lanes[256][8];
  constexpr Compression() : lanes() {
    for (int bits = 0; bits < 256; ++bits)
      for (int lane = 0, n = 0; lane < 8; ++lane)
        if (bits >> lane & 1) lanes[bits][n++] = static_cast<uint8_t>(lane);
  }
};
constexpr Compression kCompression;

// Multiplies eight features, and keeps the products that have a bit: at `count`, one behind another.
template <class Real, bool hashed>
struct Eights {
  const uint32_t *where, *rows;
  const Real* x;
  uint32_t *places, *product_rows;
  Real* products;

  inline __attribute__((always_inline)) int64_t keep(int64_t k, uint64_t bits, int64_t count, __m256i base,
                                                     __m256i mask, __m256 a) const {
    const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kCompression.lanes[bits])));
    const auto kept = [&](__m256i v) { return _mm256_permutevar8x32_epi32(v, lanes); };
    const __m256i to = _mm256_add_epi32(base, load(where + k));
    store(places + count, kept(hashed ? _mm256_and_si256(to, mask) : to));
    const __m256 x_k = _mm256_loadu_ps(reinterpret_cast<const float*>(x + k));
    _mm256_storeu_ps(reinterpret_cast<float*>(products + count), _mm256_permutevar8x32_ps(_mm256_mul_ps(a, x_k), lanes));
    if (hashed) store(product_rows + count, kept(load(rows + k)));
    return __builtin_popcountll(bits);
  }
  static __m256i load(const uint32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(uint32_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
};

}  // namespace PM_ISA
}  // namespace pm
#endif
