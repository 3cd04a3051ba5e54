// SPDX-License-Identifier: BSL-1.0
#pragma once
// A what-if sweep: its cases, and a table of one row per case. Shared by `hetplan` and, over ranks, `hetplan_sweep_mpi`.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>

#include "commands.hpp"

namespace cli {

/// The outcome of a case: its row, one JSON object on one line, equal on all machines; or why there is none.
struct case_outcome {
  std::string text;
  bool failed = false;
};

/// The loaded and checked contents of a sweep file, and the shape of its table. Cases that differ only in the competitor are adjacent.
class sweep_cases {
 public:
  /// Columns of a table: rows are objects of key, texts, status, and the rest.
  struct table_shape {
    std::span<const std::string_view> texts;    ///< in every row; the last one is the competitor
    std::span<const std::string_view> numbers;  ///< in some rows
    std::span<const std::string_view> columns;  ///< of the CSV table
  };

  virtual ~sweep_cases() = default;
  sweep_cases(const sweep_cases&) = delete;
  sweep_cases& operator=(const sweep_cases&) = delete;

  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Returns the number of competitors, which is the number of cases in a group.
  [[nodiscard]] virtual std::size_t competitors() const = 0;
  /// Returns a key that differs wherever a case may give another row: by file contents, competitor, seed, version.
  [[nodiscard]] virtual std::string key(std::size_t i) const = 0;
  /// Returns the title of a case, such as "toy on home, tight, dora".
  [[nodiscard]] virtual std::string title(std::size_t i) const = 0;
  /// Runs a case; its exception ends this case only.
  [[nodiscard]] case_outcome run(std::size_t i) const;
  /// Returns the files read: the sweep and those that it names.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  [[nodiscard]] virtual table_shape shape() const = 0;
  /// Texts of the printed summary: the header after the names, the common values of a group, and its best row.
  [[nodiscard]] virtual std::string header_of_best() const = 0;
  [[nodiscard]] virtual std::string group_text(const hetplan::io::json& row) const = 0;
  [[nodiscard]] virtual std::string best_text(const hetplan::io::json& row) const = 0;

 protected:
  /// A named value of which cases are made.
  template <class T>
  struct named {
    std::string name;
    T value;
    std::uint64_t digest;  ///< of the name and the content
  };

  explicit sweep_cases(const std::string& file) : files_{file} {}
  [[nodiscard]] virtual hetplan::io::json row(std::size_t i) const = 0;
  /// Returns the path of a file named by the sweep, relative to the sweep's folder.
  [[nodiscard]] std::string path_of(const std::string& name) const;

  std::vector<std::string> files_, warnings_;
};

/// Returns a sweep of plans or of serving, by the file's format. Throws invalid_input for all errors of the inputs, before any case runs.
[[nodiscard]] std::unique_ptr<sweep_cases> load_sweep(const common_options& options, const std::string& file);

/// Runs f; adds the place in the sweep to messages of invalid_input.
template <class F>
auto below(const std::string& file, const std::string& pointer, F&& f) {
  try {
    return f();
  } catch (const hetplan::invalid_input& e) {
    throw hetplan::invalid_input(hetplan::io::escaped(file) + ": " + pointer + ": " + e.what());
  }
}

/// Portable hash of texts.
[[nodiscard]] std::uint64_t digest(std::uint64_t before, std::string_view text);
[[nodiscard]] std::uint64_t digest(std::string_view name, std::string_view content);
[[nodiscard]] std::string hexadecimal(std::uint64_t v);

/// Runs the missing cases, in any order and anywhere, and calls `done` in one thread with the outcome of each.
using case_runner = std::function<void(const sweep_cases& cases, std::span<const std::size_t> missing,
                                       const std::function<void(std::size_t, const case_outcome&)>& done)>;

/// The sweep command for any runner. Throws after all cases if some have failed; the rows of the others are in the table.
int sweep(const common_options& options, const sweep_options& o, const case_runner& run);

}  // namespace cli
