// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Tables of text, as markdown or as JSON.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace bench {

/// A table with named columns of text and numbers, printed as markdown or as JSON objects.
class report {
 public:
  report(std::string title, std::vector<std::string> columns) : title_(std::move(title)), rows_{std::move(columns)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void print() const {
    std::printf("\n### %s\n\n", title_.c_str());
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      print_row(rows_[r], ' ');
      if (r == 0) print_row(std::vector<std::string>(rows_[0].size()), '-');
    }
  }
  void append_json(std::vector<std::string>& all) const {
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      std::string row = "{\"table\": \"" + title_ + "\"";
      for (std::size_t c = 0; c < rows_[r].size(); ++c) row += ", \"" + rows_[0][c] + "\": \"" + rows_[r][c] + "\"";
      all.push_back(row + "}");
    }
  }

 private:
  void print_row(const std::vector<std::string>& row, char fill) const {
    std::printf("|");
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::size_t width = 0;
      for (const auto& other : rows_) width = std::max(width, other[c].size());
      const std::string gap(width - row[c].size(), fill);
      const bool left = c < 2;  // names; numbers are right-aligned
      if (fill == '-') std::printf("-%s%s|", gap.c_str(), left ? "-" : ":");
      else std::printf(" %s%s |", left ? row[c].c_str() : gap.c_str(), left ? gap.c_str() : row[c].c_str());
    }
    std::printf("\n");
  }
  std::string title_;
  std::vector<std::vector<std::string>> rows_;  // headings first
};

/// Prints markdown, or with --json one array of all rows.
inline void print(const std::vector<report>& reports, const options& o) {
  if (!o.json) {
    for (const report& r : reports) r.print();
    return;
  }
  std::vector<std::string> rows;
  for (const report& r : reports) r.append_json(rows);
  std::printf("[");
  for (std::size_t i = 0; i < rows.size(); ++i) std::printf("%s\n  %s", i ? "," : "", rows[i].c_str());
  std::printf("\n]\n");
}

}  // namespace bench
