// Learning with one output (regression, binary classification): gather the slots of an example into arrays, compute on
// vectors, scatter. All features are scaled by the largest value seen, so that nothing overflows and the update is
//   G += h (dloss/dp)^2 x^2,   w += u m x / sqrt(G),   m = sqrt(T / S),   S = sum of h |x|^2,   T = sum of h.
#pragma once
#include <cmath>
#include <type_traits>

#include "example.h"
#include "lanes.h"
#include "loss.h"
#include "slots.h"
#include "steps.h"

namespace pm {
namespace PM_ISA {

constexpr int64_t kFeaturesAhead = 64, kIndicesAhead = 128;

template <class Real, class Way>
class Single : Slots<Real, Way> {
 public:
  using V = Vec<Real>;
  using S = Slot<Real>;

  Single(pm_online& model, char* memory, int64_t max_features, int64_t max_expanded)
      : Slots<Real, Way>(model), example_(model, memory, max_features, max_expanded) {
    Real* const start = reinterpret_cast<Real*>(memory + (Example<Real>::bytes(model, max_features, max_expanded) + 63) / 64 * 64);
    const int64_t step = (max_expanded + 1 + 3 * kLanes) / 16 * 16 + 16;  // the intercept, and lanes of nothing behind runs
    w_ = start;
    G_ = start + step;
    x_ = start + 2 * step;
    at_ = reinterpret_cast<S**>(start + 3 * step);
    product_at_ = at_ + max_features + 1 + 2 * kLanes;
    born_at_ = reinterpret_cast<uint32_t*>(product_at_ + products_listed(model, max_expanded));
    marks_ = reinterpret_cast<uint8_t*>(born_at_ + (model.parents ? max_expanded : 0));
    nothing_.s = 1;
  }
  static int64_t bytes(const pm_online& model, int64_t max_features, int64_t max_expanded) {
    return Example<Real>::bytes(model, max_features, max_expanded) + 128 +
           3 * (max_expanded + 1 + 4 * 16) * static_cast<int64_t>(sizeof(Real)) +
           (max_features + 1 + 2 * kLanes + products_listed(model, max_expanded)) * static_cast<int64_t>(sizeof(S*)) +
           (model.parents ? max_expanded : 0) * static_cast<int64_t>(sizeof(uint32_t)) + max_expanded / kLanes + 2 * kLanes;
  }

  // apple: room for the slots of all products of an example, and of those that are asked for behind them.
  static int64_t products_listed(const pm_online& model, int64_t max_expanded) {
    return model.parents ? max_expanded + kPlacesAhead + 2 * kLanes : 0;
  }

  Example<Real>& example() { return example_; }

  // Scaled dot product of the loaded example; learning first rescales the features whose values have grown.
  inline __attribute__((always_inline)) double dot(bool learning) {
    if constexpr (sizeof(Real) == sizeof(float))
      if (in_octets()) return learning ? dot_of_octets<true>() : dot_of_octets<false>();
    return dot_one_by_one(learning);
  }

  // As Vowpal Wabbit predicts: with the scales as they were, even where a value is larger. Nothing changes.
  double peer_dot() const {
    double total = m_.intercept ? intercept()->w : 0;
    example_.each_run([&](const Run<Real>& run) {
      for (int64_t j = 0; j < run.count; ++j) {
        const S& slot = region(run)[place(run, j)];
        total += static_cast<double>(slot.w * (run.a * run.x[j] * (way_.normalized() ? slot.s : 1)));
      }
    });
    return total;
  }

  // apple: the products of the example that were not seen before, or may not have been.
  NewProducts new_products() const {
    if (way_.normalized() && in_octets()) return {n_born_ > 0, born_at_, n_born_};
    return {born_ || !way_.normalized(), nullptr, 0};
  }
  // Features of the example, products and the intercept among them.
  int64_t expanded() const { return n_features_; }

  // One gradient step from the prediction of all features.
  inline __attribute__((always_inline)) void update(const Point& at, double h) {
    const double d = derivative(at);
    if (way_.moments()) add_moments(d, h);
    const Real move = step(at, d, h, 0, n_, squares_, Scales<Way>::of_all(way_, m_));
    finish_update(h, h * d * d > 0, move, move);
  }

  // The prediction from the sum of all, residual products counting as much as they have earned.
  double weighed(double whole) const {
    return way_.residual() ? base_dot_ + m_.product_gain * (whole - base_dot_) : whole;
  }
  bool has_products() const { return n_ > n_base_; }

  // What the base features alone predict, once the example was gathered.
  double base_dot() const { return base_dot_; }

  // The base features make a step from what they predict alone, the products one from what they predict `in_full`.
  void update_apart(const Point& base, const Point& full, const Point& whole, double h) {
    if (n_ == n_base_) return update(whole, h);
    const double d = derivative(base), rest = derivative(full);
    if (way_.moments()) add_moments(derivative(whole), h);
    const Real share = static_cast<Real>(PM_PRODUCT_SHARE);
    const Real products = share * step(full, rest, h, n_base_, n_, squares_ - base_squares_, Scales<Way>::of_products(way_, m_));
    const Real move = step(base, d, h, 0, n_base_, base_squares_, Scales<Way>::of_all(way_, m_));
    finish_update(h, h * (d * d + rest * rest) > 0, move, products);
  }

  void update_ftrl(const Point& at, double h) {
    const double slope = derivative(at), d = h * slope;
    if (way_.moments()) add_moments(slope, h);
    if (d == 0) return;
    const auto one = [&](S& slot, double g, bool penalized) {
      slot.s = 1;
      ftrl(m_, slot.w, slot.G, slot.z, g, penalized);
    };
    if (m_.intercept) one(*intercept(), d, false);
    example_.each_run([&](const Run<Real>& run) {
      for (int64_t j = 0; j < run.count; ++j) one(region(run)[place(run, j)], d * run.a * run.x[j], true);
    });
  }

  // Asks for the slots of a later example while the loaded one is gathered, so that they are there when needed.
  void announce(const pm_chunk& c, int64_t e) {
    if (m_.regions[0].hashed && !m_.parents && !c.wide && !example_.keyed()) return;  // known when it is loaded
    upcoming_ = {example_.places(c), c.indptr[e], c.indptr[e + 1], c.indptr[c.n], c.wide != 0};
  }
  void prefetch_announced() {
    const pm_region& r = m_.regions[0];
    const S* const slots = static_cast<const S*>(r.slots);
    const uint64_t mask = mask_of(r);
    for (; upcoming_.next < upcoming_.stop; ++upcoming_.next) {
      const uint64_t key = upcoming_.wide ? *upcoming_.at<uint64_t>() : *upcoming_.at<uint32_t>();
      __builtin_prefetch(slots + (static_cast<uint32_t>(key) & mask), 1);
    }
  }
  bool prefetches() const { return m_.regions[0].n_slots * sizeof(S) > kCached; }

 private:
  // Whether features are gathered eight at a time.
  bool in_octets() const { return sizeof(Real) == sizeof(float) && !way_.regularized(); }

  using typename Slots<Real, Way>::Sums;
  using typename Slots<Real, Way>::InOrder;
  using typename Slots<Real, Way>::Listed;
  using typename Slots<Real, Way>::ByKey;
  using Slots<Real, Way>::m_;
  using Slots<Real, Way>::way_;
  using Slots<Real, Way>::keeps_;
  using Slots<Real, Way>::rescaled_;
  using Slots<Real, Way>::born_;

  // What some of the features, from prediction `at` with the derivative d, are moved by; their x become directions.
  inline __attribute__((always_inline)) Real step(const Point& at, double d, double h, int64_t first, int64_t last,
                                                  double squares, const Scales<Way>& scales) {
    const double g2 = h * d * d;
    if (!(g2 > 0)) return 0;
    scales.add(h, squares);
    const double H = step_size(way_, m_) * h * scales.mean();
    const double q = way_.adaptive() ? directions(first, last, static_cast<Real>(g2)) : squares;
    return static_cast<Real>(way_.invariant() && q > 0 ? invariant_step(at, H, q) : -d * H);
  }

  inline __attribute__((always_inline)) void finish_update(double h, bool learns, Real base, Real products) {
    now_ = m_.clock;
    if (way_.regularized()) m_.clock += h * clock_step(m_, step_size(way_, m_), Scales<Way>::of_all(way_, m_).mean());
    if (learns || rescaled_ || way_.regularized()) scatter(base, products);
  }

  void add_moments(double derivative, double h) {
    const Real slope = static_cast<Real>(derivative);
    example_.add_moments(&slope, 1, h);
  }

  S* intercept() const { return static_cast<S*>(m_.intercept); }
  S* region(const Run<Real>& run) const { return static_cast<S*>(m_.regions[run.degree - 1].slots); }
  uint64_t place(const Run<Real>& run, int64_t j) const { return example_.place_of(run, j); }
  // Whether the slots of the run are neighbours: in a hashed region some may stand at its end and others at its beginning.
  bool in_a_row(const Run<Real>& run) const {
    return run.neighbours() && place(run, 0) + static_cast<uint64_t>(run.count) <= m_.regions[run.degree - 1].n_slots;
  }
  __attribute__((noinline)) double dot_one_by_one(bool learning) {
    n_ = 0;
    rescaled_ = false;
    const auto gather = [&](const Run<Real>& run) {
      keeps_ = keeps(way_, m_, run.degree);
      double* const touched = m_.regions[run.degree - 1].touched;
      const int64_t first = n_, bytes = run.count / 8 + 1;
      const auto one = [&](int64_t j, bool grows) {
        const uint64_t at = place(run, j);
        n_ = first + j;
        return gather_one(region(run)[at], way_.regularized() ? touched + at : nullptr, run.a * run.x[j], learning, grows);
      };
      std::memset(marks_, 0, static_cast<size_t>(bytes) + sizeof(uint64_t));
      for (int64_t j = 0; j < run.count; ++j) marks_[j / 8] |= static_cast<uint8_t>(!one(j, false) << j % 8);
      this->each_mark(marks_, bytes, [&](int64_t j) { one(j, true); });
      n_ = first + run.count;
    };
    gather(example_.linear());
    if (m_.intercept) gather_one(*intercept(), nullptr, Real(1), learning, true);
    n_features_ = n_;
    end_with_nothing();
    n_ = whole_lanes(n_);
    Sums sums;
    for (int64_t k = 0; k < n_; k += kLanes) sums.add(load(w_ + k), load(x_ + k));
    end_base(sums);
    born_ = false;
    example_.each_product(gather);
    n_features_ += n_ - n_base_;
    end_with_nothing();
    for (int64_t k = n_base_; k < n_; k += kLanes) sums.add(load(w_ + k), load(x_ + k));
    return finish(sums);
  }

  static int64_t whole_lanes(int64_t n) { return (n + kLanes - 1) & -kLanes; }
  // Fills what the last vector has behind the last number.
  void end_with_nothing() {
    if (n_ % kLanes == 0) return;
    for (int64_t k = n_; k < n_ + kLanes; ++k) w_[k] = x_[k] = 0, G_[k] = 1;
  }
  // The base features, which fill whole vectors, have been gathered.
  inline __attribute__((always_inline)) void end_base(const Sums& sums) {
    n_base_ = n_;
    if (way_.residual()) base_dot_ = sums.all(), base_squares_ = sums.all_squares();
  }
  inline __attribute__((always_inline)) double finish(const Sums& sums) {
    squares_ = sums.all_squares();
    return sums.all();
  }

  // Whether it is done: where x is larger than ever, or the first, and `grows` is false, it counts as zero for now. Scales
  // grow when all slots of a run were read, here as for eight at a time: two features may share a slot.
  bool gather_one(S& slot, double* touched, Real x, bool learning, bool grows) {
    S value = slot;
    if (touched && value.w != 0) {
      const double speed = way_.adaptive() ? (value.G > 0 ? 1 / std::sqrt(static_cast<double>(value.G)) : 0) : 1;
      value.w = regularized(value.w, speed * (m_.clock - *touched), m_.l1, m_.l2);
    }
    const bool done = grows || !way_.normalized() || (value.s > 0 && std::fabs(x * value.s) <= 1);
    if (!done) x = 0;
    else if (way_.normalized()) x = learning ? this->template scaled<true>(value, slot, x) : this->template scaled<false>(value, slot, x);
    w_[n_] = value.w, G_[n_] = value.G, x_[n_++] = x;
    return done;
  }

  // ---- eight features at a time ----
  template <bool learning>
  inline __attribute__((always_inline)) double dot_of_octets() {
    Sums sums;
    n_ = n_features_ = n_born_ = 0;
    rescaled_ = false;
    gather_linear<learning>(example_.linear(), sums);
    end_base(sums);
    born_ = false;
    if (example_.has_products()) {
      example_.each_product([&](const Run<Real>& run) { gather_products<learning>(run, sums); });
      end_with_nothing();
    }
    return finish(sums);
  }

  struct Nothing {  // to ask for ahead
    void operator()(int64_t) const {}
  };

  template <bool learning>
  inline __attribute__((always_inline)) void gather_linear(const Run<Real>& run, Sums& sums) {
    keeps_ = keeps(way_, m_, 1);
    linear_in_a_row_ = in_a_row(run);
    if (linear_in_a_row_) return gather_at<learning, true>(run, InOrder{region(run) + place(run, 0)}, Nothing{}, sums);
    list_slots(run, at_);
    if (m_.intercept) at_[run.count] = intercept();
    gather_at<learning, true>(run, Listed{at_}, Nothing{}, sums);
  }

  uint64_t mask_of(const pm_region& r) const { return r.hashed ? r.n_slots - 1 : ~uint64_t{0}; }

  // Lists the slots of a run, then slots of nothing: addresses are made four at once, and serve twice.
  void list_slots(const Run<Real>& run, S** at) {
    char *const start = reinterpret_cast<char*>(region(run) + run.base), **const out = reinterpret_cast<char**>(at);
    const uint64_t mask = mask_of(m_.regions[run.degree - 1]);
    run.ids ? list_addresses(run.ids, run.count, mask, start, out) : list_addresses(run.keys, run.count, mask, start, out);
    for (int64_t k = 0; k < kLanes; ++k) at[run.count + k] = &nothing_;
  }

  template <bool learning>
  __attribute__((noinline)) void gather_products(const Run<Real>& run, Sums& sums) {
    const pm_region& r = m_.regions[run.degree - 1];
    S* const slots = region(run);
    const uint64_t mask = mask_of(r), next = run.next_base;
    keeps_ = keeps(way_, m_, run.degree);
    if (in_a_row(run)) return gather_at<learning, false>(run, InOrder{slots + place(run, 0)}, Nothing{}, sums);
    const bool far = r.n_slots * sizeof(S) > kCached;
    // What is asked for is inlined by force: a function that does nothing else counts as one without effect.
    if (m_.parents) {  // one run, whose slots lie behind base 0
      list_slots(run, product_at_);
      const Listed slot{product_at_};
      if (!far || run.count <= run.ahead || !run.ahead) return gather_at<learning, false>(run, slot, Nothing{}, sums);
      S* const* const later = product_at_ + run.ahead;
      std::fill(product_at_ + run.count + kLanes, product_at_ + run.count + run.ahead, &nothing_);
      return gather_at<learning, false>(run, slot, [=](int64_t j) __attribute__((always_inline)) {
        for (int64_t k = j; k < j + 4; ++k) __builtin_prefetch(later[k], 1);
      }, sums);
    }
    const ByKey slot{slots, run.keys, run.base, mask};
    if (next == run.base || !far) return gather_at<learning, false>(run, slot, Nothing{}, sums);
    const uint32_t* const later = run.keys;
    gather_at<learning, false>(run, slot, [=](int64_t j) __attribute__((always_inline)) {
      for (int64_t k = j; k < j + 4; ++k) __builtin_prefetch(slots + ((next + later[k]) & mask), 1);
    }, sums);
  }

  // `ask` is called with every fourth feature. The intercept follows the linear part.
  template <bool learning, bool linear, class SlotOf, class Ask>
  inline __attribute__((always_inline)) void gather_at(const Run<Real>& run, SlotOf slot, Ask ask, Sums& sums) {
    const int64_t count = run.count;
    int64_t j = 0;
    const Octet a = Octet{} + run.a;
    const float* const values = run.x;
    float *const w = w_ + n_, *const G = G_ + n_, *const x = x_ + n_;
    const bool unit = linear && m_.intercept;
    uint8_t* marks = marks_;
    Sums all = sums;  // a copy, which can stay in registers
    const auto gather = [&](auto eight, Octet value) __attribute__((always_inline)) {
      this->gather_eight(eight, in_lanes(eight, value), w + j, G + j, x + j, marks++, all);
    };
    for (; j + 8 <= count; j += 8) {
      ask(j);
      ask(j + 4);
      gather(slot.eight(j), linear ? load(values + j) : a * load(values + j));
    }
    const int64_t rest = count - j;
    if (rest >= 4) ask(j);
    if (rest || unit) {
      S* eight[8];
      const Octet last = load_first(values + j, rest);
      gather(last_eight<linear>(slot, j, rest, eight).eight(0), linear ? (unit ? last + one_at(rest) : last) : a * last);
    }
    if (way_.normalized()) {
      std::memset(marks, 0, sizeof(uint64_t));
      this->each_mark(marks_, marks - marks_, [&](int64_t k) {
        const int64_t feature = k < j ? slot.feature(k) : k;
        S& of = feature < count ? *slot(feature) : *intercept();
        S value = of;
        if (!linear && m_.parents && value.s == 0) born_at_[n_born_++] = static_cast<uint32_t>(feature);
        x[k] = this->template scaled<learning>(value, of, feature < count ? run.a * values[feature] : Real(1));
        w[k] = value.w, G[k] = value.G;
        all.add_rescaled(w[k], x[k]);
      });
    }
    n_ += lanes_of<linear>(run);
    n_features_ += count + unit;
    sums = all;
  }

  // Where vectors are loaded that were stored as such, the numbers need not wait to reach the cache: so the linear part,
  // and all products of apple, fill whole ones.
  template <bool linear>
  int64_t lanes_of(const Run<Real>& run) const {
    return linear || m_.parents ? whole_lanes(run.count + (linear && m_.intercept)) : run.count;
  }

  // The slots of the last features, fewer than eight, the intercept behind the linear part, and slots of nothing.
  template <bool linear>
  static Listed last_eight(Listed slot, int64_t j, int64_t, S**) { return {slot.list + j}; }
  template <bool linear, class SlotOf>
  inline __attribute__((always_inline)) Listed last_eight(SlotOf slot, int64_t j, int64_t rest, S** eight) {
    for (int64_t k = 0; k < kLanes; ++k) eight[k] = &nothing_;
    if (rest)
      for (int64_t k = 0; k < kLanes - 1; ++k) {  // no branch for each: how many there are is hard to foresee
        S* const one = slot(j + std::min(k, rest - 1));
        eight[k] = k < rest ? one : eight[k];
      }
    if (linear && m_.intercept) eight[rest] = intercept();
    return {eight};
  }

  // From features to directions: x becomes x / sqrt(G) with the new G. The answer: what a unit step does to the prediction.
  // The slots of the announced example are asked for on the way: there is time while roots are taken.
  double directions(int64_t first, int64_t last, Real g2) {
    if (upcoming_.next >= upcoming_.stop) return directions(first, last, g2, Nothing{});
    return upcoming_.wide ? directions_while_asking<uint64_t>(first, last, g2)
                          : directions_while_asking<uint32_t>(first, last, g2);
  }
  template <class Index>
  double directions_while_asking(int64_t first, int64_t last, Real g2) {
    const pm_region& r = m_.regions[0];
    const S* const slots = static_cast<const S*>(r.slots);
    const uint64_t mask = mask_of(r);
    const Index* const indices = static_cast<const Index*>(upcoming_.indices);
    int64_t next = upcoming_.next;
    const int64_t stop = std::min(upcoming_.stop, upcoming_.end - kLanes + 1);
    const double moves = directions(first, last, g2, [&](int64_t) __attribute__((always_inline)) {
      if (next >= stop) return;
      __builtin_prefetch(indices + next + kIndicesAhead);
#pragma GCC unroll 8
      for (int64_t k = 0; k < kLanes; ++k)
        __builtin_prefetch(slots + (static_cast<uint32_t>(indices[next + k]) & mask), 1);
      next += kLanes;
    });
    upcoming_.next = next;
    return moves;
  }
  template <class Ask>
  inline __attribute__((always_inline)) double directions(int64_t first, int64_t last, Real g2, Ask ask) {
    V moves = {};
    Real *const xs = x_, *const Gs = G_;
    for (int64_t k = first; k < last; k += kLanes) {
      ask(k);
      const V x = load(xs + k), xx = x * x, G = load(Gs + k) + g2 * xx;
      store(Gs + k, G);
      const V inverse = G > 0 ? 1 / root(G) : V{};
      moves += xx * inverse;
      store(xs + k, x * inverse);
    }
    return sum<Real>(moves);
  }

  // Makes the steps of base features and of products, and writes the slots back. (Scales were written when they grew.)
  inline __attribute__((always_inline)) void scatter(Real base, Real products) {
    if constexpr (sizeof(Real) == sizeof(float)) {
      if (in_octets()) {
        n_ = 0;
        scatter_linear(example_.linear(), base);
        if (example_.has_products())
          example_.each_product([&](const Run<Real>& run) { scatter_products(run, products); });
        return;
      }
    }
    scatter_one_by_one(base, products);
  }
  __attribute__((noinline)) void scatter_one_by_one(Real base, Real products) {
    for (int64_t k = 0; k < n_; k += kLanes)
      store(w_ + k, load(w_ + k) + (k < n_base_ ? base : products) * load(x_ + k));
    n_ = 0;
    const auto write = [&](const Run<Real>& run) {
      double* const touched = m_.regions[run.degree - 1].touched;
      for (int64_t j = 0; j < run.count; ++j) {
        const uint64_t at = place(run, j);
        scatter_one(region(run)[at], way_.regularized() ? touched + at : nullptr);
      }
    };
    write(example_.linear());
    if (m_.intercept) scatter_one(*intercept(), nullptr);
    n_ = n_base_;
    example_.each_product(write);
  }

  // Where slots stand was found out when they were gathered.
  inline __attribute__((always_inline)) void scatter_linear(const Run<Real>& run, Real u) {
    if (linear_in_a_row_) return scatter_at<true>(run, InOrder{region(run) + place(run, 0)}, u);
    scatter_at<true>(run, Listed{at_}, u);
  }
  __attribute__((noinline)) void scatter_products(const Run<Real>& run, Real u) {
    const pm_region& r = m_.regions[run.degree - 1];
    if (in_a_row(run)) return scatter_at<false>(run, InOrder{region(run) + place(run, 0)}, u);
    if (m_.parents) return scatter_at<false>(run, Listed{product_at_}, u);
    scatter_at<false>(run, ByKey{region(run), run.keys, run.base, mask_of(r)}, u);
  }

  template <bool linear, class SlotOf>
  inline __attribute__((always_inline)) void scatter_at(const Run<Real>& run, SlotOf slot, Real u) {
    const int64_t count = run.count;
    int64_t j = 0;
    const float *const ws = w_ + n_, *const Gs = G_ + n_, *const xs = x_ + n_;
    const auto write = [&](auto eight) __attribute__((always_inline)) {
      this->write_eight(eight, load(ws + j) + u * load(xs + j), load(Gs + j));
    };
    for (; j + 8 <= count; j += 8) write(slot.eight(j));
    if (j < count || (linear && m_.intercept)) {
      S* eight[8];
      write(last_eight<linear>(slot, j, count - j, eight).eight(0));
    }
    n_ += lanes_of<linear>(run);
  }

  void scatter_one(S& slot, double* touched) {
    slot.w = w_[n_], slot.G = G_[n_++];
    if (touched) *touched = now_;  // its share of this example's shrinking is still to come
  }

  Example<Real> example_;
  Upcoming upcoming_;
  int64_t n_ = 0, n_base_ = 0, n_features_ = 0;  // numbers in the arrays; those of base features; those of features
  double now_ = 0, squares_ = 0;  // squares_: of the scaled features, the intercept's 1 among them
  double base_dot_ = 0, base_squares_ = 0;
  bool linear_in_a_row_ = false;  // whether the slots of the linear part are neighbours
  S nothing_{};
  Real *w_, *G_, *x_;
  S** at_;          // slots of the linear part,
  S** product_at_;  // and of products, in apple
  uint32_t* born_at_;    // apple: which products of the example had not been seen, in single precision
  int64_t n_born_ = 0;
  uint8_t* marks_;  // of a run: a bit for each feature whose scale is to grow
};

}  // namespace PM_ISA
}  // namespace pm
