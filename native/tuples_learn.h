// One example: scores over its rows of parameters, and a step of AdaGrad on the softmax loss.
//
// With r = 1_y - P(y|x), each active parameter makes the step  G += g^2, w += eta L g / sqrt(G),  where g = r - l2 w and L
// is the generative preconditioner |log P(F|y)|, or 1. G begins at G0.
//
// For up to eight classes a slot is one cache line: w as float, then in 32 bits the upper halves of G and of L, as floats.
// G is rounded up with the probability of what is cut off, so that it grows right on average; w keeps all its bits.
#pragma once
#include <cmath>

#include "hash.h"
#include "tuples.h"

namespace pm {
namespace PM_ISA {

// a L / sqrt(x), where a holds kRoot already; relative error of the root below 7e-4 (Kadlec's constants). The same bits
// on every processor, and a fourth of the time of a root and a division; the error only changes the length of a step.
constexpr float kRoot = 0.703952253f;
template <class V, class I>
inline __attribute__((always_inline)) V over_root(V a, V L, V x) {
  I bits;
  std::memcpy(&bits, &x, sizeof x);
  bits = 0x5f1ffff9 - (bits >> 1);
  V y;
  std::memcpy(&y, &bits, sizeof y);
  return (a * y) * ((2.38924456f - x * y * y) * L);
}

struct Eight {
  typedef Vec<float> V;
  typedef Lanes<float>::mask I;
  typedef uint32_t Wide __attribute__((vector_size(32)));
  static constexpr int64_t kSize = 8;
};
struct Quads {
  typedef Four V;
  typedef FourMask I;
  typedef uint32_t Wide __attribute__((vector_size(16)));
  static constexpr int64_t kSize = 4;
};

template <class V>
inline __attribute__((always_inline)) V load_as(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
inline __attribute__((always_inline)) void store_as(void* p, const V& v) {
  std::memcpy(p, &v, sizeof v);
}

// Sixteen random bits a lane, the same for all rows of parameters of an example.
template <class Width>
inline typename Width::Wide rounding(uint64_t example) {
  typename Width::Wide bits = {};
  for (int64_t k = 0; k < Width::kSize; k += 4) {
    const uint64_t random = mix(example * 2 + static_cast<uint64_t>(k / 4));
    for (int64_t j = 0; j < 4; ++j) bits[k + j] = static_cast<uint32_t>(random >> (16 * j)) & 0xffffu;
  }
  return bits;
}

// Several classes: vectors run over classes. Blocks is the number of vectors in a row of weights, 0 where it is not known
// while compiling.
template <class Width, int Blocks>
class Classes {
 public:
  using Lane = Width;
  using V = typename Width::V;
  using I = typename Width::I;
  using Wide = typename Width::Wide;
  static constexpr int64_t kSize = Width::kSize;

  Classes(const pm_tuple_model& model, int64_t n_tuples)
      : n_(n_tuples), blocks_(Blocks ? Blocks : model.padded / kSize) {}

  // Sums of weights, even and odd tuples apart, so that additions do not wait for each other.
  void scores(const float* slots, int64_t stride, const float* bias, const uint32_t* rows, float* s) const {
    const int64_t blocks = Blocks ? Blocks : blocks_;
    for (int64_t b = 0; b < blocks; ++b) {
      V even = load_as<V>(bias + b * kSize), odd = {};
      int64_t i = 0;
      for (; i + 1 < n_; i += 2) {
        even += load_as<V>(slots + int64_t{rows[i]} * stride + b * kSize);
        odd += load_as<V>(slots + int64_t{rows[i + 1]} * stride + b * kSize);
      }
      if (i < n_) even += load_as<V>(slots + int64_t{rows[i]} * stride + b * kSize);
      store_as<V>(s + b * kSize, even + odd);
    }
  }

  template <bool Decayed>
  void step(const pm_tuple_model& m, const uint32_t* rows, const float* r) const {
    const int64_t blocks = Blocks ? Blocks : blocks_;
    const Wide random = rounding<Width>(m.examples);
    for (int64_t b = 0; b < blocks; ++b) {
      const V g = load_as<V>(r + b * kSize);
      update<Decayed>(m, m.bias, b, g, g * g, kRoot * m.eta * g, random);
      for (int64_t i = 0; i < n_; ++i)
        update<Decayed>(m, m.slots + int64_t{rows[i]} * 2 * blocks * kSize, b, g, g * g, kRoot * m.eta * g, random);
    }
  }

 private:
  template <bool Decayed>
  inline __attribute__((always_inline)) void update(const pm_tuple_model& m, float* slot, int64_t b, V g, V squares,
                                                    V steps, Wide random) const {
    const int64_t padded = (Blocks ? Blocks : blocks_) * kSize;
    float* const at = slot + b * kSize;
    V w = load_as<V>(at);
    if (Decayed) {
      g -= m.l2 * w;
      squares = g * g;
      steps = kRoot * m.eta * g;
    }
    const Wide both = load_as<Wide>(at + padded);
    const V G = as_floats(both & 0xffff0000u) + squares;
    w += over_root<V, I>(steps, as_floats(both << 16), G);
    store_as<V>(at, w);
    Wide bits;
    std::memcpy(&bits, &G, sizeof bits);
    store_as<Wide>(at + padded, ((bits + random) & 0xffff0000u) | (both & 0xffffu));
  }

  static inline __attribute__((always_inline)) V as_floats(const Wide& bits) {
    V v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }

  int64_t n_, blocks_;
};

// Two classes: one logit, and vectors run over tuples, four slots {w, G, L, unused} at a time.
class Logit {
 public:
  explicit Logit(int64_t n_tuples) : n_(n_tuples) {}

  float score(const float* slots, int64_t stride, const float* bias, const uint32_t* rows) const {
    float sums[4] = {bias[0], 0, 0, 0};
    for (int64_t i = 0; i < n_; ++i) sums[i & 3] += slots[int64_t{rows[i]} * stride];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }

  template <bool Decayed>
  void step(const pm_tuple_model& m, const uint32_t* rows, float r) const {
    single<Decayed>(m, m.bias, r);
    int64_t i = 0;
    for (; i + 4 <= n_; i += 4) four<Decayed>(m, rows + i, r);
    for (; i < n_; ++i) single<Decayed>(m, m.slots + int64_t{rows[i]} * 4, r);
  }

 private:
  template <bool Decayed>
  static inline __attribute__((always_inline)) Four steps(const pm_tuple_model& m, Four w, Four& G, Four L, float r) {
    Four g = Four{} + r;
    if (Decayed) g -= m.l2 * w;
    G += g * g;
    return w + over_root<Four, FourMask>(kRoot * m.eta * g, L, G);
  }

  template <bool Decayed>
  static void single(const pm_tuple_model& m, float* slot, float r) {
    const Four s = load_as<Four>(slot);
    Four G = Four{} + s[1];
    const Four w = steps<Decayed>(m, Four{} + s[0], G, Four{} + s[2], r);
    store_as<Four>(slot, Four{w[0], G[0], s[2], s[3]});
  }

  template <bool Decayed>
  static inline __attribute__((always_inline)) void four(const pm_tuple_model& m, const uint32_t* rows, float r) {
    float* slot[4];
    for (int k = 0; k < 4; ++k) slot[k] = m.slots + int64_t{rows[k]} * 4;
    const Four a = load_as<Four>(slot[0]), b = load_as<Four>(slot[1]), c = load_as<Four>(slot[2]),
               d = load_as<Four>(slot[3]);
    const Four ab = PM_SHUFFLE(a, b, 0, 4, 1, 5), cd = PM_SHUFFLE(c, d, 0, 4, 1, 5);  // w w G G
    const Four abl = PM_SHUFFLE(a, b, 2, 6, 3, 7), cdl = PM_SHUFFLE(c, d, 2, 6, 3, 7);
    const Four L = PM_SHUFFLE(abl, cdl, 0, 1, 4, 5);
    Four G = PM_SHUFFLE(ab, cd, 2, 3, 6, 7);
    const Four w = steps<Decayed>(m, PM_SHUFFLE(ab, cd, 0, 1, 4, 5), G, L, r);
    const Four low = PM_SHUFFLE(w, G, 0, 4, 1, 5), high = PM_SHUFFLE(w, G, 2, 6, 3, 7);  // w G w G
    store_as<Four>(slot[0], PM_SHUFFLE(low, a, 0, 1, 6, 7));
    store_as<Four>(slot[1], PM_SHUFFLE(low, b, 2, 3, 6, 7));
    store_as<Four>(slot[2], PM_SHUFFLE(high, c, 0, 1, 6, 7));
    store_as<Four>(slot[3], PM_SHUFFLE(high, d, 2, 3, 6, 7));
  }

  int64_t n_;
};

// exp(x) of numbers up to 0, relative error about 2e-7, from operations that give the same bits everywhere.
template <class V, class I>
inline __attribute__((always_inline)) V exp_negative(V x) {
  x = x > -87.0f ? x : -87.0f + V{};
  x = x < 0.0f ? x : V{};  // what pads the classes may be anything
  const I n = __builtin_convertvector(x * 1.44269504f - 0.5f, I);
  const V whole = __builtin_convertvector(n, V);
  const V f = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  V e = 1.98756915e-4f * f + 1.39819995e-3f;
  e = e * f + 8.33345191e-3f;
  e = e * f + 4.16657960e-2f;
  e = e * f + 1.66666655e-1f;
  e = e * f + 0.5f;
  e = e * f * f + f + 1.0f;
  I bits;
  std::memcpy(&bits, &e, sizeof bits);
  bits += n * (1 << 23);
  std::memcpy(&e, &bits, sizeof bits);
  return e;
}

// Turns scores into r = 1_y - P(.|x); gives the loss -log P(y|x), and says whether y had the highest score.
template <class Width>
inline double residuals(const float* s, int64_t n_classes, int64_t padded, int32_t y, float* r, bool* right) {
  using V = typename Width::V;
  float top = s[0];
  for (int64_t k = 1; k < n_classes; ++k) top = s[k] > top ? s[k] : top;
  for (int64_t k = 0; k < padded; k += Width::kSize)
    store_as<V>(r + k, exp_negative<V, typename Width::I>(load_as<V>(s + k) - top));
  float others = 0;
  for (int64_t k = 0; k < n_classes; ++k) others += k == y ? 0 : r[k];
  const float sum = others + r[y], share = 1 / sum;
  for (int64_t k = 0; k < padded; ++k) {
    const float p = k < n_classes ? r[k] * share : 0;
    // Squares of smaller numbers would be denormal, which costs a hundred times a normal addition.
    r[k] = p < 1e-18f ? 0 : -p;
  }
  r[y] = others * share < 1e-18f ? 0 : others * share;
  *right = s[y] >= top;
  return std::log(static_cast<double>(sum)) - static_cast<double>(s[y] - top);
}

}  // namespace PM_ISA
}  // namespace pm
