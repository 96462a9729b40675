// Slots of features, read and written one or eight at a time. A value that is larger than all before changes the
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

// Eight slots one behind another. Two fill a vector, so the lanes hold the slots 0, 2, 4, 6, 1, 3, 5, 7.
template <class Real>
struct SlotsInOrder {
  Slot<Real>* first;
  static constexpr int64_t of_lane(int64_t lane) { return 2 * lane - lane / 4 * 7; }
  inline __attribute__((always_inline)) Slot<Real>* operator()(int lane) const { return first + of_lane(lane); }
};
// Values of features in the order in which the lanes hold their slots.
template <class SlotAt>
inline __attribute__((always_inline)) Octet in_lanes(const SlotAt&, Octet x) { return x; }
inline __attribute__((always_inline)) Octet in_lanes(const SlotsInOrder<float>&, Octet x) {
  return PM_SHUFFLE8(x, x, 0, 2, 4, 6, 1, 3, 5, 7);
}

template <class Real, class Way>
class Slots {
 protected:
  using V = Vec<Real>;
  using S = Slot<Real>;

  explicit Slots(pm_online& model) : m_(model), way_(AnyWay{model}) {}

  struct Sums {
    V total, squares;  // of w x and of x^2
    double rescaled_total, rescaled_squares;  // of the features whose scale has grown

    Sums() { total = squares = V{}, rescaled_total = rescaled_squares = 0; }  // each by itself: `rep stos` takes long

    inline __attribute__((always_inline)) void add(const V& w, const V& x) {
      total += w * x;
      squares += x * x;
    }
    void add_rescaled(Real w, Real x) {
      rescaled_total += static_cast<double>(w * x);
      rescaled_squares += static_cast<double>(x * x);
    }
    double all() const { return sum<Real>(total) + rescaled_total; }
    double all_squares() const { return sum<Real>(squares) + rescaled_squares; }
  };

  // Where the slot of feature j of a run is: one behind another, in a list, or found by key. eight(j): those of j and the
  // seven features behind it, by lane; feature(k): whose slot is in lane k, counted from the start of the run.
  template <class SlotOf>
  struct Eight {
    SlotOf slot;
    int64_t first;
    inline __attribute__((always_inline)) S* operator()(int lane) const { return slot(first + lane); }
  };
  struct InOrder {
    S* first;
    inline __attribute__((always_inline)) S* operator()(int64_t j) const { return first + j; }
    inline __attribute__((always_inline)) SlotsInOrder<Real> eight(int64_t j) const { return {first + j}; }
    static int64_t feature(int64_t k) { return (k & ~int64_t{7}) + SlotsInOrder<Real>::of_lane(k & 7); }
  };
  struct Listed {
    S* const* list;
    inline __attribute__((always_inline)) S* operator()(int64_t j) const { return list[j]; }
    inline __attribute__((always_inline)) Eight<Listed> eight(int64_t j) const { return {*this, j}; }
    static int64_t feature(int64_t k) { return k; }
  };
  struct ByKey {
    S* slots;
    const uint32_t* keys;
    uint64_t base, mask;
    inline __attribute__((always_inline)) S* operator()(int64_t j) const { return slots + ((base + keys[j]) & mask); }
    inline __attribute__((always_inline)) Eight<ByKey> eight(int64_t j) const { return {*this, j}; }
    static int64_t feature(int64_t k) { return k; }
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
      if (way_.adaptive()) value.G *= shrink * shrink;
      else value.w *= shrink;
      if (keeps_) value.w *= kept(growth);
    } else {
      born_ = true;
    }
    rescaled_ = true;
    slot.s = value.s = 1 / size;
    return std::copysign(Real(1), x);
  }

  // Reads eight slots. Which values are larger than ever, or the first, is noted in `marks`; they count as zero until
  // they are rescaled, one by one: a branch here for the few that are would be hard to foresee.
  template <class SlotAt>
  inline __attribute__((always_inline)) void gather_eight(SlotAt at, Octet x, float* w, float* G,
                                                          float* scaled_x, uint8_t* marks, Sums& sums) {
    const Octet r0 = two(at, 0), r1 = two(at, 1), r2 = two(at, 2), r3 = two(at, 3);
    const Octet t0 = PM_SHUFFLE8(r0, r1, 0, 8, 1, 9, 4, 12, 5, 13), t1 = PM_SHUFFLE8(r2, r3, 0, 8, 1, 9, 4, 12, 5, 13);
    const Octet weights = PM_SHUFFLE8(t0, t1, 0, 1, 8, 9, 4, 5, 12, 13);
    store<float>(w, weights);
    store<float>(G, PM_SHUFFLE8(t0, t1, 2, 3, 10, 11, 6, 7, 14, 15));
    if (way_.normalized()) {
      const Octet t2 = PM_SHUFFLE8(r0, r1, 2, 10, 3, 11, 6, 14, 7, 15), t3 = PM_SHUFFLE8(r2, r3, 2, 10, 3, 11, 6, 14, 7, 15);
      const Octet s = PM_SHUFFLE8(t2, t3, 0, 1, 8, 9, 4, 5, 12, 13), small = x * s;
      const OctetMask grown = (small > 1.0f) | (small < -1.0f) | (s == 0.0f);
      *marks = static_cast<uint8_t>(bits_of(grown));
      x = grown ? Octet{} : small;
      sums.total += grown ? Octet{} : weights * small;  // does not wait for x
      sums.squares += x * x;
    } else {
      sums.add(weights, x);
    }
    store<float>(scaled_x, x);
  }
  // The slots of lane k, in the lower half, and of lane k + 4.
  template <class SlotAt>
  static inline __attribute__((always_inline)) Octet two(const SlotAt& at, int k) {
    return load_quads(&at(k)->w, &at(k + 4)->w);
  }
  static inline __attribute__((always_inline)) Octet two(const SlotsInOrder<float>& at, int k) { return load(&at(k)->w); }

  // Calls visit(k) for every mark k of so many bytes; seven bytes behind them are zero.
  template <class Visit>
  static inline __attribute__((always_inline)) void each_mark(const uint8_t* marks, int64_t bytes, Visit&& visit) {
    for (int64_t b = 0; b < bytes; b += 8) {
      uint64_t bits;
      std::memcpy(&bits, marks + b, sizeof bits);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
      bits = __builtin_bswap64(bits);
#endif
      for (; bits; bits &= bits - 1) visit(8 * b + __builtin_ctzll(bits));
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
  static inline __attribute__((always_inline)) void write_eight(const SlotsInOrder<float>& at, Octet w, Octet G) {
    const Octet low = PM_SHUFFLE8(w, G, 0, 8, 1, 9, 4, 12, 5, 13), high = PM_SHUFFLE8(w, G, 2, 10, 3, 11, 6, 14, 7, 15);
    const Octet r0 = two(at, 0), r1 = two(at, 1), r2 = two(at, 2), r3 = two(at, 3);
    store<float>(&at(0)->w, PM_SHUFFLE8(low, r0, 0, 1, 10, 11, 4, 5, 14, 15));
    store<float>(&at(1)->w, PM_SHUFFLE8(low, r1, 2, 3, 10, 11, 6, 7, 14, 15));
    store<float>(&at(2)->w, PM_SHUFFLE8(high, r2, 0, 1, 10, 11, 4, 5, 14, 15));
    store<float>(&at(3)->w, PM_SHUFFLE8(high, r3, 2, 3, 10, 11, 6, 7, 14, 15));
  }
  // w and G of two slots. They are written whole: the next example may load one before a part of it that was stored has
  // reached the cache.
  static inline __attribute__((always_inline)) void write_two(Four pairs, Slot<float>& first, Slot<float>& second) {
    const Four a = load_quad(&first.w), b = load_quad(&second.w);
    store_quad<float>(&first.w, PM_SHUFFLE(pairs, a, 0, 1, 6, 7));
    store_quad<float>(&second.w, PM_SHUFFLE(pairs, b, 2, 3, 6, 7));
  }

  pm_online& m_;
  const Way way_;
  bool rescaled_ = false;  // whether a scale grew in this example
  bool born_ = false;      // whether one of the last run did that was zero
  bool keeps_ = false;     // whether a weight keeps more than what follows the scale of its feature
};

}  // namespace PM_ISA
}  // namespace pm
