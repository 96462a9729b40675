// The five losses: value, derivative and the importance-invariant step (Karampatziakis and Langford, 2011): the move of
// the prediction if the gradient were followed continuously for the whole importance of an example.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pm {

enum Loss : int32_t { kSquared = 0, kLogistic = 1, kHinge = 2, kQuantile = 3, kPoisson = 4 };

constexpr double kMarginLimit = 50.0;  // e^50 is still far from overflow, and no probability needs more
constexpr double kSmallStep = 1e-6;    // below this the closed forms lose digits and the plain gradient is exact enough

inline double logistic_loss(double margin) {  // log(1 + e^-margin) without overflow
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

inline double loss_value(Loss loss, double p, double y, double tau) {
  switch (loss) {
    case kSquared: return (p - y) * (p - y);
    case kLogistic: return logistic_loss(y * p);
    case kHinge: return std::max(0.0, 1.0 - y * p);
    case kQuantile: return y > p ? tau * (y - p) : (1.0 - tau) * (p - y);
    case kPoisson: return std::exp(p) - y * p;
  }
  return 0.0;
}

inline double loss_derivative(Loss loss, double p, double y, double tau) {
  switch (loss) {
    case kSquared: return 2.0 * (p - y);
    case kLogistic: return -y / (1.0 + std::exp(y * p));
    case kHinge: return y * p < 1.0 ? -y : 0.0;
    case kQuantile: return y > p ? -tau : (y < p ? 1.0 - tau : 0.0);
    case kPoisson: return std::exp(p) - y;
  }
  return 0.0;
}

// The margin m that solves m + e^m = from + e^from + gain: where a gradient flow on the logistic loss ends.
inline double logistic_flow(double from, double exp_from, double gain) {
  const double target = from + exp_from + gain;
  double m = std::min(from + gain / (1.0 + exp_from), target > 1.0 ? std::log(target) : target);
  for (int i = 0; i < 20; ++i) {
    const double e = std::exp(m);
    const double change = (m + e - target) / (1.0 + e);
    m -= change;
    if (std::fabs(change) < 1e-13 * (1.0 + std::fabs(m))) break;
  }
  return m;
}

// How far to follow the features: the prediction moves by step * q. H is learning rate times importance and q the
// prediction's change for a unit step.
inline double invariant_step(Loss loss, double p, double y, double H, double q, double tau) {
  const double Hq = H * q;
  switch (loss) {
    case kSquared:
      return Hq < kSmallStep ? 2.0 * (y - p) * H : (y - p) * -std::expm1(-2.0 * Hq) / q;
    case kLogistic: {
      const double margin = y * p, e = std::exp(margin);
      if (Hq < kSmallStep * (1.0 + e)) return y * H / (1.0 + e);
      return y * (logistic_flow(margin, e, Hq) - margin) / q;
    }
    case kHinge: {
      const double slack = 1.0 - y * p;
      if (slack <= 0.0) return 0.0;
      return y * (Hq < slack ? H : slack / q);
    }
    case kQuantile: {
      const double e = y - p;
      if (e == 0.0) return 0.0;
      const double pull = e > 0 ? tau * H : (1.0 - tau) * H;
      const double distance = std::fabs(e);
      return std::copysign(pull * q < distance ? pull : distance / q, e);
    }
    case kPoisson: {
      const double e = std::exp(p);
      if (Hq < kSmallStep) return (y - e) * H;
      if (y <= 0) return -std::log1p(e * Hq) / q;
      if (y * Hq > 30.0) return (std::log(y) - p) / q;  // the flow has arrived; expm1 would overflow soon
      return y * H - std::log1p(e * std::expm1(y * Hq) / y) / q;
    }
  }
  return 0.0;
}

}  // namespace pm
