// SPDX-License-Identifier: BSL-1.0
// The tables and figures of Dora's evaluation, ours beside the paper's: the sections of docs/reproduction/dora.md (update.py).

#include "reproduce/plot_svg.hpp"
#include "reproduce/sections.hpp"

int main(int argc, char** argv) {
  const bench::sections page(argc, argv);
}
