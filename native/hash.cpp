#include "hash.h"

#include "pomona.h"

namespace {

uint64_t unxorshift(uint64_t z, int shift) {
  uint64_t x = z;
  for (int done = shift; done < 64; done += shift) x = z ^ (x >> shift);
  return x;
}

uint64_t unmix(uint64_t z) {
  z = unxorshift(z, 31) * 0x319642b2d24d8ec3ull;  // the multiplicative inverses modulo 2^64 of those in mix
  z = unxorshift(z, 27) * 0x96de1b173f119089ull;
  return unxorshift(z, 30) - 0x9e3779b97f4a7c15ull;
}

}  // namespace

int32_t pm_interface_version(void) { return PM_INTERFACE_VERSION; }

uint64_t pm_hash(const char* bytes, int64_t n, uint64_t seed) {
  return pm::hash_bytes(bytes, static_cast<size_t>(n), seed);
}

void pm_hash_strings(const char* data, const int64_t* offsets, int64_t n, uint64_t seed, uint64_t* ids) {
  for (int64_t i = 0; i < n; ++i)
    ids[i] = pm::hash_bytes(data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]), seed);
}

void pm_take_strings(const char* data, const int64_t* offsets, const uint32_t* numbers, int64_t n, char* out,
                     int64_t* ends) {
  int64_t written = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t start = offsets[numbers[i]], size = offsets[numbers[i] + 1] - start;
    std::memcpy(out + written, data + start, static_cast<size_t>(size));
    ends[i] = written += size;
  }
}

void pm_mix(const uint64_t* columns, int64_t n, uint64_t* ids) {
  for (int64_t i = 0; i < n; ++i) ids[i] = pm::mix(columns[i]);
}

void pm_column_keys(const uint32_t* columns, int64_t n, uint32_t* keys) {
  for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<uint32_t>(pm::mix(columns[i]));
}

void pm_unmix(const uint64_t* ids, int64_t n, uint64_t* columns) {
  for (int64_t i = 0; i < n; ++i) columns[i] = unmix(ids[i]);
}
