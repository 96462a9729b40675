// What a step needs, whatever the number of outputs: the least values, its size, penalties, and FTRL-proximal.
#pragma once
#include <cmath>

#include "lanes.h"
#include "pomona.h"
#include "way.h"

namespace pm {
namespace PM_ISA {

template <class Real>
struct Tiny;  // values smaller than this count as zero: their inverse would overflow
template <>
struct Tiny<float> { static constexpr float value = 4e-38f; };
template <>
struct Tiny<double> { static constexpr double value = 1e-300; };

// A value that exceeds all before, by the factor `growth`, scales its feature down. If the weight follows in full, as in
// Vowpal Wabbit, it loses its effect on the values that it was learnt from; if it stays, its effect on the new one may be
// far too strong. So it goes half of the way up to a growth of 4, and the whole way from 16 on. What it is multiplied with,
// in scaled units:
template <class Real>
inline Real kept(Real growth) {
  const Real half = std::sqrt(growth);
  return growth < 4 ? half : growth < 16 ? 4 / half : Real(1);
}

// Whether weights of a degree do so. apple's products do not: they appear late, and small at first.
template <class Way>
inline bool keeps(const Way& way, const pm_online& m, int degree) {
  return way.adaptive() && m.gentle && (degree == 1 || !m.parents);
}

// |w| after flowing down l1 |w| + l2 w^2 / 2 for a time tau. Flows compose, so doing it late is doing it exactly.
template <class Real>
inline Real regularized(Real w, double tau, double l1, double l2) {
  double size = std::fabs(static_cast<double>(w));
  if (l2 > 0) {
    const double decay = std::expm1(-l2 * tau);
    size += decay * (size + l1 / l2);
  } else {
    size -= l1 * tau;
  }
  return size > 0 ? static_cast<Real>(std::copysign(size, static_cast<double>(w))) : Real(0);
}

// FTRL-proximal (McMahan et al., 2013) for one weight and its gradient g.
template <class Real>
inline void ftrl(const pm_online& m, Real& w, Real& G, Real& z, double g, bool penalized) {
  const double grown = G + g * g;
  const double dual = z + g - (std::sqrt(grown) - std::sqrt(static_cast<double>(G))) / m.learning_rate * w;
  const double l1 = penalized ? m.l1 : 0, l2 = penalized ? m.l2 : 0;
  G = static_cast<Real>(grown);
  z = static_cast<Real>(dual);
  w = static_cast<Real>(std::fabs(dual) <= l1 ? 0
                                              : -(dual - std::copysign(l1, dual)) /
                                                    ((m.ftrl_beta + std::sqrt(grown)) / m.learning_rate + l2));
}

// Residual learning: what products make a step from is the prediction if they counted in full.
inline double in_full(double base, double whole) { return base + (whole - base) / PM_PRODUCT_SHARE; }

// Products count as much as the predictions without, with half of them and with all of them did well so far: these have
// weights exp(-loss), as in Hedge.
constexpr int64_t kWeighedEvery = 4;  // examples: three more losses for each would take long
inline bool weighs_products(const pm_online& m) {
  return m.fresh && static_cast<int64_t>(m.examples) % kWeighedEvery == 0;
}
inline void weigh_products(pm_online& m, double h, double without, double halved, double with) {
  m.without += h * without, m.halved += h * halved, m.with += h * with;
  const double least = std::min(m.without, std::min(m.halved, m.with));
  const double none = std::exp(least - m.without), half = std::exp(least - m.halved), all = std::exp(least - m.with);
  m.product_gain = (half + all / PM_PRODUCT_SHARE) / (none + half + all);
}

// The step size of this example (the t-th, counted from 1).
template <class Way>
inline double step_size(const Way& way, const pm_online& m) {
  if (way.adaptive()) return m.learning_rate;
  const double t = m.examples + 1;
  return m.l2 > 0 ? m.learning_rate / (m.l2 * (t + 1)) : m.learning_rate / std::sqrt(t);
}

// How far the clock of regularisation moves. SGD shrinks by exactly 1 - eta l2 in a step, as in Theorem 1 of the apple paper.
inline double clock_step(const pm_online& m, double eta, double scale) {
  return m.adaptive || m.l2 == 0 || eta * m.l2 >= 1 ? eta * scale : -std::log1p(-eta * m.l2) / m.l2;
}

// What the features that learn together have been like: sums of h |x|^2 and of h over the examples that were learnt from.
template <class Way>
struct Scales {
  Way way;
  double &squares, &weights;

  static Scales of_all(const Way& way, pm_online& m) { return {way, m.scale_sum, m.weight_sum}; }
  static Scales of_products(const Way& way, pm_online& m) { return {way, m.product_scale_sum, m.product_weight_sum}; }

  void add(double h, double n) const {
    if (way.normalized()) squares += h * n, weights += h;
  }
  // m of the update: how much smaller than the largest value seen the features are on average.
  double mean() const {
    const double ratio = way.normalized() && squares > 0 ? weights / squares : 1.0;
    return way.adaptive() ? std::sqrt(ratio) : ratio;
  }
};

}  // namespace PM_ISA
}  // namespace pm
