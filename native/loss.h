// The five losses: value, derivative and the importance-invariant step (Karampatziakis and Langford, 2011): the move of
// the prediction if the gradient were followed continuously for the whole importance of an example.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace pm {
namespace PM_ISA {

enum Loss : int32_t { kSquared = 0, kLogistic = 1, kHinge = 2, kQuantile = 3, kPoisson = 4 };

constexpr double kMarginLimit = 50.0;  // e^50 is still far from overflow, and no probability needs more
constexpr double kSolved = 1 << 24;    // from this e^(yp) on the logistic loss is zero in 32 bits: nothing is learnt, nor
                                       // does the example count in the mean scale of those that are
constexpr double kSmallStep = 1e-6;    // below this the closed forms lose digits and the plain gradient is exact enough

// e^t for |t| <= 1/2, to 14 digits: Taylor's series, grouped so that few terms wait for others.
inline __attribute__((always_inline)) double exp_near_zero(double t) {
  const double t2 = t * t, t4 = t2 * t2;
  const double low = (1.0 + t) + t2 * (1.0 / 2 + t * (1.0 / 6));
  const double middle = (1.0 / 24 + t * (1.0 / 120)) + t2 * (1.0 / 720 + t * (1.0 / 5040));
  const double high = (1.0 / 40320 + t * (1.0 / 362880)) + t2 * (1.0 / 3628800 + t * (1.0 / 39916800));
  return low + t4 * (middle + t4 * high);
}

// e^x to 13 digits for |x| <= 700: 2^n e^t with a whole n and a small t. Its bits do not depend on a library.
inline __attribute__((always_inline)) double exponential(double x) {
  constexpr double kWhole = 6755399441055744.0;  // 1.5 * 2^52: added, it leaves a whole number in the last bits
  const double shifted = x * 1.4426950408889634 + kWhole, n = shifted - kWhole;
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return power * exp_near_zero(x - n * 0.6931471805599453);
}

// A prediction p for the target y, and what the loss knows about it: e^(yp) or e^p, and 1 / (1 + e), each taken once.
struct Point {
  Loss loss;
  double p, y, tau, e, share;
};

inline __attribute__((always_inline)) Point at(Loss loss, double p, double y, double tau) {
  const double e = loss == kLogistic ? exponential(y * p) : loss == kPoisson ? exponential(p) : 0.0;
  return {loss, p, y, tau, e, 1.0 / (1.0 + e)};
}

// log(1 + t) for t >= 0, to 12 digits: the library's takes longer than all else that a loss does.
inline double log_one_plus(double t) { return t < 1e-4 ? t * (1.0 - t * (0.5 - t / 3.0)) : std::log(1.0 + t); }

inline __attribute__((always_inline)) double value(const Point& a) {
  switch (a.loss) {
    case kSquared: return (a.p - a.y) * (a.p - a.y);
    case kLogistic: return log_one_plus(1.0 / a.e);
    case kHinge: return std::max(0.0, 1.0 - a.y * a.p);
    case kQuantile: return a.y > a.p ? a.tau * (a.y - a.p) : (1.0 - a.tau) * (a.p - a.y);
    case kPoisson: return a.e - a.y * a.p;
  }
  return 0.0;
}

// Adds losses to a total, at the latest when it goes. Those of the logistic loss are logarithms of numbers that are
// multiplied first: one logarithm is enough for hundreds of them.
class LossSum {
 public:
  explicit LossSum(double& total) : total_(total) {}
  LossSum(const LossSum&) = delete;
  LossSum& operator=(const LossSum&) = delete;
  ~LossSum() { total_ += std::log(product_); }

  inline __attribute__((always_inline)) void add(const Point& a, double h) {
    if (a.loss != kLogistic || h != 1.0 || a.e > 1e4 || a.e < 1e-4) {
      total_ += h * value(a);
      return;
    }
    product_ *= 1.0 + 1.0 / a.e;
    if (product_ < 1e250) return;
    total_ += std::log(product_);
    product_ = 1.0;
  }

 private:
  double& total_;
  double product_ = 1.0;
};

inline __attribute__((always_inline)) double derivative(const Point& a) {
  switch (a.loss) {
    case kSquared: return 2.0 * (a.p - a.y);
    case kLogistic: return a.e < kSolved ? -a.y * a.share : 0.0;
    case kHinge: return a.y * a.p < 1.0 ? -a.y : 0.0;
    case kQuantile: return a.y > a.p ? -a.tau : (a.y < a.p ? 1.0 - a.tau : 0.0);
    case kPoisson: return a.e - a.y;
  }
  return 0.0;
}

// Whether Vowpal Wabbit learns from an example: it does not, and leaves the scales as they are, where its loss or its
// gradient is zero in 32 bits.
inline bool peer_learns(const Point& a) {
  const float p = static_cast<float>(a.p), y = static_cast<float>(a.y);
  if (static_cast<float>(derivative(a)) == 0) return false;
  switch (a.loss) {
    case kPoisson: return 2 * (y * (std::log(y + 1e-6f) - p) - (y - std::exp(p))) > 0;
    case kLogistic: return true;
    default: return static_cast<float>(value(a)) > 0;
  }
}

// e^d for 0 <= d <= 1: the series around the middle.
inline __attribute__((always_inline)) double exp_below_one(double d) { return 1.6487212707001282 * exp_near_zero(d - 0.5); }

// How far the margin m moves in a gradient flow on the logistic loss: m + e^m grows by the gain. Divided by 1 + e^m, the
// move d solves d + c (e^d - 1 - d) = first, with c = e^m / (1 + e^m). Here is d / first, by six terms of the solution's
// series for first < 0.1, 7 digits; grouped so that few wait for others.
inline __attribute__((always_inline)) double short_logistic_flow(double first, double c) {
  const double ff = first * first, cc = c * c;
  const double third = (0.5 * c - 1.0 / 6) + first * (c * (5.0 / 12 - 0.625 * c) - 1.0 / 24);
  const double fifth = ((5.0 / 24 * c - 1.0 / 120) + cc * (0.875 * c - 0.875)) +
                       first * ((7.0 / 90 * c - 1.0 / 720) + cc * ((1.75 * c - 49.0 / 72) - 21.0 / 16 * cc));
  return (1.0 - 0.5 * (first * c)) + ff * c * (third + ff * fifth);
}

// The longer moves.
inline __attribute__((noinline)) double long_logistic_flow(double from, double exp_from, double gain, double first,
                                                           double c) {
  if (first < 0.9) {  // Padé's approximant of first degrees to the solution, and a step of Halley's method: 7 digits
    const double d = first * (1.0 + first * (0.5 * c - 1.0 / 3)) / (1.0 + first * (c - 1.0 / 3));
    const double curve = c * exp_below_one(d), slope = 1.0 / ((1.0 - c) + curve);
    const double change = ((d - first) + (curve - c * (1.0 + d))) * slope;
    return d - change * (1.0 + 0.5 * change * curve * slope);
  }
  const double target = from + exp_from + gain;
  double m = from + first;
  if (m > 1.0) m = std::min(m, std::log(target));
  for (int i = 0; i < 20; ++i) {
    const double e = exponential(m);
    const double change = (m + e - target) / (1.0 + e);
    m -= change;
    if (std::fabs(change) < 1e-4) break;  // Newton's method doubles the digits: the error is now below 1e-8
  }
  return m - from;
}

// (1 - e^-x) / x for 0 <= x < 1, to 9 digits.
inline __attribute__((always_inline)) double mean_decay(double x) {
  const double x2 = x * x, x4 = x2 * x2;
  const double low = (1.0 - 0.5 * x) + x2 * (1.0 / 6 - x * (1.0 / 24));
  const double middle = (1.0 / 120 - x * (1.0 / 720)) + x2 * (1.0 / 5040 - x * (1.0 / 40320));
  const double high = (1.0 / 362880 - x * (1.0 / 3628800)) + x2 * (1.0 / 39916800);
  return low + x4 * (middle + x4 * high);
}

inline double other_invariant_step(const Point& a, double H, double q) {
  const double Hq = H * q, p = a.p, y = a.y;
  switch (a.loss) {
    case kSquared: return (y - p) * -std::expm1(-2.0 * Hq) / q;  // the longer moves
    case kLogistic: break;
    case kHinge: {
      const double slack = 1.0 - y * p;
      if (slack <= 0.0) return 0.0;
      return y * (Hq < slack ? H : slack / q);
    }
    case kQuantile: {
      const double distance = std::fabs(y - p);
      if (distance == 0.0) return 0.0;
      const double pull = y > p ? a.tau * H : (1.0 - a.tau) * H;
      return std::copysign(pull * q < distance ? pull : distance / q, y - p);
    }
    case kPoisson:
      if (Hq * (y + a.e) < kSmallStep) return (y - a.e) * H;
      if (y <= 0) return -std::log1p(a.e * Hq) / q;
      if (y * Hq > 30.0) return (std::log(y) - p) / q;  // the flow has arrived; expm1 would overflow soon
      return y * H - std::log1p(a.e * std::expm1(y * Hq) / y) / q;
  }
  return 0.0;
}

// How far to follow the features: the prediction moves by step * q. H is learning rate times importance and q the
// prediction's change for a unit step. What depends on q waits for the whole example, so as little as possible does.
inline __attribute__((always_inline)) double invariant_step(const Point& a, double H, double q) {
  if (a.loss == kSquared && 2.0 * H * q < 1) return 2.0 * H * (a.y - a.p) * mean_decay(2.0 * H * q);
  if (a.loss != kLogistic) return other_invariant_step(a, H, q);
  if (a.e >= kSolved) return 0.0;
  const double rate = H * a.share, first = q * rate, c = a.e * a.share;
  if (first < 0.1) return a.y * rate * short_logistic_flow(first, c);
  return a.y * long_logistic_flow(a.y * a.p, a.e, H * q, first, c) / q;
}

}  // namespace PM_ISA
}  // namespace pm
