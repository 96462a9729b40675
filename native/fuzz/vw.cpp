#include "text.h"

const char* const kFuzzSeeds[] = {
    "@1 2.5 0.5 'tag|a:2 x:1.5 y |b z z:2\n\n| 17:0 foo:3e-3\r\n-1 |b q",
    "C|a one two three four:2 five |b x y z\n1 |a one one one",
    "_0 0.1234567890123456 |name price:0.23 sqft:.25 age:.05 2006\n1 2 'second_house |name price:0.18 sqft:0.15\n",
    "A3| a:1e38 a:1e38\nx |\n1 2 3 4 |\n|a:nan b\n|:1 :2\n'",
    nullptr,
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return pm_fuzz::run(pm_parse_vw, data, size);
}
