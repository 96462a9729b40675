// Learning with several outputs (classes): the weights of a feature for all classes lie side by side, padded to a
// multiple of four, and vectors run over classes. Slots are changed in place.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "example.h"
#include "lanes.h"
#include "loss.h"
#include "steps.h"

namespace pm {
namespace PM_ISA {

// Share of the summed squares that counts. It only sets the unit of the learning rate: with this value 0.5 is a good
// default for softmax too.
constexpr double kSharedEvidence = 1.0 / 8;
constexpr int64_t kSlotsAhead = 8;  // between asking for a slot and meeting its feature

template <class Real>
class Multi {
 public:
  using V = Vec4<Real>;

  Multi(pm_online& model, char* memory, int64_t max_features, int64_t max_expanded)
      : m_(model), way_{model}, example_(model, memory, max_features, max_expanded), K_(model.n_outputs), padded_(padded(K_)) {
    char* const start = memory + (Example<Real>::bytes(model, max_features, max_expanded) + 63) / 64 * 64;
    odds_of_ = reinterpret_cast<double*>(start);
    slot_ = reinterpret_cast<Real**>(odds_of_ + padded_);
    x_ = reinterpret_cast<Real*>(slot_ + (max_expanded + 8) / 8 * 8);
    score_ = x_ + (max_expanded + 16) / 16 * 16;
    g2_ = score_ + padded_, q_ = g2_ + padded_, u_ = q_ + padded_, base_score_ = u_ + padded_;
    half_score_ = base_score_ + padded_, direction_ = half_score_ + padded_;
  }
  static int64_t padded(int64_t K) { return (K + 3) / 4 * 4; }
  static int64_t bytes(const pm_online& model, int64_t max_features, int64_t max_expanded) {
    const int64_t K = model.n_outputs;
    return Example<Real>::bytes(model, max_features, max_expanded) + 256 +
           padded(K) * static_cast<int64_t>(sizeof(double)) + (max_expanded + 16) * static_cast<int64_t>(8 + sizeof(Real)) +
           (max_expanded + 7) * padded(K) * static_cast<int64_t>(sizeof(Real));
  }

  Example<Real>& example() { return example_; }
  int64_t expanded() const { return n_; }
  NewProducts new_products() const { return {born_ || !m_.normalized, nullptr, 0}; }

  void dot(bool learning) {
    n_ = 0;
    for (int64_t k = 0; k < padded_; ++k) score_[k] = g2_[k] = u_[k] = 0;
    if (m_.intercept) meet(static_cast<Real*>(m_.intercept), nullptr, Real(1), learning);
    meet_run(example_.linear(), learning);
    n_base_ = n_;
    add_scores(0, n_base_);
    if (m_.residual) std::copy(score_, score_ + padded_, base_score_);
    example_.each_product([&](const Run<Real>& run) { meet_run(run, learning); });
    add_scores(n_base_, n_);
    compared_ = false;
    if (!m_.residual) return;
    std::copy(score_, score_ + padded_, half_score_);
    count_products(m_.product_gain);
  }

  double score(int64_t k) const { return clipped(static_cast<double>(score_[k])); }

  // Loss of the scores for class `label`; a label outside the classes belongs to none of them.
  double loss(int64_t label) {
    double total = 0;
    if (m_.loss != PM_SOFTMAX) {
      for (int64_t k = 0; k < K_; ++k) total += value(against(k, label));
      return total;
    }
    compare_scores();
    for (int64_t k = 0; k < K_; ++k) total += odds_of_[k];
    return std::log(total) + top_ - score(label);
  }

  void update(int64_t label, double h) {
    const bool apart = m_.residual && n_ > n_base_;
    if (!apart || m_.moments[0]) derivatives(label);
    if (m_.moments[0]) example_.add_moments(u_, K_, h);
    if (m_.ftrl) return update_ftrl(h);
    if (!apart) {
      step(label, h, 0, n_, Scales<AnyWay>::of_all(way_, m_), 1);
    } else {  // products make a step from what they predict in full, the base features one from what they predict alone
      const auto loss_at = [&](double gain) { return count_products(gain), loss(label); };
      // Never in full: of several classes that makes the loss smaller, but errors more (20 newsgroups .145 for .141).
      if (weighs_products(m_)) weigh_products(m_, h, loss_at(0), loss_at(1), std::numeric_limits<double>::infinity());
      count_products(1 / PM_PRODUCT_SHARE);
      derivatives(label);
      step(label, h, n_base_, n_, Scales<AnyWay>::of_products(way_, m_), PM_PRODUCT_SHARE);
      std::copy(base_score_, base_score_ + padded_, score_);
      compared_ = false;
      derivatives(label);
      step(label, h, 0, n_base_, Scales<AnyWay>::of_all(way_, m_), 1);
    }
    if (way_.regularized()) m_.clock += h * clock_step(m_, step_size(way_, m_), Scales<AnyWay>::of_all(way_, m_).mean());
  }

 private:
  static double clipped(double score) { return std::min(kMarginLimit, std::max(-kMarginLimit, score)); }

  // Residual learning: scores to which the products add `gain` times what they add by themselves.
  void count_products(double gain) {
    for (int64_t k = 0; k < K_; ++k)
      score_[k] = static_cast<Real>(base_score_[k] + gain * (half_score_[k] - base_score_[k]));
    compared_ = false;
  }

  // Softmax: odds of the classes against the one with the highest score, once for the same scores. The loops become vectors.
  void compare_scores() {
    if (compared_) return;
    compared_ = true;
    double* const odds = odds_of_;
    const Real* const scores = score_;
    const int64_t K = K_;
    Real top = scores[0];
    for (int64_t k = 1; k < K; ++k) top = std::max(top, scores[k]);
    const double highest = top_ = clipped(static_cast<double>(top));
    for (int64_t k = 0; k < K; ++k) odds[k] = exponential(clipped(static_cast<double>(scores[k])) - highest);
  }

  // What an example adds to the sums of squared gradients, for a feature of value 1. With softmax the classes of a
  // feature share their evidence: a class that is hardly wrong must not make the first step of a new feature as large
  // as the class that is. On sparse text that is worth a sixth of the error, and it keeps long training stable.
  bool square_gradients(double h) {
    double total = 0;
    for (int64_t k = 0; k < K_; ++k) {
      const double square = h * static_cast<double>(u_[k]) * u_[k];
      g2_[k] = static_cast<Real>(square);
      total += square;
    }
    if (m_.loss == PM_SOFTMAX)
      for (int64_t k = 0; k < K_; ++k) g2_[k] = static_cast<Real>(kSharedEvidence * total);
    return total > 0;
  }

  // Some of the features make a step, or a share of it, the derivatives being known.
  void step(int64_t label, double h, int64_t first, int64_t last, const Scales<AnyWay>& scales, double share) {
    const bool learns = square_gradients(h);
    const double n = m_.adaptive ? directions(first, last) : squares(first, last);
    if (learns) scales.add(h, n);
    const double m = scales.mean();
    steps(label, step_size(way_, m_) * h, m, n);
    if (share != 1)
      for (int64_t k = 0; k < K_; ++k) u_[k] *= static_cast<Real>(share);
    if (!m_.adaptive || m_.shared) return add_steps(first, last);
    for (int64_t i = first; i < last; ++i) {
      Real* const w = slot_[i] + 4;
      const Real* const direction = direction_ + i * padded_;
      for (int64_t k = 0; k < padded_; k += 4)
        store_quad<Real>(w + k, load_quad(w + k) + load_quad(u_ + k) * load_quad(direction + k));
    }
  }

  // Calls visit(k, how many quads) for stretches of classes whose numbers fit the registers.
  template <class Visit>
  inline __attribute__((always_inline)) void each_stretch(Visit&& visit) const {
    for (int64_t k = 0; k < padded_; k += 32) {
      switch (std::min<int64_t>(8, (padded_ - k) / 4)) {
        case 1: visit(k, std::integral_constant<int, 1>{}); break;
        case 2: visit(k, std::integral_constant<int, 2>{}); break;
        case 3: visit(k, std::integral_constant<int, 3>{}); break;
        case 4: visit(k, std::integral_constant<int, 4>{}); break;
        case 5: visit(k, std::integral_constant<int, 5>{}); break;
        case 6: visit(k, std::integral_constant<int, 6>{}); break;
        case 7: visit(k, std::integral_constant<int, 7>{}); break;
        default: visit(k, std::integral_constant<int, 8>{});
      }
    }
  }

  // score += w x over some of the features: each score in the order of the features, whatever the stretches.
  void add_scores(int64_t first, int64_t last) {
    each_stretch([&](int64_t k, auto quads) __attribute__((always_inline)) {
      V total[quads.value];
      for (int q = 0; q < quads.value; ++q) total[q] = load_quad(score_ + k + 4 * q);
      for (int64_t i = first; i < last; ++i) {
        const Real* const w = slot_[i] + 4 + k;
        const Real x = x_[i];
        for (int q = 0; q < quads.value; ++q) total[q] += load_quad(w + 4 * q) * x;
      }
      for (int q = 0; q < quads.value; ++q) store_quad<Real>(score_ + k + 4 * q, total[q]);
    });
  }

  // w += u x for some of the features.
  void add_steps(int64_t first, int64_t last) {
    each_stretch([&](int64_t k, auto quads) __attribute__((always_inline)) {
      V u[quads.value];
      for (int q = 0; q < quads.value; ++q) u[q] = load_quad(u_ + k + 4 * q);
      for (int64_t i = first; i < last; ++i) {
        Real* const w = slot_[i] + 4 + k;
        const Real x = x_[i];
        for (int q = 0; q < quads.value; ++q) store_quad<Real>(w + 4 * q, load_quad(w + 4 * q) + u[q] * x);
      }
    });
  }

  double squares(int64_t first, int64_t last) const {
    double n = 0;
    for (int64_t i = first; i < last; ++i) n += static_cast<double>(x_[i] * x_[i]);
    return n;
  }

  // Adds to the sums of squared gradients; directions are x / sqrt(G), and q what a unit step along them does. Where the
  // classes share their evidence, x becomes the direction.
  double directions(int64_t first, int64_t last) {
    double n = 0;
    if (m_.shared) {
      Real q = 0;
      for (int64_t i = first; i < last; ++i) {
        const Real x = x_[i], xx = x * x, G = slot_[i][2] + g2_[0] * xx, inverse = G > 0 ? 1 / root(G) : Real(0);
        slot_[i][2] = G;
        x_[i] = inverse * x;
        q += inverse * xx;
        n += static_cast<double>(xx);
      }
      std::fill(q_, q_ + K_, q);
      return n;
    }
    for (int64_t k = 0; k < padded_; ++k) q_[k] = 0;
    for (int64_t i = first; i < last; ++i) {
      const Real x = x_[i], xx = x * x;
      n += static_cast<double>(xx);
      Real* const sums = slot_[i] + 4 + padded_;
      Real* const direction = direction_ + i * padded_;
      for (int64_t k = 0; k < padded_; k += 4) {
        const V G = load_quad(sums + k) + load_quad(g2_ + k) * xx;
        store_quad<Real>(sums + k, G);
        const V inverse = G > 0 ? 1 / root(G) : V{};
        store_quad<Real>(q_ + k, load_quad(q_ + k) + inverse * xx);
        store_quad<Real>(direction + k, inverse * x);
      }
    }
    return n;
  }

  // Class k against the rest.
  Point against(int64_t k, int64_t label) const {
    return at(static_cast<Loss>(m_.loss), score(k), k == label ? 1.0 : -1.0, 0.5);
  }

  // u becomes the derivative of the loss for each class.
  void derivatives(int64_t label) {
    if (m_.loss != PM_SOFTMAX) {
      for (int64_t k = 0; k < K_; ++k)
        u_[k] = static_cast<Real>(derivative(against(k, label)));
      return;
    }
    compare_scores();
    const double* const odds = odds_of_;
    Real* const u = u_;
    const int64_t K = K_;
    double others = 0;
    for (int64_t k = 0; k < K; ++k) others += k == label ? 0.0 : odds[k];
    const double own = odds[label], all = own + others;
    odds_ = own / others;
    for (int64_t k = 0; k < K; ++k) u[k] = static_cast<Real>(odds[k] / all);
    u[label] = static_cast<Real>(-others / all);
  }

  // From derivatives to steps of the classes, times the mean scale m. q: what a unit step does to a class, or n for all.
  void steps(int64_t label, double H, double m, double n) {
    const auto moves = [&](int64_t k) { return m * (m_.adaptive ? static_cast<double>(q_[k]) : n); };
    if (m_.invariant && m_.loss == PM_SOFTMAX) return softmax_steps(label, H, m, moves);
    for (int64_t k = 0; k < K_; ++k) {
      const double q = moves(k);
      u_[k] = static_cast<Real>(m * (m_.invariant && q > 0 ? invariant_step(against(k, label), H, q) : -u_[k] * H));
    }
  }

  // Along the flow of the gradient the other classes keep, nearly, their shares r of what the label is short of. Then the
  // margin of the label over all others together follows the logistic loss, at the speed q_label + sum of r^2 q.
  template <class Moves>
  void softmax_steps(int64_t label, double H, double m, Moves moves) {
    const double missing = -static_cast<double>(u_[label]);
    double q = moves(label);
    for (int64_t k = 0; k < K_; ++k) {
      const double share = k == label ? 0 : u_[k] / missing;
      q += share * share * moves(k);
    }
    if (!(missing > 0) || !(q > 0)) return std::fill(u_, u_ + K_, Real(0));
    const Point margin{kLogistic, std::log(odds_), 1, 0.5, odds_, 1 / (1 + odds_)};
    const double step = m * invariant_step(margin, H, q) / missing;
    for (int64_t k = 0; k < K_; ++k) u_[k] = static_cast<Real>(-step * u_[k]);
  }

  void meet_run(const Run<Real>& run, bool learning) {
    keeps_ = keeps(way_, m_, run.degree);
    born_ = false;
    const pm_region& r = m_.regions[run.degree - 1];
    const uint64_t mask = r.hashed ? r.n_slots - 1 : ~uint64_t{0}, stride = static_cast<uint64_t>(m_.stride);
    Real* const slots = static_cast<Real*>(r.slots);
    // Slots are asked for ahead: those of the run after this one, where its place is known, or later ones of this one.
    const bool asks = r.n_slots * stride * sizeof(Real) > kCached;
    const uint64_t next = run.degree > 1 ? run.next_base : run.base;
    const int64_t ahead = next == run.base ? kSlotsAhead : 0;
    const auto ask = [&](int64_t j) __attribute__((always_inline)) {
      if (!asks || j >= run.count) return;
      const Real* const slot = slots + ((run.key(j) - run.base + next) & mask) * stride;
      for (const Real* line = slot; line < slot + stride; line += 64 / sizeof(Real)) __builtin_prefetch(line, 1);
    };
    for (int64_t j = 0; j < ahead; ++j) ask(j);
    for (int64_t j = 0; j < run.count; ++j) {
      ask(j + ahead);
      const uint64_t at = run.key(j) & mask;
      meet(slots + at * stride, r.touched ? r.touched + at : nullptr, run.a * run.x[j], learning);
    }
  }

  // Lists a feature and its scaled value, for the sums and the step.
  void meet(Real* slot, double* touched, Real x, bool learning) {
    const double tau = way_.regularized() && touched ? m_.clock - *touched : 0;
    if (tau > 0) {
      Real* const w = slot + 4;
      const Real* const G = m_.shared ? slot + 2 : w + padded_;
      const int64_t each = m_.shared ? 0 : 1;  // from the sum of one class to the next
      if (!learning) {  // nothing may change, so the weights are shrunk on the way
        if (m_.normalized) x = scaled(slot, x, false);
        for (int64_t k = 0; k < K_; ++k) score_[k] += x * shrunk(w[k], G[k * each], tau);
        return;
      }
      for (int64_t k = 0; k < K_; ++k) w[k] = shrunk(w[k], G[k * each], tau);
    }
    if (m_.normalized) x = scaled(slot, x, learning);
    if (learning && touched && way_.regularized()) *touched = m_.clock;
    slot_[n_] = slot;
    x_[n_++] = x;
  }

  Real shrunk(Real w, Real G, double tau) const {
    const double speed = m_.adaptive ? (G > 0 ? 1 / std::sqrt(static_cast<double>(G)) : 0) : 1;
    return regularized(w, speed * tau, m_.l1, m_.l2);
  }

  Real scaled(Real* slot, Real x, bool learning) {
    const Real small = x * slot[0];
    if (slot[0] > 0 && small <= 1 && small >= -1) return small;
    const Real size = std::fabs(x);
    if (!(size >= Tiny<Real>::value)) return 0;
    if (!learning) return slot[0] > 0 ? std::copysign(keeps_ ? kept(std::fabs(small)) : Real(1), x) : Real(0);
    if (slot[0] > 0) {
      const Real growth = std::fabs(small), shrink = 1 / growth;
      Real *const w = slot + 4, *const G = w + padded_;
      const Real factor = keeps_ ? kept(growth) : m_.adaptive ? Real(1) : shrink;
      for (int64_t k = 0; k < padded_; ++k) {
        w[k] *= factor;
        if (m_.adaptive && !m_.shared) G[k] *= shrink * shrink;
      }
      if (m_.shared) slot[2] *= shrink * shrink;
    } else {
      born_ = true;
    }
    slot[0] = 1 / size;
    return std::copysign(Real(1), x);
  }

  void update_ftrl(double h) {
    for (int64_t i = 0; i < n_; ++i) {
      Real* const slot = slot_[i];
      const bool penalized = slot != m_.intercept;
      slot[0] = 1;
      for (int64_t k = 0; k < K_; ++k)
        ftrl(m_, slot[4 + k], slot[4 + padded_ + k], slot[4 + 2 * padded_ + k], h * u_[k] * x_[i], penalized);
    }
  }

  pm_online& m_;
  const AnyWay way_;
  Example<Real> example_;
  const int64_t K_, padded_;
  int64_t n_ = 0, n_base_ = 0;  // features; those of them that are no products
  bool keeps_ = false, born_ = false;
  double odds_ = 0, top_ = 0;  // softmax: odds of the label against all other classes; the highest score
  bool compared_ = false;      // whether odds_of_ belong to the scores
  double* odds_of_;
  Real** slot_;
  Real *x_, *score_, *g2_, *q_, *u_, *base_score_, *half_score_, *direction_;
};

}  // namespace PM_ISA
}  // namespace pm
