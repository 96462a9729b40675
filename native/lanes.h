// Vectors of eight numbers in the compiler's own extension: one instruction where the processor has it, several where
// it has not, and the same bits everywhere, because sums are always kept in eight lanes and added in one order.
#pragma once
#include <cstdint>
#include <cstring>

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
  return ((double(v[0]) + v[4]) + (double(v[1]) + v[5])) + ((double(v[2]) + v[6]) + (double(v[3]) + v[7]));
}

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourMask __attribute__((vector_size(16)));

#if defined(__clang__)
#define PM_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PM_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (::pm::PM_ISA::FourMask{i, j, k, l}))
#endif

inline __attribute__((always_inline)) Four load4(const float* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline __attribute__((always_inline)) void store4(float* p, Four v) { std::memcpy(p, &v, sizeof v); }

}  // namespace PM_ISA
}  // namespace pm
