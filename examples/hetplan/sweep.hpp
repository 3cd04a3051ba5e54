// SPDX-License-Identifier: BSL-1.0
#pragma once
// A what-if sweep: its cases, and the table that grows by one row a case. Shared by `hetplan` and, over ranks, `hetplan_sweep_mpi`.

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

/// What came of a case: its row, one JSON object on one line without a line break, the same on every machine; or why there is none.
struct case_outcome {
  std::string text;
  bool failed = false;
};

/// Everything that a sweep file names, loaded and checked, and how its table looks. Cases that differ in the last thing only, who competes,
/// stand together.
class sweep_cases {
 public:
  /// Rows are objects: key, texts, status, the rest.
  struct table_shape {
    std::span<const std::string_view> texts;    ///< in every row; the last one is who competes
    std::span<const std::string_view> numbers;  ///< in some
    std::span<const std::string_view> columns;  ///< of a table for spreadsheets
  };

  virtual ~sweep_cases() = default;
  sweep_cases(const sweep_cases&) = delete;
  sweep_cases& operator=(const sweep_cases&) = delete;

  [[nodiscard]] virtual std::size_t size() const = 0;
  /// How many compete: so many cases form a group.
  [[nodiscard]] virtual std::size_t competitors() const = 0;
  /// Differs wherever a case could give another row: contents of the files, who competes, seed, version.
  [[nodiscard]] virtual std::string key(std::size_t i) const = 0;
  /// "toy on home, tight, dora".
  [[nodiscard]] virtual std::string title(std::size_t i) const = 0;
  /// Runs a case; what throws ends this case and no other.
  [[nodiscard]] case_outcome run(std::size_t i) const;
  /// What was read: the sweep and the files that it names.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// What of it is not used, a line each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  [[nodiscard]] virtual table_shape shape() const = 0;
  /// Of what is printed: the columns behind the names, what a group has in common, and its best row.
  [[nodiscard]] virtual std::string header_of_best() const = 0;
  [[nodiscard]] virtual std::string group_text(const hetplan::io::json& row) const = 0;
  [[nodiscard]] virtual std::string best_text(const hetplan::io::json& row) const = 0;

 protected:
  /// A value that cases are made of.
  template <class T>
  struct named {
    std::string name;
    T value;
    std::uint64_t digest;  ///< of the name and of what it stands for
  };

  explicit sweep_cases(const std::string& file) : files_{file} {}
  [[nodiscard]] virtual hetplan::io::json row(std::size_t i) const = 0;
  /// Where a file stands that the sweep names: beside the sweep.
  [[nodiscard]] std::string path_of(const std::string& name) const;

  std::vector<std::string> files_, warnings_;
};

/// A sweep of plans or of serving, as the file's format says. Throws invalid_input for whatever any case would trip over, before the first
/// is run.
[[nodiscard]] std::unique_ptr<sweep_cases> load_sweep(const common_options& options, const std::string& file);

/// Runs something that names what it objects to, and says where in the sweep that stands.
template <class F>
auto below(const std::string& file, const std::string& pointer, F&& f) {
  try {
    return f();
  } catch (const hetplan::invalid_input& e) {
    throw hetplan::invalid_input(hetplan::io::escaped(file) + ": " + pointer + ": " + e.what());
  }
}

/// A hash that is the same everywhere.
[[nodiscard]] std::uint64_t digest(std::uint64_t before, std::string_view text);
[[nodiscard]] std::uint64_t digest(std::string_view name, std::string_view content);
[[nodiscard]] std::string hexadecimal(std::uint64_t v);

/// Runs the cases that are missing, in any order and anywhere, and calls `done` in one thread with the outcome of each.
using case_runner = std::function<void(const sweep_cases& cases, std::span<const std::size_t> missing,
                                       const std::function<void(std::size_t, const case_outcome&)>& done)>;

/// The command, whoever runs the cases. Throws after all of them when some have failed: the rows of the others are in the table.
int sweep(const common_options& options, const sweep_options& o, const case_runner& run);

}  // namespace cli
