// One example: scores over its rows of parameters, and a step of AdaGrad on the softmax loss.
//
// With r = 1_y - P(y|x), each active parameter makes the step  G += g^2, w += eta L g / sqrt(G0 + G),  where g = r - l2 w
// and L = |log P(F|y)| is the generative preconditioner.
#pragma once
#include <cmath>

#include "tuples.h"

namespace pm {
namespace PM_ISA {

// 1 / sqrt(x), relative error below 5e-6, from multiplications alone: the same bits on every processor, and a third of
// the time of a root and a division.
template <class V, class I>
inline __attribute__((always_inline)) V inverse_root(V x) {
  I bits;
  std::memcpy(&bits, &x, sizeof x);
  bits = 0x5f375a86 - (bits >> 1);
  V y;
  std::memcpy(&y, &bits, sizeof y);
  const V half = x * 0.5f;
  y = y * (1.5f - half * y * y);
  y = y * (1.5f - half * y * y);
  return y;
}

struct Eight {
  typedef Vec<float> V;
  typedef Lanes<float>::mask I;
  static constexpr int64_t kSize = 8;
};
struct Quads {
  typedef Four V;
  typedef FourMask I;
  static constexpr int64_t kSize = 4;
};

template <class V>
inline __attribute__((always_inline)) V load_as(const float* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
inline __attribute__((always_inline)) void store_as(float* p, const V& v) {
  std::memcpy(p, &v, sizeof v);
}

// Several classes: vectors run over classes. Blocks is the number of vectors in a row of weights, 0 where it is not known
// while compiling.
template <class Width, int Blocks>
class Classes {
 public:
  using V = typename Width::V;
  using I = typename Width::I;
  static constexpr int64_t kSize = Width::kSize;

  Classes(const pm_tuple_model& model, int64_t n_tuples)
      : n_(n_tuples), blocks_(Blocks ? Blocks : model.padded / kSize), stride_(model.padded * (model.scaled ? 3 : 2)) {}

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

  template <bool Scaled, bool Decayed>
  void step(const pm_tuple_model& m, const uint32_t* rows, const float* r) const {
    update<Scaled, Decayed>(m, m.bias, r);
    for (int64_t i = 0; i < n_; ++i) update<Scaled, Decayed>(m, m.slots + int64_t{rows[i]} * stride_, r);
  }

 private:
  template <bool Scaled, bool Decayed>
  inline __attribute__((always_inline)) void update(const pm_tuple_model& m, float* slot, const float* r) const {
    const int64_t blocks = Blocks ? Blocks : blocks_;
    const int64_t padded = blocks * kSize;
    for (int64_t b = 0; b < blocks; ++b) {
      float* const at = slot + b * kSize;
      V g = load_as<V>(r + b * kSize), w = load_as<V>(at);
      if (Decayed) g -= m.l2 * w;
      const V G = load_as<V>(at + padded) + g * g;
      V step = m.eta * g * inverse_root<V, I>(G + m.G0);
      if (Scaled) step *= load_as<V>(at + 2 * padded);
      store_as<V>(at, w + step);
      store_as<V>(at + padded, G);
    }
  }

  int64_t n_, blocks_, stride_;
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

  template <bool Scaled, bool Decayed>
  void step(const pm_tuple_model& m, const uint32_t* rows, float r) const {
    single<Scaled, Decayed>(m, m.bias, r);
    int64_t i = 0;
    for (; i + 4 <= n_; i += 4) four<Scaled, Decayed>(m, rows + i, r);
    for (; i < n_; ++i) single<Scaled, Decayed>(m, m.slots + int64_t{rows[i]} * 4, r);
  }

 private:
  template <bool Scaled, bool Decayed>
  static inline __attribute__((always_inline)) Four steps(const pm_tuple_model& m, Four w, Four& G, Four L, float r) {
    Four g = Four{} + r;
    if (Decayed) g -= m.l2 * w;
    G += g * g;
    Four step = m.eta * g * inverse_root<Four, FourMask>(G + m.G0);
    if (Scaled) step *= L;
    return w + step;
  }

  template <bool Scaled, bool Decayed>
  static void single(const pm_tuple_model& m, float* slot, float r) {
    const Four s = load_as<Four>(slot);
    Four G = Four{} + s[1];
    const Four w = steps<Scaled, Decayed>(m, Four{} + s[0], G, Four{} + s[2], r);
    store_as<Four>(slot, Four{w[0], G[0], s[2], s[3]});
  }

  template <bool Scaled, bool Decayed>
  static inline __attribute__((always_inline)) void four(const pm_tuple_model& m, const uint32_t* rows, float r) {
    float* slot[4];
    for (int k = 0; k < 4; ++k) slot[k] = m.slots + int64_t{rows[k]} * 4;
    const Four a = load_as<Four>(slot[0]), b = load_as<Four>(slot[1]), c = load_as<Four>(slot[2]),
               d = load_as<Four>(slot[3]);
    const Four ab = PM_SHUFFLE(a, b, 0, 4, 1, 5), cd = PM_SHUFFLE(c, d, 0, 4, 1, 5);  // w w G G
    const Four abl = PM_SHUFFLE(a, b, 2, 6, 3, 7), cdl = PM_SHUFFLE(c, d, 2, 6, 3, 7);
    const Four L = PM_SHUFFLE(abl, cdl, 0, 1, 4, 5);
    Four G = PM_SHUFFLE(ab, cd, 2, 3, 6, 7);
    const Four w = steps<Scaled, Decayed>(m, PM_SHUFFLE(ab, cd, 0, 1, 4, 5), G, L, r);
    const Four low = PM_SHUFFLE(w, G, 0, 4, 1, 5), high = PM_SHUFFLE(w, G, 2, 6, 3, 7);  // w G w G
    store_as<Four>(slot[0], PM_SHUFFLE(low, a, 0, 1, 6, 7));
    store_as<Four>(slot[1], PM_SHUFFLE(low, b, 2, 3, 6, 7));
    store_as<Four>(slot[2], PM_SHUFFLE(high, c, 0, 1, 6, 7));
    store_as<Four>(slot[3], PM_SHUFFLE(high, d, 2, 3, 6, 7));
  }

  int64_t n_;
};

// Turns scores into r = 1_y - P(.|x); gives the loss -log P(y|x), and says whether y had the highest score.
inline double residuals(const float* s, int64_t n_classes, int64_t padded, int32_t y, float* r, bool* right) {
  float top = s[0];
  for (int64_t k = 1; k < n_classes; ++k) top = s[k] > top ? s[k] : top;
  double sum = 0;
  for (int64_t k = 0; k < n_classes; ++k) {
    const double e = std::exp(static_cast<double>(s[k] - top));
    r[k] = static_cast<float>(e);
    sum += e;
  }
  const float inverse = static_cast<float>(1 / sum);
  for (int64_t k = 0; k < n_classes; ++k) {
    r[k] *= -inverse;
    // Squares of smaller numbers would be denormal, which costs a hundred times a normal addition.
    if (r[k] > -1e-18f) r[k] = 0;
  }
  for (int64_t k = n_classes; k < padded; ++k) r[k] = 0;
  r[y] = static_cast<float>(1 - std::exp(static_cast<double>(s[y] - top)) / sum);
  *right = s[y] >= top;
  return std::log(sum) - static_cast<double>(s[y] - top);
}

}  // namespace PM_ISA
}  // namespace pm
