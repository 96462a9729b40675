// What a fuzz target offers: the entry point that libFuzzer expects, and inputs to start from.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Ends in a null pointer. The first byte of an input chooses options, the rest is text.
extern const char* const kFuzzSeeds[];
