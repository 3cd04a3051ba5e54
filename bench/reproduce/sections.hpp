// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a reproduction program hands to its page: named sections of markdown on stdout, pictures in a folder.
///
/// update.py puts a section between the lines `<!-- begin NAME -->` and `<!-- end NAME -->` of the page. Sections are the same in
/// every run; in those that hold measured times (`<!-- begin NAME timed -->`) cells such as "2.5 ms" and "3 x" may be others.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hetplan/io/json_document.hpp>

#include "measure.hpp"

namespace bench {

using row = std::vector<std::string>;

/// printf of one number.
inline std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// The first row holds the headings; `names` columns are set to the left, the numbers behind them to the right.
inline std::string markdown_table(const std::vector<row>& rows, std::size_t names = 2) {
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += "|";
    for (const std::string& cell : rows[r]) text += " " + cell + " |";
    text += "\n";
    if (r > 0) continue;
    text += "|";
    for (std::size_t c = 0; c < rows[r].size(); ++c) text += c < names ? "---|" : "---:|";
    text += "\n";
  }
  return text;
}

/// The least and the most of the numbers that a column's cells begin with.
struct span {
  double low = 0, high = 0;
  int count = 0;

  [[nodiscard]] std::string least(const char* format) const { return count > 0 ? number(format, low) : "-"; }
  [[nodiscard]] std::string most(const char* format) const { return count > 0 ? number(format, high) : "-"; }
  [[nodiscard]] std::string text(const char* format, const std::string& unit = "") const {
    if (count == 0) return "-";
    return (least(format) == most(format) ? "" : least(format) + " to ") + most(format) + unit;
  }
};
/// Over the rows below the headings that are kept; cells that are words are left out.
template <class Keep>
span span_of(const std::vector<row>& rows, std::size_t column, Keep&& keep) {
  span s;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (column >= rows[r].size() || !keep(rows[r])) continue;
    const char* cell = rows[r][column].c_str();
    char* end = nullptr;
    const double x = std::strtod(cell, &end);
    if (end == cell) continue;
    s.low = s.count == 0 ? x : std::min(s.low, x);
    s.high = s.count == 0 ? x : std::max(s.high, x);
    ++s.count;
  }
  return s;
}
inline span span_of(const std::vector<row>& rows, std::size_t column) {
  return span_of(rows, column, [](const row&) { return true; });
}

/// When, on what, by which compiler.
inline std::string measured_here() {
  char day[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(day, sizeof day, "%Y-%m-%d", std::gmtime(&now));
  std::string processor = "a processor without a name", line;
  for (std::ifstream known("/proc/cpuinfo"); std::getline(known, line);) {
    if (line.starts_with("model name")) processor = line.substr(line.find(':') + 2);
  }
  return "Measured on " + std::string(day) + ": " + processor + ", " + std::to_string(std::thread::hardware_concurrency()) +
#ifdef __clang__
         " cores, clang++ " + std::to_string(__clang_major__) + ".\n\n";
#else
         " cores, g++ " + std::to_string(__GNUC__) + ".\n\n";
#endif
}

/// `--quick`: every section, but as little of it as shows that it still works. `--images FOLDER`: pictures too.
class sections {
 public:
  sections(int argc, char** argv) : options_(argc, argv), images_(options_.value("--images")) {}

  [[nodiscard]] bool quick() const { return options_.quick; }

  /// @param text  markdown: paragraphs, tables.
  void add(const std::string& name, const std::string& text) const { print(name, "", text); }
  /// The same for numbers that another run, or another machine, would not repeat.
  void add_timed(const std::string& name, const std::string& text) const { print(name, " timed", measured_here() + text); }
  /// @param file  such as "reproduction.dora.training.svg".
  void add_image(const std::string& file, const std::string& svg) const {
    if (!images_.empty()) hetplan::io::write_atomically(images_ + "/" + file, svg);
  }

  /// @param file  such as "deepcee.throughput.csv": a table beside the page; the first row holds the headings. Where it holds measured
  ///              times, which another run would not repeat, it ends in ".timed.csv".
  void add_csv(const std::string& file, const std::vector<row>& rows) const {
    std::string text;
    for (const row& r : rows) {
      for (std::size_t i = 0; i < r.size(); ++i) {
        const bool quoted = r[i].find(',') != std::string::npos;
        text += (i > 0 ? "," : "") + (quoted ? '"' + r[i] + '"' : r[i]);
      }
      text += "\n";
    }
    add_image(file, text);
  }

 private:
  static void print(const std::string& name, const char* mark, const std::string& text) {
    std::printf("<!-- begin %s%s -->\n%s%s<!-- end %s -->\n\n", name.c_str(), mark, text.c_str(), text.ends_with('\n') ? "" : "\n",
                name.c_str());
    std::fflush(stdout);
  }
  options options_;
  std::string images_;
};

}  // namespace bench
