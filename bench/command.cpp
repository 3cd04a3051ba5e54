// SPDX-License-Identifier: BSL-1.0
// Whole processes: `hetplan simulate`, `hetplan plan`, and what including <hetplan/hetplan.hpp> costs a compiler.
//
// Targets: a simulate in 50 ms; 4 s of CPU for `g++ -fsyntax-only` of a file that includes everything.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/resource.h>

#include "measure.hpp"

namespace {

void run(const std::string& command) {
  if (std::system((command + " >/dev/null 2>&1").c_str()) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
}

double child_cpu_s() {
  rusage u{};
  getrusage(RUSAGE_CHILDREN, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
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
  std::ofstream(folder + "/include.cpp") << "#include <hetplan/hetplan.hpp>\n";
  const std::string compile =
      "g++ -std=c++20 -fsyntax-only -I" HETPLAN_SOURCE_DIR "/include -isystem " HETPLAN_EIGEN " " + folder + "/include.cpp";
  std::vector<double> cpu_s;
  for (int i = 0; i < (options.quick ? 1 : 7); ++i) {
    const double before = child_cpu_s();
    run(compile);
    cpu_s.push_back(child_cpu_s() - before);
  }
  std::sort(cpu_s.begin(), cpu_s.end());
  const double median = cpu_s[cpu_s.size() / 2];
  if (!options.json)
    std::printf("including hetplan.hpp: %.2f s of CPU%s\n", median, median <= 4 ? "  reaches its target" : "  ABOVE its target");
  run("rm -r " + folder);
}
