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

// Where the product of a parent and a row stands in a hashed table, modulo its size: 4 row slots behind the start of the
// parent. The products of a row with parents 4 k … 4 k + 3 share a cache line of four slots, since an example that has the
// row has several of them. Those of frequent features, whose rows are small, stand together too, and so seldom share a slot.
inline uint32_t start_of_products(uint32_t parent) {
  return static_cast<uint32_t>(mix(parent >> 2)) << 2 | (parent & 3);
}

inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  const wide product = static_cast<wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The first n ≤ 8 bytes as a little-endian number, zeros above them; never reads past them.
inline uint64_t load_short(const char* p, size_t n) {
  if (n >= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
  }
  if (n >= 4) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    return low | static_cast<uint64_t>(high) << (8 * (n - 4));
  }
  uint64_t word = 0;
  for (size_t i = 0; i < n; ++i) word |= static_cast<uint64_t>(static_cast<uint8_t>(p[i])) << (8 * i);
  return word;
}

// Hash of the last 16 bytes or fewer, given as two numbers padded with zeros, after `length` bytes in all.
inline uint64_t hash_end(uint64_t low, uint64_t high, uint64_t length, uint64_t h) {
  h = fold_multiply(low ^ h ^ 0xa0761d6478bd642full, high ^ 0xe7037ed1a0b428dbull);
  return fold_multiply(h ^ length, 0x589965cc75374cc3ull);
}

// Hash of a name inside a field; the field's own hash is the seed, so equal names in two fields differ.
inline uint64_t hash_bytes(const char* p, size_t n, uint64_t seed) {
  uint64_t h = seed;
  const size_t length = n;
  for (; n > 16; p += 16, n -= 16) h = fold_multiply(load_short(p, 8) ^ h, load_short(p + 8, 8) ^ 0x8ebc6af09c88c6e3ull);
  return n > 8 ? hash_end(load_short(p, 8), load_short(p + 8, n - 8), length, h)
               : hash_end(load_short(p, n), 0, length, h);
}

}  // namespace pm
