// apple: products of the chosen monomials (parents) with the base features of one example.
//
// Parents form a tree: each is a base feature, or another parent times a base feature. So the parents that an example has
// are found by walking down from its features, never by looking at all of them. A product may come from several parents;
// it belongs to one, and the others leave it out (`excluded`): one feature a monomial, whatever the path to it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "eights.h"
#include "hash.h"
#include "key_table.h"
#include "lanes.h"
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

constexpr int64_t kPlacesAhead = 32;  // products between prefetch and use
constexpr uint64_t kCached = 1 << 19;  // bytes: smaller tables need no prefetch

// Which products of an example none before it had.
struct NewProducts {
  bool any;
  const uint32_t* at;  // their numbers, rising; null: they are among all of them
  int64_t n;
};

template <class Real>
class Parents {
 public:
  Parents(const pm_online& model, char*& memory, int64_t n, int64_t expanded)
      : model_(model), p_(*model.parents), table_(KeyTable::of(model)), present_(take<uint64_t>(memory, p_.words)),
        position_(take<uint32_t>(memory, p_.n_factors)), cut_(take<uint32_t>(memory, p_.n_factors)),
        active_(take<uint32_t>(memory, p_.n + 1)), value_(take<Real>(memory, p_.n + 1)),
        end_(take<int64_t>(memory, p_.n)), key_(take<uint64_t>(memory, n)),
        place_(take<uint32_t>(memory, expanded + kBehind)), row_(take<uint32_t>(memory, expanded + kBehind)),
        product_(take<Real>(memory, expanded + kBehind)),
        trial_(take<uint32_t>(memory, p_.joined ? expanded : 0)),
        trial_product_(take<Real>(memory, p_.joined ? expanded : 0)),
        id_(take<uint64_t>(memory, keyed(model) ? expanded : 0)), owner_(take<pm_product>(memory, keyed(model) ? expanded : 0)),
        met_(take<uint32_t>(memory, n + 1)), quadrupled_(take<uint32_t>(memory, n + 8)),
        factors_(take<uint64_t>(memory, n / 64 + 1)), left_out_(take<uint64_t>(memory, n / 64 + 1)),
        out_(take<uint64_t>(memory, p_.words + 1)), filter_(take<uint64_t>(memory, filter_words(model))), looked_up_(keyed(model) || p_.joined) {}
  static int64_t bytes(const pm_online& model, int64_t n, int64_t expanded) {
    const pm_parents& p = *model.parents;
    const int64_t tried = p.joined ? expanded : 0, asked = keyed(model) ? expanded : 0;
    return taken<uint64_t>(p.words) + 2 * taken<uint32_t>(p.n_factors) + taken<uint32_t>(p.n + 1) + taken<Real>(p.n + 1) +
           taken<int64_t>(p.n) + taken<uint64_t>(n) + 2 * taken<uint32_t>(expanded + kBehind) +
           taken<Real>(expanded + kBehind) +
           taken<uint32_t>(tried) + taken<Real>(tried) + taken<uint64_t>(asked) + taken<pm_product>(asked) +
           taken<uint32_t>(n + 1) + taken<uint32_t>(n + 8) + 2 * taken<uint64_t>(n / 64 + 1) + taken<uint64_t>(p.words + 1) +
           taken<uint64_t>(filter_words(model));
  }

  // A full table takes no more products, so most are looked up in vain. A bit for each that it has, eight bits a slot,
  // lies in a near cache and says so for all but an eighth of them. It is made when a call has looked up as many products
  // as there are slots: for a few examples it would cost more than it saves.
  static int64_t filter_words(const pm_online& model) {
    const uint64_t slots = model.regions[1].n_slots;
    return keyed(model) && slots >= 8 && slots <= kMostFiltered ? static_cast<int64_t>(slots / 8) : 0;
  }

  // Whether products are found by key, in slots that hold a tag.
  static bool keyed(const pm_online& model) { return model.parents->block == 0 && !model.regions[1].hashed; }
  // Whether products are looked up one by one before they are gathered.
  bool looked_up() const { return looked_up_; }

  // Finds the parents that this example has. No value is zero; with few bits two features may share a row.
  inline __attribute__((always_inline)) void find(const uint32_t* rows, const Real* x, int64_t n, bool sorted) {
    rows_ = rows, x_ = x, n_ = n, sorted_ = sorted, n_active_ = 0;
    if (p_.n == 0) return;
    const int64_t n_met = meet_factors();
    // What there is goes into a list and the list grows by 0 or 1: a branch for each could not be foreseen.
    int64_t n_active = 0;
    const auto add = [&](uint32_t parent, Real value, bool there) __attribute__((always_inline)) {
      active_[n_active] = parent, value_[n_active] = value;
      n_active += there;
    };
    if (sorted && p_.words == 1 && n < 64) {  // as in most tables: what bits there are stays in registers
      uint64_t present = 0, factors = 0;
      for (int64_t i = 0; i < n_met; ++i) {
        const uint32_t k = met_[i], f = factor_of(k) - 1;
        present |= uint64_t{1} << f, factors |= uint64_t{1} << k;
        position_[f] = k;
        add(p_.single[f] - 1, x[k], p_.single[f]);
      }
      present_[0] = present, factors_[0] = factors;
      aligned_ = n == p_.n_factors && n_met == n;
    } else {
      clear(present_, p_.words);
      clear(factors_, n / 64 + 1);
      bool aligned = n == p_.n_factors && n_met == n;
      for (int64_t i = 0; i < n_met; ++i) {
        const uint32_t k = met_[i], f = factor_of(k) - 1;
        aligned &= f == k;
        const uint64_t bit = uint64_t{1} << (f & 63);
        if (present_[f >> 6] & bit) continue;  // a second feature of this row: a parent is there once
        present_[f >> 6] |= bit;
        position_[f] = k;
        factors_[k >> 6] |= uint64_t{1} << (k & 63);
        add(p_.single[f] - 1, x[k], p_.single[f]);
      }
      aligned_ = aligned;
    }
    for (int64_t a = 0; a < n_active; ++a) {
      const uint32_t parent = active_[a];
      for (int64_t c = p_.children[parent]; c < p_.children[parent + 1]; ++c) {
        const uint32_t f = p_.child_factor[c];
        const bool there = present_[f >> 6] >> (f & 63) & 1;
        add(p_.child[c], value_[a] * x[there ? position_[f] : 0], there);
      }
    }
    n_active_ = n_active;
  }

  // Calls visit(parent, value, from, to): the parent's products with features from … to are features of the example.
  template <class Visit>
  void each_piece(Visit&& visit) const {
    for (int64_t a = 0; a < n_active_; ++a) each_piece_of(a, visit);
  }

  // No more products than this, gaps included.
  int64_t most() const { return n_active_ * n_; }
  int64_t count() const {
    int64_t total = 0;
    each_piece([&](uint32_t, Real, int64_t from, int64_t to) { total += to - from; });
    return total;
  }

  // The products whose slots follow from parent and row: those of blocks, and hashed ones.
  inline __attribute__((always_inline)) void lay_out() {
    n_places_ = 0;
    if (n_active_ == 0) return;
    find_rows();
#if defined(__AVX2__) && defined(__BMI2__)
    if constexpr (sizeof(Real) == sizeof(float)) return p_.block ? lay_out_eight<false>() : lay_out_eight<true>();
#endif
    lay_out_one_by_one();
  }

  // The slots of the first products are asked for while the base features are gathered.
  void ask_for_first() const {
    const char* const slots = static_cast<const char*>(model_.regions[1].slots);
    const uint64_t bytes = static_cast<uint64_t>(model_.stride) * sizeof(Real);
    if (model_.regions[1].n_slots * bytes <= kCached) return;
    const int64_t n = std::min(n_places_, kPlacesAhead);
    for (int64_t i = 0; i < n; ++i) __builtin_prefetch(slots + place_[i] * bytes, 1);
  }

  // Notes in the slots of the example's hashed products, in all or in new ones, whose they are. Of products that share
  // one the last stays.
  void sign(bool all, const NewProducts& fresh) {
    if (p_.joined) return sign_pieces(all);
    const bool listed = !all && fresh.at;
    const int64_t n = listed ? fresh.n : n_places_;
    for (int64_t j = 0, a = 0; j < n; ++j) {
      const int64_t i = listed ? fresh.at[j] : j;
      if (!all && table_.tag_at(place_[i])) continue;
      while (i >= end_[a]) ++a;
      p_.owners[place_[i]] = {active_[a], row_[i]};
      table_.take(place_[i], 0);
    }
  }

  // Looks all products up. While learning, new ones get a slot as long as there is room.
  void look_up(bool learning) {
    n_places_ = n_trials_ = 0;
    if (n_active_ == 0) return;
    if (!keyed(model_)) {
      find_rows();
      each_piece([&](uint32_t parent, Real a, int64_t from, int64_t to) {
        const Way way = way_to(parent);
        for (int64_t k = from; k < to; ++k) keep(way(where_[k]), a * x_[k]);
      });
      return;
    }
    looked_ += static_cast<uint64_t>(most());
    if (!filtered_ && p_.used >= p_.limit && looked_ > model_.regions[1].n_slots && filter_words(model_)) fill_filter();
    for (int64_t k = 0; k < n_; ++k) key_[k] = mix(rows_[k]);
    int64_t n = 0;
    each_piece([&](uint32_t parent, Real a, int64_t from, int64_t to) {
      n = filtered_ ? ask<true>(parent, a, from, to, n) : ask<false>(parent, a, from, to, n);
    });
    find_asked(n, learning);
  }

  const uint32_t* places() const { return place_; }
  const Real* products() const { return product_; }
  int64_t n_places() const { return n_places_; }
  const uint32_t* trials() const { return trial_; }
  const Real* trial_products() const { return trial_product_; }
  int64_t n_trials() const { return n_trials_; }

 private:
  static constexpr uint64_t kMostFiltered = 1 << 20;  // slots; beyond, the bits would not lie in a near cache
  static constexpr int64_t kBehind = 8;  // places and products that may be written behind the last

  // Where the products of a parent stand, unless they are looked up, by where_ of the feature: its row, or four times it in
  // a hashed table (see start_of_products).
  struct Way {
    uint32_t base, mask;
    uint32_t operator()(uint32_t where) const { return (base + where) & mask; }
  };
  Way way_to(uint32_t parent) const {
    if (p_.block) return {static_cast<uint32_t>(parent * static_cast<uint64_t>(p_.block)), ~uint32_t{0}};
    return {start_of_products(parent), static_cast<uint32_t>(model_.regions[1].n_slots - 1)};
  }
  void find_rows() {
    where_ = p_.block ? rows_ : quadrupled_;
    if (p_.block) return;
    for (int64_t k = 0; k < n_; ++k) quadrupled_[k] = rows_[k] << 2;
  }

  // The same where some products are on trial.
  void sign_pieces(bool all) const {
    each_piece([&](uint32_t parent, Real, int64_t from, int64_t to) {
      const Way way = way_to(parent);
      for (int64_t k = from; k < to; ++k) {
        const uint32_t place = way(where_[k]);
        if (!all && table_.tag_at(place)) continue;
        p_.owners[place] = {parent, rows_[k]};
        table_.take(place, 0);
      }
    });
  }

  // Most often there is one word, and a call would take longer than all else.
  static void clear(uint64_t* words, int64_t n) {
    words[0] = 0;
    if (n > 1) std::memset(words + 1, 0, static_cast<size_t>(n - 1) * sizeof(uint64_t));
  }

  // met_: the features that are factors. The answer: how many.
  int64_t meet_factors() {
    if (p_.n_rows > PM_NEAR_ROWS) return meet_far_factors();
    const uint32_t *const rows = rows_, *const factor_of_row = p_.factor_of_row;
    const uint32_t none = static_cast<uint32_t>(p_.n_rows);
    uint32_t* const found = met_;
    const int64_t n = n_;
    int64_t met = 0;
#pragma GCC unroll 4
    for (int64_t k = 0; k < n; ++k) {
      found[met] = static_cast<uint32_t>(k);
      met += factor_of_row[std::min(rows[k], none)] != 0;
    }
    return met;
  }
  // Where rows are many, factor_of_row lies in a far cache and few features are factors: bits tell most of the others.
  int64_t meet_far_factors() {
    const uint32_t* const rows = rows_;
    const uint64_t* const near_rows = p_.near_rows;
    uint32_t* const found = met_;
    const int64_t n = n_;
    int64_t near = 0, met = 0;
#pragma GCC unroll 4
    for (int64_t k = 0; k < n; ++k) {
      const uint32_t bit = rows[k] % PM_NEAR_ROWS;
      found[near] = static_cast<uint32_t>(k);
      near += near_rows[bit >> 6] >> (bit & 63) & 1;
    }
    for (int64_t i = 0; i < near; ++i) {
      const uint32_t k = met_[i];
      met_[met] = k;
      met += factor_of(k) != 0;
    }
    return met;
  }
  // Which factor a feature is, counted from 1; 0: none.
  uint32_t factor_of(int64_t k) const { return p_.factor_of_row[std::min<int64_t>(rows_[k], p_.n_rows)]; }

  template <class Visit>
  void each_piece_of(int64_t a, Visit&& visit) const {
    const uint32_t parent = active_[a];
    const uint64_t* const excluded = p_.excluded + static_cast<int64_t>(parent) * p_.words;
    const auto piece = [&](int64_t from, int64_t to) {
      if (from < to) visit(parent, value_[a], from, to);
    };
    aligned_ ? aligned_pieces(excluded, piece) : cut_pieces(excluded, piece);
  }

  __attribute__((noinline)) void lay_out_one_by_one() {
    for (int64_t i = 0; i < n_active_; ++i) {
      each_piece_of(i, [&](uint32_t parent, Real a, int64_t from, int64_t to) {
        const Way way = way_to(parent);
        for (int64_t k = from; k < to; ++k) {
          place_[n_places_] = way(where_[k]);
          row_[n_places_] = rows_[k];
          product_[n_places_++] = a * x_[k];
        }
      });
      end_[i] = n_places_;
    }
  }

#if defined(__AVX2__) && defined(__BMI2__)
  // The same, eight at once. The loops work on copies of members, which stay in registers: what is stored as a vector might
  // be any member.
  template <bool hashed>
  void lay_out_eight() {
    const int64_t n = n_, n_active = n_active_, words = p_.words;
    const bool few = sorted_ && words == 1 && n < 64;  // as in most tables
    const uint64_t present = present_[0], factors = factors_[0], all = few ? (uint64_t{1} << n) - 1 : 0;
    const uint32_t* const active = active_;
    const Real* const value = value_;
    int64_t* const end = end_;
    const Eights<Real, hashed> eights{where_, rows_, x_, place_, row_, product_};
    int64_t count = 0;
    for (int64_t i = 0; i < n_active; ++i) {
      const uint64_t* const excluded = p_.excluded + static_cast<int64_t>(active[i]) * words;
      const Way way = way_to(active[i]);
      const __m256i base = _mm256_set1_epi32(static_cast<int32_t>(way.base));
      const __m256i mask = _mm256_set1_epi32(static_cast<int32_t>(way.mask));
      const __m256 a = _mm256_set1_ps(static_cast<float>(value[i]));
      if (few) {
        uint64_t kept = all & ~_pdep_u64(_pext_u64(excluded[0], present), factors);
        for (int64_t k = 0; k < n; k += 8, kept >>= 8) count += eights.keep(k, kept & 255, count, base, mask, a);
      } else {
        sorted_ ? leave_out_rising(excluded) : leave_out(excluded);
        for (int64_t start = 0; start < n; start += 64) {
          uint64_t kept = ~left_out_[start >> 6];
          const int64_t stop = std::min(n - start, int64_t{64});
          if (stop < 64) kept &= (uint64_t{1} << stop) - 1;
          for (int64_t k = start; k < start + stop; k += 8, kept >>= 8)
            count += eights.keep(k, kept & 255, count, base, mask, a);
        }
      }
      end[i] = count;
    }
    n_places_ = count;
  }

  // left_out_: the features whose products with the parent belong to another.
  void leave_out(const uint64_t* excluded) {
    clear(left_out_, n_ / 64 + 1);
    for (int64_t w = 0; w < p_.words; ++w)
      for (uint64_t bits = excluded[w] & present_[w]; bits; bits &= bits - 1) {
        const uint32_t k = position_[w * 64 + __builtin_ctzll(bits)];
        left_out_[k >> 6] |= uint64_t{1} << (k & 63);
      }
  }
  // The same for features in rising order. Factors, too, come in that order: so bits of factors are moved to their features.
  void leave_out_rising(const uint64_t* excluded) {
    int64_t n = 0;
    out_[0] = 0;
    for (int64_t w = 0; w < p_.words; ++w) {
      if (!present_[w]) continue;
      const uint64_t bits = _pext_u64(excluded[w], present_[w]);
      const int shift = static_cast<int>(n & 63);
      out_[n >> 6] |= bits << shift;
      out_[(n >> 6) + 1] = shift ? bits >> (64 - shift) : 0;
      n += __builtin_popcountll(present_[w]);
    }
    int64_t seen = 0;  // factors
    for (int64_t w = 0; w < n_ / 64 + 1; ++w) {
      const uint64_t* const bits = out_ + (seen >> 6);
      const int shift = static_cast<int>(seen & 63);
      left_out_[w] = _pdep_u64(bits[0] >> shift | (shift ? bits[1] << (64 - shift) : 0), factors_[w]);
      seen += __builtin_popcountll(factors_[w]);
    }
  }
#endif

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

  uint64_t filter_bits() const { return model_.regions[1].n_slots * 8 - 1; }

  void fill_filter() {
    const uint64_t slots = model_.regions[1].n_slots, bits = filter_bits();
    std::memset(filter_, 0, static_cast<size_t>(slots));
    for (uint64_t at = 0; at < slots; ++at) {
      if (!table_.tag_at(at)) continue;
      const uint64_t bit = (p_.keys[p_.owners[at].parent] + mix(p_.owners[at].row)) >> 24 & bits;
      filter_[bit >> 6] |= uint64_t{1} << (bit & 63);
    }
    filtered_ = true;
  }

  // Slots of all products of an example are asked for before the first is looked at. The answer: how many there are.
  template <bool filtered>
  int64_t ask(uint32_t parent, Real a, int64_t from, int64_t to, int64_t n) {
    const uint64_t base = p_.keys[parent], bits = filter_bits();
    const uint64_t *const keys = key_, *const filter = filter_;
    const Real* const x = x_;
    uint64_t* const ids = id_;
    Real* const products = product_;
    const int64_t first = n;
    for (int64_t k = from; k < to; ++k) {
      const uint64_t id = base + keys[k], bit = id >> 24 & bits;
      ids[n] = id;
      products[n] = a * x[k];
      if (filtered) n += filter[bit >> 6] >> (bit & 63) & 1;
      else owner_[n++] = {parent, rows_[k]};
    }
    for (int64_t i = first; i < n; ++i) table_.ask(ids[i]);
    return n;
  }

  void find_asked(int64_t n, bool learning) {
    const KeyTable table = table_;
    const uint64_t* const ids = id_;
    for (int64_t i = 0; i < n; ++i) {
      KeyTable::Place place = table.find(ids[i]);
      if (!place.found && learning && p_.used < p_.limit) {
        table.take(place.slot, ids[i]);
        p_.owners[place.slot] = owner_[i];
        ++p_.used;
        place.found = true;
      }
      if (place.found) keep(static_cast<uint32_t>(place.slot), product_[i]);
    }
  }

  const pm_online& model_;
  pm_parents& p_;
  const KeyTable table_;
  uint64_t* present_;
  uint32_t *position_, *cut_, *active_;
  Real* value_;
  int64_t* end_;  // of the products that are laid out, by active parent
  uint64_t* key_;
  uint32_t *place_, *row_;  // of products; rows where they are hashed
  Real* product_;
  uint32_t* trial_;
  Real* trial_product_;
  uint64_t* id_;
  pm_product* owner_;
  uint32_t *met_, *quadrupled_;
  uint64_t *factors_, *left_out_;  // bits of features: those that are factors, and those that are left out
  uint64_t* out_;  // bits of the factors that the example has: those that are left out
  uint64_t* filter_;
  const bool looked_up_;
  bool filtered_ = false;
  uint64_t looked_ = 0;
  const uint32_t *rows_ = nullptr, *where_ = nullptr;
  const Real* x_ = nullptr;
  int64_t n_ = 0, n_active_ = 0, n_places_ = 0, n_trials_ = 0;
  bool sorted_ = false, aligned_ = false;
};

}  // namespace PM_ISA
}  // namespace pm
