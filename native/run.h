// A run of features: native/example.h says which there are. And a later example, whose slots are asked for ahead.
#pragma once
#include <cstdint>

namespace pm {
namespace PM_ISA {

template <class Real>
struct Run {
  int degree;
  uint64_t base;
  const uint32_t* keys;  // null: 0, 1, 2 …, or the ids
  const Real* x;
  int64_t count;
  Real a;
  bool rising;  // whether keys rise, so that count - 1 between the ends means that the slots are neighbours
  uint64_t next_base = 0;  // of the run after this one, whose slots may be asked for ahead
  int64_t ahead = 0;       // how many features ahead they may be asked for in this one
  const uint64_t* ids = nullptr;  // whose lower halves are the keys

  uint64_t key(int64_t j) const {
    if (ids) return static_cast<uint32_t>(ids[j]);
    return base + (keys ? keys[j] : static_cast<uint64_t>(j));
  }
  bool neighbours() const {
    if (!keys) return !ids;
    return rising && count && keys[count - 1] - keys[0] == static_cast<uint64_t>(count) - 1;
  }
};

// Hands runs on one behind, so that each knows the base of the next.
template <class Real, class Visit>
class OneBehind {
 public:
  explicit OneBehind(Visit& visit) : visit_(visit) {}
  void operator()(const Run<Real>& run) {
    if (run.count == 0) return;
    held_.next_base = run.base;
    if (held_.count) visit_(held_);
    held_ = run;
  }
  void finish() {
    held_.next_base = held_.base;
    if (held_.count) visit_(held_);
  }

 private:
  Visit& visit_;
  Run<Real> held_{};
};

// What is left of an example whose slots are asked for ahead.
struct Upcoming {
  const void* indices = nullptr;
  int64_t next = 0, stop = 0, end = 0;  // end: of the indices of all examples
  bool wide = false;

  template <class Index>
  const Index* at() const { return static_cast<const Index*>(indices) + next; }
};

}  // namespace PM_ISA
}  // namespace pm
