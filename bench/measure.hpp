// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Medians over several runs, one line per case, JSON on request.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// `--quick`: few runs, as a smoke test; `--json`: one array at the end instead of lines.
struct options {
  bool quick = false;
  bool json = false;
  std::vector<std::string> words;
  options(int argc, char** argv) : words(argv, argv + argc) {
    for (int i = 1; i < argc; ++i) {
      quick = quick || std::strcmp(argv[i], "--quick") == 0;
      json = json || std::strcmp(argv[i], "--json") == 0;
    }
  }
  /// Returns the word after `word`, such as the file after `--svg`; empty if there is none.
  [[nodiscard]] std::string value(const std::string& word) const {
    const auto at = std::find(words.begin(), words.end(), word);
    return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
  }
};

template <class Work>
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  static_cast<void>(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
inline double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

class table {
 public:
  explicit table(options o) : options_(o) {}
  table(const table&) = delete;
  table& operator=(const table&) = delete;
  ~table() {
    if (!options_.json) return;
    std::printf("[");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const row& r = rows_[i];
      std::printf("%s\n  {\"case\": \"%s\", \"median_s\": %.6g, \"min_s\": %.6g, \"max_s\": %.6g, ", i ? "," : "", r.name.c_str(), r.median,
                  r.least, r.most);
      if (r.unit.empty()) std::printf("\"target_s\": %.6g}", r.target);
      else std::printf("\"%s\": %.6g, \"target\": %.6g}", r.unit.c_str(), r.rate, r.target);
    }
    std::printf("\n]\n");
  }

  /// Runs work() several times (0: default count) and reports rate = amount / median, against the least rate `target` (0: none).
  template <class Work>
  double run(const std::string& name, double amount, const std::string& unit, double target, Work&& work, int runs = 0) {
    std::vector<double> times;
    static_cast<void>(work());  // warm-up
    if (runs == 0) runs = options_.quick ? 3 : 21;
    for (int i = 0; i < runs; ++i) times.push_back(seconds_of(work));
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    rows_.push_back({name, median, times.front(), times.back(), amount / median, target, unit});
    if (!options_.json) {
      std::printf("%-44s %10.3f ms  (%.3f - %.3f)  %12.0f %s%s\n", name.c_str(), 1e3 * median, 1e3 * times.front(), 1e3 * times.back(),
                  amount / median, unit.c_str(),
                  target > 0 ? (amount / median >= target ? "  reaches its target" : "  BELOW its target") : "");
      std::fflush(stdout);
    }
    return median;
  }

  /// Reports times measured elsewhere, whose median should not exceed `target_s`.
  void times(const std::string& name, std::vector<double> found_s, double target_s) {
    std::sort(found_s.begin(), found_s.end());
    const double median = found_s[found_s.size() / 2];
    rows_.push_back({name, median, found_s.front(), found_s.back(), 0, target_s, ""});
    if (options_.json) return;
    std::printf("%-44s %10.3f us  (%.3f - %.3f)%s\n", name.c_str(), 1e6 * median, 1e6 * found_s.front(), 1e6 * found_s.back(),
                median <= target_s ? "  reaches its target" : "  ABOVE its target");
    std::fflush(stdout);
  }

  /// Runs work(i) once for each i < runs, without warm-up, for long or changing work. The median should not exceed `target_s` (0: none).
  template <class Work>
  double run_within(const std::string& name, std::size_t runs, double target_s, Work&& work) {
    std::vector<double> times;
    for (std::size_t i = 0; i < runs; ++i)
      times.push_back(seconds_of([&] {
        work(i);
        return 0;
      }));
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    rows_.push_back({name, median, times.front(), times.back(), 0, target_s, ""});
    if (!options_.json) {
      std::printf("%-44s %10.3f ms  (%.3f - %.3f)%s\n", name.c_str(), 1e3 * median, 1e3 * times.front(), 1e3 * times.back(),
                  target_s > 0 ? (median <= target_s ? "  reaches its target" : "  ABOVE its target") : "");
      std::fflush(stdout);
    }
    return median;
  }

 private:
  struct row {
    std::string name;
    double median, least, most, rate, target;
    std::string unit;
  };
  options options_;
  std::vector<row> rows_;
};

}  // namespace bench
