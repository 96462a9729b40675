// Vectors of eight numbers in the compiler's own extension: one instruction where the processor has it, several where
// it has not, and the same bits everywhere, because sums are always kept in eight lanes and added in one order.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace pm {
namespace PM_ISA {

constexpr int64_t kLanes = 8;

template <class Real>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float type __attribute__((vector_size(32)));
  typedef int32_t mask __attribute__((vector_size(32)));
};
template <>
struct Lanes<double> {
  typedef double type __attribute__((vector_size(64)));
  typedef int64_t mask __attribute__((vector_size(64)));
};

template <class Real>
using Vec = typename Lanes<Real>::type;

template <class Real>
inline __attribute__((always_inline)) Vec<Real> load(const Real* p) {
  Vec<Real> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class Real>
inline __attribute__((always_inline)) void store(Real* p, const Vec<Real>& v) {
  std::memcpy(p, &v, sizeof v);
}

template <class Real>
inline __attribute__((always_inline)) double sum(const Vec<Real>& v) {
#if defined(__AVX__)
  if constexpr (sizeof(Real) == sizeof(float)) {  // the same sums in fewer instructions
    const __m256 all = (__m256)v;
    const __m256d four = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(all)),
                                       _mm256_cvtps_pd(_mm256_extractf128_ps(all, 1)));
    const __m256d two = _mm256_add_pd(four, _mm256_permute_pd(four, 5));  // twice each
    return _mm_cvtsd_f64(_mm256_castpd256_pd128(two)) + _mm_cvtsd_f64(_mm256_extractf128_pd(two, 1));
  }
#endif
  return ((double(v[0]) + v[4]) + (double(v[1]) + v[5])) + ((double(v[2]) + v[6]) + (double(v[3]) + v[7]));
}

inline float root(float v) { return std::sqrt(v); }
inline double root(double v) { return std::sqrt(v); }
// Square roots of vectors. Compilers turn a loop over lanes into eight scalar roots, hence the instructions by name.
inline __attribute__((always_inline)) Vec<float> root(const Vec<float>& v) {
#if defined(__AVX__)
  return (Vec<float>)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE__)
  __m128 half[2];
  std::memcpy(half, &v, sizeof v);
  half[0] = _mm_sqrt_ps(half[0]);
  half[1] = _mm_sqrt_ps(half[1]);
  Vec<float> r;
  std::memcpy(&r, half, sizeof r);
  return r;
#else
  Vec<float> r;
  for (int64_t i = 0; i < kLanes; ++i) r[i] = std::sqrt(v[i]);
  return r;
#endif
}
inline __attribute__((always_inline)) Vec<double> root(const Vec<double>& v) {
  Vec<double> r;
  for (int64_t i = 0; i < kLanes; ++i) r[i] = std::sqrt(v[i]);
  return r;
}

// Four numbers: what is gathered at once, and the step of loops over classes.
template <class Real>
struct Quad;
template <>
struct Quad<float> {
  typedef float type __attribute__((vector_size(16)));
};
template <>
struct Quad<double> {
  typedef double type __attribute__((vector_size(32)));
};
template <class Real>
using Vec4 = typename Quad<Real>::type;
typedef Vec4<float> Four;
typedef int32_t FourMask __attribute__((vector_size(16)));

template <class Real>
inline __attribute__((always_inline)) Vec4<Real> load_quad(const Real* p) {
  Vec4<Real> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class Real>
inline __attribute__((always_inline)) void store_quad(Real* p, const Vec4<Real>& v) {
  std::memcpy(p, &v, sizeof v);
}
inline __attribute__((always_inline)) Vec4<float> root(const Vec4<float>& v) {
#if defined(__SSE__)
  return (Vec4<float>)_mm_sqrt_ps((__m128)v);
#else
  return Vec4<float>{std::sqrt(v[0]), std::sqrt(v[1]), std::sqrt(v[2]), std::sqrt(v[3])};
#endif
}
inline __attribute__((always_inline)) Vec4<double> root(const Vec4<double>& v) {
  return Vec4<double>{std::sqrt(v[0]), std::sqrt(v[1]), std::sqrt(v[2]), std::sqrt(v[3])};
}

#if defined(__clang__)
#define PM_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PM_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (::pm::PM_ISA::FourMask{i, j, k, l}))
#endif

typedef Vec<float> Octet;
typedef Lanes<float>::mask OctetMask;
#if defined(__clang__)
#define PM_SHUFFLE8(a, b, i, j, k, l, m, n, o, p) __builtin_shufflevector(a, b, i, j, k, l, m, n, o, p)
#else
#define PM_SHUFFLE8(a, b, i, j, k, l, m, n, o, p) \
  __builtin_shuffle(a, b, (::pm::PM_ISA::OctetMask{i, j, k, l, m, n, o, p}))
#endif

// The first n < 8 numbers at p, and zeros.
inline __attribute__((always_inline)) Octet load_first(const float* p, int64_t n) {
#if defined(__AVX__)
  alignas(64) static constexpr int32_t kFirst[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst + 8 - n));
  return (Octet)_mm256_maskload_ps(p, mask);
#else
  Octet v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
// 1 in lane n, zeros elsewhere.
inline __attribute__((always_inline)) Octet one_at(int64_t n) {
  static constexpr float kOne[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1};
  return load(kOne + 8 - n);
}

// out[j] = base + 16 (lower half of keys[j] & mask) for j < n; numbers behind them are written too. Lists are short: the
// compiler's own loops take the last ones one by one.
template <class Key>
inline __attribute__((always_inline)) void list_addresses(const Key* keys, int64_t n, uint64_t mask, char* base, char** out) {
  int64_t j = 0;
#if defined(__AVX2__)
  const __m256i masks = _mm256_set1_epi64x(static_cast<int64_t>(mask & 0xffffffff));
  const __m256i start = _mm256_set1_epi64x(reinterpret_cast<int64_t>(base));
  const auto four = [&](__m256i key) __attribute__((always_inline)) {
    const __m256i place = _mm256_slli_epi64(_mm256_and_si256(key, masks), 4);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + j), _mm256_add_epi64(place, start));
  };
  if constexpr (sizeof(Key) == 8) {
    for (; j + 4 <= n; j += 4) four(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + j)));
  } else {
    alignas(32) static constexpr int32_t kFirst[8] = {-1, -1, -1, -1};
    for (; j + 4 <= n; j += 4) four(_mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(keys + j))));
    const __m128i last = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kFirst + 4 - (n - j)));
    four(_mm256_cvtepu32_epi64(_mm_maskload_epi32(reinterpret_cast<const int*>(keys + j), last)));
    return;
  }
#endif
  for (; j < n; ++j) out[j] = base + 16 * (static_cast<uint32_t>(keys[j]) & mask);
}

#if defined(__AVX__)
// The four numbers at `low`, then the four at `high`.
inline __attribute__((always_inline)) Octet load_quads(const float* low, const float* high) {
  return (Octet)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
inline __attribute__((always_inline)) Four lower(Octet v) { return (Four)_mm256_castps256_ps128((__m256)v); }
inline __attribute__((always_inline)) Four upper(Octet v) { return (Four)_mm256_extractf128_ps((__m256)v, 1); }
inline __attribute__((always_inline)) unsigned bits_of(OctetMask v) {
  return static_cast<unsigned>(_mm256_movemask_ps((__m256)v));
}
#else
inline __attribute__((always_inline)) Octet load_quads(const float* low, const float* high) {
  Octet v;
  std::memcpy(&v, low, sizeof v / 2);
  std::memcpy(reinterpret_cast<char*>(&v) + sizeof v / 2, high, sizeof v / 2);
  return v;
}
inline __attribute__((always_inline)) Four lower(Octet v) {
  Four half;
  std::memcpy(&half, &v, sizeof half);
  return half;
}
inline __attribute__((always_inline)) Four upper(Octet v) {
  Four half;
  std::memcpy(&half, reinterpret_cast<const char*>(&v) + sizeof half, sizeof half);
  return half;
}
#endif
inline __attribute__((always_inline)) unsigned bits_of(FourMask v) {
#if defined(__SSE__)
  return static_cast<unsigned>(_mm_movemask_ps((__m128)v));
#else
  return (v[0] & 1u) | (v[1] & 2u) | (v[2] & 4u) | (v[3] & 8u);
#endif
}
#if !defined(__AVX__)
inline __attribute__((always_inline)) unsigned bits_of(OctetMask v) {
  FourMask half[2];
  std::memcpy(half, &v, sizeof v);
  return bits_of(half[0]) | bits_of(half[1]) << 4;
}
#endif

}  // namespace PM_ISA
}  // namespace pm
