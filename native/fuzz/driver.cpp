// Feeds a fuzz target with mutations of its seeds: fuzz_vw [inputs [seed]]. Needs no compiler but the usual one; what
// it lacks against libFuzzer is the guidance by coverage.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

  size_t below(size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<size_t>((state_ * 0x9e3779b97f4a7c15ull >> 32) % n);
  }

 private:
  uint64_t state_;
};

const char* const kTokens[] = {"|",    ":",     " ",    "\n",  "\r\n",   "\t",   "'",          "#",       ",",
                               "nan",  "-inf",  "1e39", "1e999", "1e-999", "0.0", "qid:",      "1:1",     "-",
                               "\xff", "\xc3\xa9", "\x01", ".",  "e",      "+",   "123456789", "99999999999999999999",
                               "0.30000000000000004", "a:1 a:2 ", "18446744073709551615"};
constexpr size_t kTokenCount = sizeof(kTokens) / sizeof(kTokens[0]);
constexpr size_t kMaxSize = 4096;

void mutate(std::string& input, const std::vector<std::string>& pool, Random& random) {
  const size_t at = random.below(input.size() + 1);
  switch (random.below(7)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1:
      input.insert(at, 1, static_cast<char>(random.below(256)));
      break;
    case 2:
      input.erase(at, 1 + random.below(8));
      break;
    case 3:
      input.insert(at, kTokens[random.below(kTokenCount)]);
      break;
    case 4: {
      const std::string piece = input.substr(at, 1 + random.below(64));
      input.insert(random.below(input.size() + 1), piece);
      break;
    }
    case 5: {
      const std::string& other = pool[random.below(pool.size())];
      input = input.substr(0, at) + other.substr(random.below(other.size() + 1));
      break;
    }
    default:  // cut the end off, but seldom, or inputs would dwindle
      if (random.below(8) == 0) input.resize(at);
  }
  if (input.size() > kMaxSize) input.resize(kMaxSize);
}

}  // namespace

int main(int argc, char** argv) {
  const long inputs = argc > 1 ? std::atol(argv[1]) : 10000;
  Random random(argc > 2 ? static_cast<uint64_t>(std::atol(argv[2])) : 0);
  std::vector<std::string> pool;
  for (const char* const* seed = kFuzzSeeds; *seed; ++seed) pool.emplace_back(*seed);
  const size_t seeds = pool.size();
  pool.resize(256, pool[0]);
  double bytes = 0;
  for (long i = 0; i < inputs; ++i) {
    std::string input = pool[random.below(pool.size())];
    for (size_t steps = 1 + random.below(8); steps; --steps) mutate(input, pool, random);
    bytes += static_cast<double>(input.size());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    // Mutations pile up in the pool, but the seeds stay in it.
    pool[seeds + random.below(pool.size() - seeds)] = random.below(4) ? input : pool[random.below(seeds)];
  }
  std::printf("%ld inputs of %.0f bytes on average, no fault\n", inputs, bytes / static_cast<double>(inputs));
}
