// SPDX-License-Identifier: BSL-1.0
// Runs a numbered example, built header-only:  header_only [NAME [ARGUMENT...]]
// Without a name, checks that an inline variable of the library has one address in the whole program.
#include <cstdio>
#include <string_view>

#include <hetplan/hetplan.hpp>

#include "all_forward.hpp"

struct named_example {
  std::string_view name;
  int (*run)(int argc, char** argv);
};

#include "examples.hpp"

const void* version_seen_backward();

int main(int argc, char** argv) {
  if (argc < 2) return version_seen_backward() == &hetplan::version ? 0 : 1;
  for (const named_example& e : all_examples) {
    if (e.run && e.name == argv[1]) return e.run(argc - 1, argv + 1);
  }
  std::fputs("no such example\n", stderr);
  return 2;
}
