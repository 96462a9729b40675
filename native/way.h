// The way in which a model learns, as the loops over examples ask for it.
//
// Most models learn in one way: AdaGrad on normalised features, importance-invariant steps, no penalties. Loops made for it
// alone ask nothing, and take a tenth less time.
#pragma once
#include <cstdint>

#include "loss.h"
#include "pomona.h"

namespace pm {
namespace PM_ISA {

// As the model says.
struct AnyWay {
  const pm_online& m;

  bool normalized() const { return m.normalized; }
  bool adaptive() const { return m.adaptive; }
  bool invariant() const { return m.invariant; }
  bool regularized() const { return !m.ftrl && (m.l1 > 0 || m.l2 > 0); }
  bool ftrl() const { return m.ftrl; }
  bool residual() const { return m.residual; }
  bool peer_order() const { return m.peer_order; }
  bool moments() const { return m.moments[0]; }
  Loss loss() const { return static_cast<Loss>(m.loss); }
};

// The usual way, with this loss.
template <Loss kLoss>
struct UsualWay {
  explicit constexpr UsualWay(const AnyWay&) {}
  static bool is_of(const AnyWay& way) {
    return way.normalized() && way.adaptive() && way.invariant() && !way.regularized() && !way.ftrl() &&
           !way.residual() && !way.peer_order() && !way.moments() && way.loss() == kLoss;
  }

  static constexpr bool normalized() { return true; }
  static constexpr bool adaptive() { return true; }
  static constexpr bool invariant() { return true; }
  static constexpr bool regularized() { return false; }
  static constexpr bool ftrl() { return false; }
  static constexpr bool residual() { return false; }
  static constexpr bool peer_order() { return false; }
  static constexpr bool moments() { return false; }
  static constexpr Loss loss() { return kLoss; }
};

}  // namespace PM_ISA
}  // namespace pm
