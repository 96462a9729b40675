// Feature ids: 64 well-mixed bits. The id of a monomial is the sum of the ids of its factors, so it does not
// depend on the order in which they were multiplied.
#pragma once
#include <cstdint>
#include <cstring>

namespace pm {

// Bijective on 64 bits (the finaliser of splitmix64): a column number can be recovered from its id.
inline uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  const wide product = static_cast<wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t load_tail(const char* p, size_t n) {  // n < 8 bytes, never reading past them
  uint64_t word = 0;
  if (n >= 4) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    return low | static_cast<uint64_t>(high) << 32;
  }
  if (n) {
    word = static_cast<uint8_t>(p[0]);
    word |= static_cast<uint64_t>(static_cast<uint8_t>(p[n >> 1])) << 8;
    word |= static_cast<uint64_t>(static_cast<uint8_t>(p[n - 1])) << 16;
  }
  return word;
}

// Hash of a name inside a field; the field's own hash is the seed, so equal names in two fields differ.
inline uint64_t hash_bytes(const char* p, size_t n, uint64_t seed) {
  uint64_t h = seed ^ 0xa0761d6478bd642full;
  const size_t length = n;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = fold_multiply(h ^ word, 0xe7037ed1a0b428dbull);
  }
  h = fold_multiply(h ^ load_tail(p, n), 0x8ebc6af09c88c6e3ull);
  return fold_multiply(h ^ length, 0x589965cc75374cc3ull);
}

}  // namespace pm
