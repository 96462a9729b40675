// apple: products of the chosen monomials (parents) with the base features of one example.
//
// Parents form a tree: each is a base feature, or another parent times a base feature. So the parents that an example has
// are found by walking down from its features, never by looking at all of them. A product may come from several parents;
// it belongs to one, and the others leave it out (`excluded`): one feature a monomial, whatever the path to it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hash.h"
#include "pomona.h"

namespace pm {
namespace PM_ISA {

template <class T>
inline T* take(char*& memory, int64_t n) {
  T* const start = reinterpret_cast<T*>(memory);
  memory += (static_cast<int64_t>(sizeof(T)) * (n + 1) + 63) / 64 * 64;
  return start;
}
template <class T>
inline int64_t taken(int64_t n) {
  return (static_cast<int64_t>(sizeof(T)) * (n + 1) + 63) / 64 * 64;
}

// Neighbouring features of an example, multiplied with one parent. Products that belong to another parent have the value 0.
template <class Real>
struct Stretch {
  uint64_t base;
  int64_t from, count;
  const Real* x;
  Real a;
};

template <class Real>
class Parents {
 public:
  Parents(const pm_online& model, char*& memory, int64_t n, int64_t expanded)
      : model_(model), p_(*model.parents), present_(take<uint64_t>(memory, p_.words)),
        position_(take<uint32_t>(memory, p_.n_factors)), cut_(take<uint32_t>(memory, p_.n_factors)),
        active_(take<uint32_t>(memory, p_.n)), value_(take<Real>(memory, p_.n)), key_(take<uint64_t>(memory, n)),
        place_(take<uint32_t>(memory, looked_up(p_) ? expanded : 0)),
        product_(take<Real>(memory, looked_up(p_) ? expanded : 0)),
        trial_(take<uint32_t>(memory, p_.joined ? expanded : 0)),
        trial_product_(take<Real>(memory, p_.joined ? expanded : 0)),
        stretch_(take<Stretch<Real>>(memory, looked_up(p_) ? 0 : expanded)),
        filled_(take<Real>(memory, looked_up(p_) ? 0 : expanded)),
        filter_(take<uint64_t>(memory, filter_words(model))) {}
  static int64_t bytes(const pm_online& model, int64_t n, int64_t expanded) {
    const pm_parents& p = *model.parents;
    const int64_t found = looked_up(p) ? expanded : 0, tried = p.joined ? expanded : 0, laid = expanded - found;
    return taken<uint64_t>(p.words) + 2 * taken<uint32_t>(p.n_factors) + taken<uint32_t>(p.n) + taken<Real>(p.n) +
           taken<uint64_t>(n) + taken<uint32_t>(found) + taken<Real>(found) + taken<uint32_t>(tried) + taken<Real>(tried) +
           taken<Stretch<Real>>(laid) + taken<Real>(laid) + taken<uint64_t>(filter_words(model));
  }

  // A full table takes no more products, so most are looked up in vain. A bit for each that it has, eight bits a slot,
  // lies in a near cache and says so for all but an eighth of them. It is made when a call has looked up as many products
  // as there are slots: for a few examples it would cost more than it saves.
  static int64_t filter_words(const pm_online& model) {
    const pm_parents& p = *model.parents;
    const uint64_t slots = model.regions[1].n_slots;
    return p.block == 0 && slots >= 8 && slots <= kMostFiltered ? static_cast<int64_t>(slots / 8) : 0;
  }

  // Whether products are looked up one by one before they are gathered.
  static bool looked_up(const pm_parents& p) { return p.block == 0 || p.joined; }
  bool looked_up() const { return looked_up(p_); }

  // Finds the parents that this example has. No value is zero, no row comes twice.
  void find(const uint32_t* rows, const Real* x, int64_t n, bool sorted) {
    rows_ = rows, x_ = x, n_ = n, sorted_ = sorted, n_active_ = 0;
    std::memset(present_, 0, static_cast<size_t>(p_.words) * sizeof(uint64_t));
    bool aligned = n == p_.n_factors;
    for (int64_t k = 0; k < n; ++k) {
      const uint32_t f = rows[k] < p_.n_rows ? p_.factor_of_row[rows[k]] : 0;
      aligned &= f == static_cast<uint32_t>(k + 1);
      if (!f) continue;
      present_[(f - 1) >> 6] |= uint64_t{1} << ((f - 1) & 63);
      position_[f - 1] = static_cast<uint32_t>(k);
      if (p_.single[f - 1]) add(p_.single[f - 1] - 1, x[k]);
    }
    aligned_ = aligned;
    for (int64_t a = 0; a < n_active_; ++a) {
      const uint32_t parent = active_[a];
      for (int64_t c = p_.children[parent]; c < p_.children[parent + 1]; ++c) {
        const uint32_t f = p_.child_factor[c];
        if (present_[f >> 6] >> (f & 63) & 1) add(p_.child[c], value_[a] * x[position_[f]]);
      }
    }
  }

  // Calls visit(parent, value, from, to): the parent's products with features from … to are features of the example.
  template <class Visit>
  void each_piece(Visit&& visit) const {
    for (int64_t a = 0; a < n_active_; ++a) {
      const uint32_t parent = active_[a];
      const uint64_t* const excluded = p_.excluded + static_cast<int64_t>(parent) * p_.words;
      const auto piece = [&](int64_t from, int64_t to) {
        if (from < to) visit(parent, value_[a], from, to);
      };
      aligned_ ? aligned_pieces(excluded, piece) : cut_pieces(excluded, piece);
    }
  }

  // No more products than this, gaps included.
  int64_t most() const { return n_active_ * n_; }
  int64_t count() const {
    int64_t total = 0;
    each_piece([&](uint32_t, Real, int64_t from, int64_t to) { total += to - from; });
    return total;
  }

  // Lays the products of blocks out in stretches as long as possible: short gaps are filled with zeros.
  void lay_out() {
    n_stretches_ = n_zeros_ = 0;
    Real* filled = filled_;  // values of stretches with gaps
    uint64_t base = 0;
    each_piece([&](uint32_t parent, Real a, int64_t from, int64_t to) {
      Stretch<Real>& last = stretch_[n_stretches_ ? n_stretches_ - 1 : 0];
      const uint64_t own = static_cast<uint64_t>(parent) * static_cast<uint64_t>(p_.block);
      const int64_t gap = n_stretches_ && own == base ? from - (last.from + last.count) : kGap;
      if (gap >= kGap) {
        stretch_[n_stretches_++] = {own, from, to - from, x_ + from, a};
        base = own;
        return;
      }
      if (last.x == x_ + last.from) {
        std::memcpy(filled, last.x, static_cast<size_t>(last.count) * sizeof(Real));
        last.x = filled;
        filled += last.count;
      }
      for (int64_t k = 0; k < gap; ++k) *filled++ = 0;
      std::memcpy(filled, x_ + from, static_cast<size_t>(to - from) * sizeof(Real));
      filled += to - from;
      last.count += gap + to - from;
      n_zeros_ += gap;
    });
  }
  const Stretch<Real>* stretches() const { return stretch_; }
  int64_t n_stretches() const { return n_stretches_; }
  // Features of stretches that are none.
  int64_t n_zeros() const { return n_zeros_; }

  // Looks all products up. While learning, new ones get a slot as long as there is room.
  void look_up(bool learning) {
    n_places_ = n_trials_ = 0;
    if (p_.block) {
      each_piece([&](uint32_t parent, Real a, int64_t from, int64_t to) {
        const uint32_t base = static_cast<uint32_t>(parent * p_.block);
        for (int64_t k = from; k < to; ++k) keep(base + rows_[k], a * x_[k]);
      });
      return;
    }
    looked_ += static_cast<uint64_t>(most());
    if (!filtered_ && p_.used >= p_.limit && looked_ > model_.regions[1].n_slots && filter_words(model_)) fill_filter();
    for (int64_t k = 0; k < n_; ++k) key_[k] = mix(rows_[k]);
    each_piece([&](uint32_t parent, Real a, int64_t from, int64_t to) {
      for (int64_t k = from; k < to; k += kBlock) find_block(parent, a, k, std::min(k + kBlock, to), learning);
    });
  }

  const uint32_t* places() const { return place_; }
  const Real* products() const { return product_; }
  int64_t n_places() const { return n_places_; }
  const uint32_t* trials() const { return trial_; }
  const Real* trial_products() const { return trial_product_; }
  int64_t n_trials() const { return n_trials_; }

 private:
  static constexpr int64_t kBlock = 128;
  static constexpr uint64_t kMostFiltered = 1 << 20;  // slots; beyond, the bits would not lie in a near cache
  static constexpr int64_t kGap = 8;  // to begin a stretch costs about as much as so many features

  void add(uint32_t parent, Real value) {
    active_[n_active_] = parent;
    value_[n_active_++] = value;
  }

  // The features of the example are the factors 0, 1 …, so that bits are positions.
  template <class Piece>
  void aligned_pieces(const uint64_t* excluded, Piece& piece) const {
    int64_t from = 0;
    while (from < n_) {
      const int64_t stop = next_bit(excluded, from, 0);
      piece(from, stop);
      from = next_bit(excluded, stop, ~uint64_t{0});
    }
  }
  // The first bit at or after `from` that is 1 (flip 0) or 0 (flip all ones).
  int64_t next_bit(const uint64_t* bits, int64_t from, uint64_t flip) const {
    if (from >= n_) return n_;
    int64_t w = from >> 6;
    uint64_t word = (bits[w] ^ flip) & (~uint64_t{0} << (from & 63));
    while (!word) {
      if (++w >= p_.words) return n_;
      word = bits[w] ^ flip;
    }
    return std::min(n_, w * 64 + __builtin_ctzll(word));
  }

  template <class Piece>
  void cut_pieces(const uint64_t* excluded, Piece& piece) const {
    int64_t cuts = 0;
    for (int64_t w = 0; w < p_.words; ++w)
      for (uint64_t bits = excluded[w] & present_[w]; bits; bits &= bits - 1)
        cut_[cuts++] = position_[w * 64 + __builtin_ctzll(bits)];
    if (!sorted_) std::sort(cut_, cut_ + cuts);
    int64_t from = 0;
    for (int64_t i = 0; i < cuts; ++i) {
      piece(from, cut_[i]);
      from = cut_[i] + 1;
    }
    piece(from, n_);
  }

  void keep(uint32_t place, Real product) {
    if (p_.joined && !p_.joined[place]) {
      trial_[n_trials_] = place;
      trial_product_[n_trials_++] = product;
    } else {
      place_[n_places_] = place;
      product_[n_places_++] = product;
    }
  }

  char* tag_at(uint64_t place) const {
    const pm_region& r = model_.regions[1];
    const uint64_t tag = model_.n_outputs == 1 ? 3 : 1;  // a number that learning leaves alone
    return static_cast<char*>(r.slots) + (place * static_cast<uint64_t>(model_.stride) + tag) * sizeof(Real);
  }

  uint64_t filter_bit(uint64_t id) const { return id >> 24 & (model_.regions[1].n_slots * 8 - 1); }

  void fill_filter() {
    const uint64_t slots = model_.regions[1].n_slots;
    std::memset(filter_, 0, static_cast<size_t>(slots));
    for (uint64_t at = 0; at < slots; ++at) {
      uint32_t tag;
      std::memcpy(&tag, tag_at(at), sizeof tag);
      if (!tag) continue;
      const uint64_t bit = filter_bit(p_.keys[p_.owners[at].parent] + mix(p_.owners[at].row));
      filter_[bit >> 6] |= uint64_t{1} << (bit & 63);
    }
    filtered_ = true;
  }

  // Slots are asked for before they are looked at.
  void find_block(uint32_t parent, Real a, int64_t from, int64_t to, bool learning) {
    const uint64_t mask = model_.regions[1].n_slots - 1, base = p_.keys[parent];
    uint32_t maybe[kBlock];
    int64_t n = 0;
    for (int64_t k = from; k < to; ++k) {
      maybe[n] = static_cast<uint32_t>(k);
      const uint64_t bit = filter_bit(base + key_[k]);
      n += filtered_ ? filter_[bit >> 6] >> (bit & 63) & 1 : 1;
    }
    for (int64_t i = 0; i < n; ++i) __builtin_prefetch(tag_at((base + key_[maybe[i]]) & mask), 1);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = maybe[i];
      const uint64_t id = base + key_[k];
      const uint32_t tag = static_cast<uint32_t>(id >> 32) | 1;
      uint64_t at = id & mask;
      for (;; at = (at + 1) & mask) {
        uint32_t there;
        std::memcpy(&there, tag_at(at), sizeof there);
        if (there == tag) break;
        if (there) continue;
        if (!learning || p_.used >= p_.limit) {
          at = mask + 1;
          break;
        }
        std::memcpy(tag_at(at), &tag, sizeof tag);
        p_.owners[at] = {parent, rows_[k]};
        ++p_.used;
        break;
      }
      if (at <= mask) keep(static_cast<uint32_t>(at), a * x_[k]);
    }
  }

  const pm_online& model_;
  pm_parents& p_;
  uint64_t* present_;
  uint32_t *position_, *cut_, *active_;
  Real* value_;
  uint64_t* key_;
  uint32_t* place_;
  Real* product_;
  uint32_t* trial_;
  Real* trial_product_;
  Stretch<Real>* stretch_;
  Real* filled_;
  uint64_t* filter_;
  bool filtered_ = false;
  uint64_t looked_ = 0;
  int64_t n_stretches_ = 0, n_zeros_ = 0;
  const uint32_t* rows_ = nullptr;
  const Real* x_ = nullptr;
  int64_t n_ = 0, n_active_ = 0, n_places_ = 0, n_trials_ = 0;
  bool sorted_ = false, aligned_ = false;
};

}  // namespace PM_ISA
}  // namespace pm
