#include "text.h"

const char* const kFuzzSeeds[] = {
    "@# header\n1 qid:4 1:2 7:0.25 1:3 # comment\r\n-1 18446744073709551615:1e-5\n",
    "A1,3,20 12345678:0.1234567890123456 2:-1.5\n 4:5\n3:1 2:2\n\nqid:3 1:1",
    "@+1 1:1e38 1:3e38\n1e999 2:\n-1 -3:4 5 x:y 18446744073709551616:1 #",
    nullptr,
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return pm_fuzz::run(pm_parse_svmlight, data, size);
}
