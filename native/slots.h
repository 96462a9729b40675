// Slots of features, read and written one, four or eight at a time. A value that is larger than all before changes the
// scale of its feature on the way.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lanes.h"
#include "pomona.h"
#include "steps.h"

namespace pm {
namespace PM_ISA {

template <class Real>
struct Slot {
  Real w, G, s, z;
};

template <class Real>
class Slots {
 protected:
  using V = Vec<Real>;
  using S = Slot<Real>;

  explicit Slots(pm_online& model) : m_(model) {}

  struct Sums {
    V total{}, squares{};  // of w x and of x^2

    inline __attribute__((always_inline)) void add(const V& w, const V& x) {
      total += w * x;
      squares += x * x;
    }
  };

  // x divided by the largest |x| seen. When that grows while learning, the sum of squared gradients shrinks with it.
  template <bool learning>
  inline Real scaled(S& value, S& slot, Real x) {
    const Real small = x * value.s;
    if (value.s > 0 && small <= 1 && small >= -1) return small;
    const Real size = std::fabs(x);
    if (!(size >= Tiny<Real>::value)) return 0;
    if (!learning) return value.s > 0 ? std::copysign(keeps_ ? kept(std::fabs(small)) : Real(1), x) : Real(0);
    if (value.s > 0) {
      const Real growth = std::fabs(small), shrink = 1 / growth;
      if (m_.adaptive) value.G *= shrink * shrink;
      else value.w *= shrink;
      if (keeps_) value.w *= kept(growth);
    } else {
      born_ = true;
    }
    rescaled_ = true;
    slot.s = value.s = 1 / size;
    return std::copysign(Real(1), x);
  }

  template <bool learning>
  inline __attribute__((always_inline)) void gather_four(S* s0, S* s1, S* s2, S* s3, Four x, bool normalized,
                                                         float* w, float* G, float* scaled_x) {
    const Four r0 = load_quad(&s0->w), r1 = load_quad(&s1->w), r2 = load_quad(&s2->w), r3 = load_quad(&s3->w);
    const Four t0 = PM_SHUFFLE(r0, r1, 0, 4, 1, 5), t1 = PM_SHUFFLE(r2, r3, 0, 4, 1, 5);
    store_quad<float>(w, PM_SHUFFLE(t0, t1, 0, 1, 4, 5));
    store_quad<float>(G, PM_SHUFFLE(t0, t1, 2, 3, 6, 7));
    if (!normalized) return store_quad<float>(scaled_x, x);
    const Four t2 = PM_SHUFFLE(r0, r1, 2, 6, 3, 7), t3 = PM_SHUFFLE(r2, r3, 2, 6, 3, 7);
    const Four s = PM_SHUFFLE(t2, t3, 0, 1, 4, 5), small = x * s;
    store_quad<float>(scaled_x, small);
    const auto grown = (small > 1.0f) | (small < -1.0f) | ((s == 0.0f) & (x != 0.0f));
    if (any(grown)) {
      S* const at[4] = {s0, s1, s2, s3};
      grow<learning>(at, x, s, small, grown, w, G, scaled_x);
    }
  }

#if !defined(__AVX__)
  template <bool learning, class SlotAt>
  inline __attribute__((always_inline)) void gather_eight(SlotAt at, Octet x, bool normalized, float* w, float* G,
                                                          float* scaled_x, Sums& sums) {
    gather_four<learning>(at(0), at(1), at(2), at(3), lower(x), normalized, w, G, scaled_x);
    gather_four<learning>(at(4), at(5), at(6), at(7), upper(x), normalized, w + 4, G + 4, scaled_x + 4);
    sums.add(load(w), load(scaled_x));
  }
#else
  // As gather_four, for eight slots: the first four lie in the lower halves of vectors, the others in the upper.
  template <bool learning, class SlotAt>
  inline __attribute__((always_inline)) void gather_eight(SlotAt at, Octet x, bool normalized, float* w, float* G,
                                                          float* scaled_x, Sums& sums) {
    const Octet r0 = load_quads(&at(0)->w, &at(4)->w), r1 = load_quads(&at(1)->w, &at(5)->w);
    const Octet r2 = load_quads(&at(2)->w, &at(6)->w), r3 = load_quads(&at(3)->w, &at(7)->w);
    const Octet t0 = PM_SHUFFLE8(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13), t1 = PM_SHUFFLE8(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13);
    Octet weights = PM_SHUFFLE8(t0, t1, 0, 1, 8, 9, 4, 5, 12, 13);
    store<float>(w, weights);
    store<float>(G, PM_SHUFFLE8(t0, t1, 2, 3, 10, 11, 6, 7, 14, 15));
    if (!normalized) {
      store<float>(scaled_x, x);
      return sums.add(weights, x);
    }
    const Octet t2 = PM_SHUFFLE8(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15), t3 = PM_SHUFFLE8(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);
    const Octet s = PM_SHUFFLE8(t2, t3, 0, 1, 8, 9, 4, 5, 12, 13);
    Octet small = x * s;
    store<float>(scaled_x, small);
    const auto grown = (small > 1.0f) | (small < -1.0f) | ((s == 0.0f) & (x != 0.0f));
    if (__builtin_expect(any(grown), 0)) {
      S* const slots[8] = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
      grow_eight<learning>(slots, x, s, small, grown, w, G, scaled_x);
      weights = load(w), small = load(scaled_x);
    }
    sums.add(weights, small);
  }

  // Some of eight values are larger than ever.
  template <bool learning>
  __attribute__((noinline)) void grow_eight(S* const* at, Octet x, Octet s, Octet small, OctetMask grown, float* w,
                                            float* G, float* scaled_x) {
    if (learning && !meets_twice(at, bits_of(grown)))
      return rescale(at, x, s, small, grown, w, G, scaled_x);
    for (int half = 0; half < 8; half += 4) {
      const Four quad = {x[half], x[half + 1], x[half + 2], x[half + 3]};
      gather_four<learning>(at[half], at[half + 1], at[half + 2], at[half + 3], quad, true, w + half, G + half,
                            scaled_x + half);
    }
  }
  // Whether a slot whose scale grows stands among the eight once more.
  static bool meets_twice(S* const* at, unsigned grown) {
    bool twice = false;
    for (; grown; grown &= grown - 1) {
      const int k = __builtin_ctz(grown);
      int times = 0;
      for (int i = 0; i < 8; ++i) times += at[i] == at[k];
      twice |= times > 1;
    }
    return twice;
  }
#endif

  // Some of four values are larger than ever.
  template <bool learning, class Mask>
  __attribute__((noinline)) void grow(S* const* at, Four x, Four s, Four small, Mask grown, float* w, float* G,
                                      float* scaled_x) {
    const bool twice = at[0] == at[1] || at[0] == at[2] || at[0] == at[3] || at[1] == at[2] || at[1] == at[3] ||
                       at[2] == at[3];
    if (learning && !twice) return rescale(at, x, s, small, grown, w, G, scaled_x);
    for (int k = 0; k < 4; ++k) {
      S value = *at[k];
      scaled_x[k] = scaled<learning>(value, *at[k], x[k]);
      w[k] = value.w, G[k] = value.G;
    }
  }

  // As `scaled` does, for four or eight different slots of which some see a larger value than ever.
  template <class Values, class Mask>
  inline __attribute__((always_inline)) void rescale(S* const* at, Values x, Values s, Values small, Mask grown, float* w,
                                                     float* G, float* scaled_x) {
    const Values one = Values{} + 1.0f, size = x < 0.0f ? -x : x, growth = small < 0.0f ? -small : small;
    const Values shrink = one / growth, scale = one / size;
    const Mask grows = grown & (size >= Tiny<float>::value), before = grows & (s > 0.0f);
    const auto write = [](float* to, const Values& values) { std::memcpy(to, &values, sizeof values); };
    const auto multiply = [&](float* at, const Values& factor) {
      Values values;
      std::memcpy(&values, at, sizeof values);
      write(at, before ? values * factor : values);
    };
    write(scaled_x, grows ? (x < 0.0f ? -one : one) : grown ? Values{} : small);
    if (m_.adaptive) multiply(G, shrink * shrink);
    else multiply(w, shrink);
    if (keeps_) multiply(w, kept(growth));
    born_ |= bits_of(grows) != bits_of(before);
    for (unsigned which = bits_of(grows); which; which &= which - 1) {
      const int k = __builtin_ctz(which);
      at[k]->s = scale[k];
      rescaled_ = true;
    }
  }

  // w and G of eight slots.
  template <class SlotAt>
  static inline __attribute__((always_inline)) void write_eight(SlotAt at, Octet w, Octet G) {
    const Octet low = PM_SHUFFLE8(w, G, 0, 8, 1, 9, 4, 12, 5, 13), high = PM_SHUFFLE8(w, G, 2, 10, 3, 11, 6, 14, 7, 15);
    write_two(lower(low), *at(0), *at(1));
    write_two(lower(high), *at(2), *at(3));
    write_two(upper(low), *at(4), *at(5));
    write_two(upper(high), *at(6), *at(7));
  }
  // w and G of two slots. They are written whole: the next example may load one before a part of it that was stored has
  // reached the cache.
  static inline __attribute__((always_inline)) void write_two(Four pairs, Slot<float>& first, Slot<float>& second) {
    const Four a = load_quad(&first.w), b = load_quad(&second.w);
    store_quad<float>(&first.w, PM_SHUFFLE(pairs, a, 0, 1, 6, 7));
    store_quad<float>(&second.w, PM_SHUFFLE(pairs, b, 2, 3, 6, 7));
  }

  pm_online& m_;
  bool rescaled_ = false;  // whether a scale grew in this example
  bool born_ = false;      // whether one of the last run did that was zero
  bool keeps_ = false;     // whether a weight keeps more than what follows the scale of its feature
};

}  // namespace PM_ISA
}  // namespace pm
