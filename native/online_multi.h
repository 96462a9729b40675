// Learning with several outputs (classes): the weights of a feature for all classes lie side by side, vectors run over
// classes. Slots are changed in place.
#pragma once
#include <cmath>

#include "example.h"
#include "loss.h"
#include "online_single.h"

namespace pm {
namespace PM_ISA {

template <class Real>
class Multi {
 public:
  Multi(pm_online& model, char* memory, int64_t max_features, int64_t max_expanded)
      : m_(model), example_(model, memory, max_features), K_(model.n_outputs) {
    char* at = memory + (Example<Real>::bytes(max_features) + 63) / 64 * 64;
    slot_ = reinterpret_cast<Real**>(at);
    x_ = reinterpret_cast<Real*>(slot_ + max_expanded + 1);
    score_ = x_ + (max_expanded + 1 + 15) / 16 * 16;
    g2_ = score_ + K_, q_ = g2_ + K_, u_ = q_ + K_;
    regularized_ = !model.ftrl && (model.l1 > 0 || model.l2 > 0);
  }
  static int64_t bytes(int64_t max_features, int64_t max_expanded, int64_t K) {
    return Example<Real>::bytes(max_features) + 192 + (max_expanded + 17) * static_cast<int64_t>(8 + sizeof(Real)) +
           4 * K * static_cast<int64_t>(sizeof(Real));
  }

  Example<Real>& example() { return example_; }
  int64_t expanded() const { return n_; }

  void dot(bool learning) {
    n_ = 0;
    for (int64_t k = 0; k < K_; ++k) score_[k] = 0;
    if (m_.intercept) add(static_cast<Real*>(m_.intercept), nullptr, Real(1), learning);
    example_.each_run([&](const Run<Real>& run) {
      const pm_region& r = m_.regions[run.degree - 1];
      const uint64_t mask = r.hashed ? r.n_slots - 1 : ~uint64_t{0};
      Real* const slots = static_cast<Real*>(r.slots);
      if (r.n_slots * static_cast<uint64_t>(m_.stride) * sizeof(Real) > kCached)
        for (int64_t j = 0; j < run.count; ++j)
          __builtin_prefetch(slots + ((run.base + run.keys[j]) & mask) * static_cast<uint64_t>(m_.stride), 1);
      for (int64_t j = 0; j < run.count; ++j) {
        const uint64_t at = (run.base + run.keys[j]) & mask;
        add(slots + at * static_cast<uint64_t>(m_.stride), r.touched ? r.touched + at : nullptr, run.a * run.x[j],
            learning);
      }
    });
  }

  double score(int64_t k) const {
    return std::min(kMarginLimit, std::max(-kMarginLimit, static_cast<double>(score_[k])));
  }

  // Loss of the scores for class `label`; a label outside the classes belongs to none of them.
  double loss(int64_t label) const {
    double total = 0;
    if (m_.loss != PM_SOFTMAX) {
      for (int64_t k = 0; k < K_; ++k) total += value(against(k, label));
      return total;
    }
    double top = score(0);
    for (int64_t k = 1; k < K_; ++k) top = std::max(top, score(k));
    for (int64_t k = 0; k < K_; ++k) total += std::exp(score(k) - top);
    return std::log(total) + top - score(label);
  }

  void update(int64_t label, double h) {
    derivatives(label);
    if (m_.ftrl) return update_ftrl(h);
    bool learns = false;
    for (int64_t k = 0; k < K_; ++k) {
      g2_[k] = static_cast<Real>(h * static_cast<double>(u_[k]) * u_[k]), q_[k] = 0;
      learns |= g2_[k] > 0;
    }
    double n = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const Real xx = x_[i] * x_[i];
      n += static_cast<double>(xx);
      Real* const G = slot_[i] + 2 + K_;
      if (!m_.adaptive) continue;
      for (int64_t k = 0; k < K_; ++k) {
        G[k] += g2_[k] * xx;
        q_[k] += G[k] > 0 ? xx / std::sqrt(G[k]) : Real(0);
      }
    }
    if (m_.normalized && learns) m_.scale_sum += h * n, m_.weight_sum += h;
    const double m = mean_scale(m_), eta = step_size(m_);
    for (int64_t k = 0; k < K_; ++k)
      u_[k] = static_cast<Real>(m * class_step(k, label, eta * h, m * (m_.adaptive ? static_cast<double>(q_[k]) : n)));
    for (int64_t i = 0; i < n_; ++i) {
      Real* const w = slot_[i] + 2;
      const Real* const G = w + K_;
      const Real x = x_[i];
      if (m_.adaptive) {
        for (int64_t k = 0; k < K_; ++k) w[k] += G[k] > 0 ? u_[k] * x / std::sqrt(G[k]) : Real(0);
      } else {
        for (int64_t k = 0; k < K_; ++k) w[k] += u_[k] * x;
      }
    }
    if (regularized_) m_.clock += h * clock_step(m_, eta, m);
  }

 private:
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
    double top = score(0), total = 0;
    for (int64_t k = 1; k < K_; ++k) top = std::max(top, score(k));
    for (int64_t k = 0; k < K_; ++k) {
      const double e = std::exp(score(k) - top);
      u_[k] = static_cast<Real>(e);
      total += e;
    }
    for (int64_t k = 0; k < K_; ++k) u_[k] = static_cast<Real>(u_[k] / total - (k == label ? 1 : 0));
  }

  // Softmax has no closed form: its derivative decays at most with rate 1/2 along the flow.
  double class_step(int64_t k, int64_t label, double H, double q) const {
    const double d = u_[k];
    if (!m_.invariant || !(q > 0)) return -d * H;
    if (m_.loss != PM_SOFTMAX)
      return invariant_step(against(k, label), H, q);
    return 0.5 * H * q < kSmallStep ? -d * H : d * std::expm1(-0.5 * H * q) / (0.5 * q);
  }

  void add(Real* slot, double* touched, Real x, bool learning) {
    Real* const w = slot + 2;
    Real* const G = w + K_;
    const double tau = regularized_ && touched ? m_.clock - *touched : 0;
    if (tau > 0 && learning) {
      for (int64_t k = 0; k < K_; ++k) w[k] = shrunk(w[k], G[k], tau);
    }
    if (m_.normalized) x = scaled(slot, x, learning);
    if (tau > 0 && !learning) {
      for (int64_t k = 0; k < K_; ++k) score_[k] += x * shrunk(w[k], G[k], tau);
    } else {
      for (int64_t k = 0; k < K_; ++k) score_[k] += x * w[k];
    }
    if (!learning) return ++n_, void();
    if (touched && regularized_) *touched = m_.clock;
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
    if (!learning) return slot[0] > 0 ? std::copysign(Real(1), x) : Real(0);
    if (slot[0] > 0) {
      const Real shrink = 1 / std::fabs(small);
      Real* const shrunk = m_.adaptive ? slot + 2 + K_ : slot + 2;
      const Real factor = m_.adaptive ? shrink * shrink : shrink;
      for (int64_t k = 0; k < K_; ++k) shrunk[k] *= factor;
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
        ftrl(m_, slot[2 + k], slot[2 + K_ + k], slot[2 + 2 * K_ + k], h * u_[k] * x_[i], penalized);
    }
  }

  pm_online& m_;
  Example<Real> example_;
  const int64_t K_;
  int64_t n_ = 0;
  bool regularized_;
  Real** slot_;
  Real *x_, *score_, *g2_, *q_, *u_;
};

}  // namespace PM_ISA
}  // namespace pm
