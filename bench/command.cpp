// SPDX-License-Identifier: BSL-1.0
// Run times of the processes `hetplan simulate` and `hetplan plan`. Target: a simulate in 50 ms.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "measure.hpp"

namespace {

void run(const std::string& command) {
  if (std::system((command + " >/dev/null 2>&1").c_str()) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  const std::string hetplan = HETPLAN_CLI;
  const std::string folder = "bench_command.tmp";
  run("mkdir -p " + folder);
  for (const char* setting : {"smart-home-2", "traffic-monitor"}) {
    for (const char* model : {"qwen3-1.7b", "qwen-omni-frozen"}) {
      const std::string both = std::string(model) + " " + setting, file = folder + "/" + model + "." + setting + ".json";
      std::ofstream(folder + "/sgd.json") << R"({"format": "hetplan/job/1", "mode": "training", "batch": 32, "optimizer_factor": 0})";
      run(hetplan + " plan " + both + " " + folder + "/sgd.json --out " + file);
      table.run("simulate " + both, 1, "1/s", 20, [&] { run(hetplan + " simulate " + both + " " + file + " --json"); });
      table.run("plan " + both, 1, "1/s", 0, [&] { run(hetplan + " plan " + both + " " + folder + "/sgd.json --json"); });
    }
  }
  run("rm -r " + folder);
}
