// SPDX-License-Identifier: BSL-1.0
// Runs a numbered example, built header-only:  header_only NAME [ARGUMENT...]
#include <cstdio>
#include <string_view>

#include "all_headers.hpp"

struct named_example {
  std::string_view name;
  int (*run)(int argc, char** argv);
};

#include "examples.hpp"

int main(int argc, char** argv) {
  for (const named_example& e : all_examples) {
    if (argc > 1 && e.run && e.name == argv[1]) return e.run(argc - 1, argv + 1);
  }
  std::fputs("no such example\n", stderr);
  return 2;
}
