// Numbers feature ids in the order of their first appearance: frequent features get small rows, so the hot part of
// a weight table is contiguous.
#include "pomona.h"

#include <algorithm>
#include <cstring>

#include "hash.h"

namespace {

constexpr int64_t kAhead = 32;      // ids between prefetch and use
constexpr uint64_t kNear = 1 << 12;  // entries of a map in a near cache: following is worth while for half of the ids,
constexpr int64_t kFar = 16;         // in others for one of so many
constexpr int64_t kCheck = 1 << 11;  // ids after which that is asked
constexpr int64_t kPiece = 1 << 11;  // ids that are looked at together

inline uint64_t home(uint64_t id, uint64_t mask) { return (id ^ (id >> 32)) & mask; }

// An entry is complete once its row is there: another thread may look for ids while one inserts.
inline uint64_t row_of(const pm_map_entry& entry) { return __atomic_load_n(&entry.row_plus_one, __ATOMIC_ACQUIRE); }
inline uint64_t id_of(const pm_map_entry& entry) { return __atomic_load_n(&entry.id, __ATOMIC_RELAXED); }
inline void fill(pm_map_entry& entry, uint64_t id, uint64_t row_plus_one) {
  __atomic_store_n(&entry.id, id, __ATOMIC_RELAXED);
  __atomic_store_n(&entry.row_plus_one, row_plus_one, __ATOMIC_RELEASE);
}

// Dense data repeats the ids of the example before, with some left out: then the answers are there already.
class Follower {
 public:
  // Whether ids[i] stands where it is expected, or a little later.
  bool finds(const uint64_t* ids, int64_t i, int64_t n) {
    if (trust_ == 0) {  // wait until the first two ids of an example come again
      if (ids[i] != ids[first_] || i == 0 || i + 1 == n || ids[i + 1] != ids[first_ + 1]) return false;
      at_ = first_;
      first_ = i;
    } else {
      int64_t at = at_ + 1;  // below i, always
      const int64_t stop = std::min(at + kSkips, i - 1);
      while (ids[at] != ids[i]) {
        if (at++ < stop) continue;
        --trust_;
        return false;
      }
      at_ = at;
    }
    trust_ = std::min(trust_ + 1, kTrust);
    return true;
  }
  int64_t place() const { return at_; }

  // As `finds`, for eight ids that follow each other as they did before.
  bool finds_eight(const uint64_t* ids, int64_t i, int64_t n) {
    if (trust_ < kTrust || i + 8 > n || at_ + 8 >= i || std::memcmp(ids + at_ + 1, ids + i, 64) != 0) return false;
    at_ += 8;
    return true;
  }

 private:
  static constexpr int kSkips = 2, kTrust = 8;
  int64_t at_ = 0, first_ = 0;
  int trust_ = 0;
};

// Calls visit(i), in order, for the positions i from `first` on for which wanted(i) is true, until it says no: whether
// it never did. The ids of later positions are asked for meanwhile. Positions are listed piece by piece, without a branch
// for each of them, since which are wanted cannot be foreseen.
template <class Wanted, class Ask, class Visit>
inline __attribute__((always_inline)) bool visit_wanted(int64_t first, int64_t n, Wanted wanted, Ask ask, Visit visit) {
  constexpr int64_t kTogether = 8;
  uint16_t listed[kPiece + kTogether];
  for (int64_t start = first; start < n; start += kPiece) {
    const int64_t stop = std::min(start + kPiece, n);
    int64_t count = 0, i = start;
    for (; i + kTogether <= stop; i += kTogether) {
      bool any = false;
      for (int64_t k = i; k < i + kTogether; ++k) any |= wanted(k);
      if (!any) continue;
      for (int64_t k = i; k < i + kTogether; ++k) {
        listed[count] = static_cast<uint16_t>(k - start);
        count += wanted(k);
      }
    }
    for (; i < stop; ++i) {
      listed[count] = static_cast<uint16_t>(i - start);
      count += wanted(i);
    }
    for (int64_t c = 0; c < std::min(count, kAhead); ++c) ask(start + listed[c]);
    for (int64_t c = 0; c < count; ++c) {
      if (c + kAhead < count) ask(start + listed[c + kAhead]);
      if (!visit(start + listed[c])) return false;
    }
  }
  return true;
}

}  // namespace

int32_t pm_map_insert(pm_map* map, const uint64_t* ids, int64_t n, int32_t found, uint32_t* rows, int64_t* fresh,
                      int64_t* n_fresh, int64_t* done) {
  const uint64_t mask = map->capacity - 1, kept = map->kept;
  pm_map_entry* const entries = map->entries;
  const uint64_t room = std::min(map->limit, map->capacity / 4 * 3);
  int64_t found_new = *n_fresh;
  const auto ask = [=](int64_t i) { __builtin_prefetch(entries + home(ids[i] & kept, mask)); };
  const auto insert = [&](int64_t i) {
    const uint64_t id = ids[i] & kept;
    uint64_t p = home(id, mask);
    while (entries[p].row_plus_one && entries[p].id != id) p = (p + 1) & mask;
    if (!entries[p].row_plus_one) {
      if (map->count >= map->limit) {
        rows[i] = map->limit ? static_cast<uint32_t>(id % map->limit) : PM_NO_ROW;
        return true;
      }
      if (map->count >= room) {
        *done = i;
        return false;
      }
      fill(entries[p], id, ++map->count);
      fresh[found_new++] = i;
    }
    rows[i] = static_cast<uint32_t>(entries[p].row_plus_one - 1);
    return true;
  };
  const bool all = found ? visit_wanted(*done, n, [=](int64_t i) { return rows[i] == PM_NO_ROW; }, ask, insert)
                         : visit_wanted(*done, n, [](int64_t) { return true; }, ask, insert);
  *n_fresh = found_new;
  if (!all) return PM_FULL;
  *done = n;
  return PM_OK;
}

int32_t pm_map_find(const pm_map* map, const uint64_t* ids, int64_t n, uint32_t* rows) {
  const uint64_t mask = map->capacity - 1, kept = map->kept;
  const pm_map_entry* const entries = map->entries;
  const uint64_t limit = map->limit && map->count >= map->limit ? map->limit : 0;
  const auto ask = [=](int64_t i) { __builtin_prefetch(entries + home(ids[i] & kept, mask)); };
  const auto find = [=](int64_t i) {
    const uint64_t id = ids[i] & kept;
    uint64_t p = home(id, mask), row;
    while ((row = row_of(entries[p])) && id_of(entries[p]) != id) p = (p + 1) & mask;
    rows[i] = row ? static_cast<uint32_t>(row - 1) : limit ? static_cast<uint32_t>(id % limit) : PM_NO_ROW;
  };
  Follower follower;
  const int64_t worth = map->capacity <= kNear ? 2 : kFar;
  int64_t i = 0, followed = 0, check = kCheck;
  for (; i < n; ++i) {
    if (follower.finds_eight(ids, i, n)) {
      std::memcpy(rows + i, rows + follower.place() - 7, 32);
      i += 7;
      followed += 8;
      continue;
    }
    if (i >= check) {
      if (worth * followed <= i) break;
      check = i + kCheck;
    }
    if (follower.finds(ids, i, n)) {
      rows[i] = rows[follower.place()];
      continue;
    }
    if (i + kAhead < n) ask(i + kAhead);
    find(i);
  }
  for (; i + kAhead < n; ++i) {
    ask(i + kAhead);
    find(i);
  }
  for (; i < n; ++i) find(i);
  return PM_OK;
}

int32_t pm_map_rehash(const pm_map* from, pm_map* to) {
  const uint64_t mask = to->capacity - 1;
  for (uint64_t i = 0; i < from->capacity; ++i) {
    if (!from->entries[i].row_plus_one) continue;
    uint64_t p = home(from->entries[i].id, mask);
    while (to->entries[p].row_plus_one) p = (p + 1) & mask;
    to->entries[p] = from->entries[i];
  }
  to->count = from->count;
  return PM_OK;
}

namespace {

// Of a column that came when all rows were taken: one of them.
uint32_t shared_row(const pm_columns& table, uint32_t column) {
  return table.limit ? static_cast<uint32_t>(pm::mix(column) % table.limit) : PM_NO_ROW;
}

}  // namespace

int32_t pm_columns_insert(pm_columns* table, const uint32_t* columns, int64_t n, uint32_t* rows, int64_t* fresh,
                          int64_t* n_fresh, int64_t* done) {
  pm_columns& t = *table;
  uint32_t* const row_plus_one = t.row_plus_one;
  for (int64_t i = *done; i < n; ++i) {
    // New ones are far from any cache, and whether one is new cannot be foreseen.
    __builtin_prefetch(row_plus_one + columns[std::min(i + kAhead, n - 1)], 1);
    const uint32_t column = columns[i];
    if (column >= t.n_columns) return *done = i, PM_FULL;
    uint32_t known = row_plus_one[column];
    if (!known) {
      if (t.count < t.limit) fresh[(*n_fresh)++] = i;
      known = t.count < t.limit ? static_cast<uint32_t>(++t.count) : shared_row(t, column) + 1;
      row_plus_one[column] = known;
    }
    rows[i] = known - 1;
  }
  return *done = n, PM_OK;
}

int32_t pm_columns_find(const pm_columns* table, const uint32_t* columns, int64_t n, uint32_t* rows) {
  const pm_columns& t = *table;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t known = columns[i] < t.n_columns ? t.row_plus_one[columns[i]] : 0;
    rows[i] = known ? known - 1 : t.count < t.limit ? PM_NO_ROW : shared_row(t, columns[i]);
  }
  return PM_OK;
}

namespace {

// Few features are new: eight are looked at together.
template <class Index>
int64_t mark_new(uint64_t* seen, uint64_t mask, const Index* indices, int64_t n, int64_t* fresh) {
  constexpr int64_t kTogether = 8;
  const auto marked = [=](int64_t k) {
    const uint64_t place = indices[k] & mask;
    return seen[place >> 6] >> (place & 63);
  };
  int64_t count = 0, i = 0;
  const auto mark = [&](int64_t stop) {
    for (; i < stop; ++i) {
      const uint64_t place = indices[i] & mask;
      fresh[count] = i;
      count += (marked(i) & 1) == 0;
      seen[place >> 6] |= uint64_t{1} << (place & 63);
    }
  };
  while (i + kTogether <= n) {
    uint64_t all = 1;
    for (int64_t k = 0; k < kTogether; ++k) all &= marked(i + k);
    if (all) i += kTogether;
    else mark(i + kTogether);
  }
  mark(n);
  return count;
}

}  // namespace

int64_t pm_mark_new(uint64_t* seen, uint64_t n_seen, const void* indices, int32_t wide, int64_t n, int64_t* fresh) {
  return wide ? mark_new(seen, n_seen - 1, static_cast<const uint64_t*>(indices), n, fresh)
              : mark_new(seen, n_seen - 1, static_cast<const uint32_t*>(indices), n, fresh);
}
