// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The command line of the C++ executors: `profile` and `run`, with their files and options.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile.hpp"

namespace executors {

struct options {
  std::string network = {}, model = {}, cluster = {}, plan = {}, nominal = {}, out_model = {}, out_cluster = {};
  std::vector<int> batches{1, 2, 4, 8};  ///< ascending
  bool quick = false, busy = false;
  std::string slow = {};  ///< "repeat" or "wait"; empty: as the machine allows
  int iterations = 5;     ///< without the warm-up
  std::uint64_t seed = 1;
  double timeout_s = 30;  ///< limit of each wait
  bool paced = true;
  bool check = false, json = false;

  [[nodiscard]] int link_runs() const { return quick ? 3 : 9; }
};

/// Makes the allocator keep freed memory: fresh large tensors from the system cost more than some layers.
void keep_memory();

class command_line {
 public:
  command_line(const std::string& name, const std::string& what);
  ~command_line();
  command_line(const command_line&) = delete;
  command_line& operator=(const command_line&) = delete;

  /// Add options of a single executor, of `run` or of both commands; `parse` stores them in the given variables.
  void add_run_option(const std::string& name, std::vector<std::string>& values, const std::string& what, const std::string& type);
  void add_run_flag(const std::string& name, bool& is_given, const std::string& what);
  void add_choice(const std::string& name, std::string& chosen, const std::string& what, const std::vector<std::string>& choices);

  /// Returns the exit status if nothing is left to do: 0 after help, 2 after bad input, which it prints unless `quiet`.
  [[nodiscard]] std::optional<int> parse(int argc, char** argv, bool quiet = false);
  [[nodiscard]] bool profiles() const;
  [[nodiscard]] const options& given() const { return given_; }

 private:
  struct parser;  ///< the CLI11 parser, which takes seconds to compile
  std::unique_ptr<parser> parser_;
  options given_;
  std::string pace_ = "measured";
};

/// Measures layers for `profile` on so many cores, and prints how.
[[nodiscard]] kind_times profile_layers(const options& o, const profile_inputs& in, unsigned cores);

void write_profile(const options& o, const neural_network& net, const kind_times& times, const hetplan::cluster& measured);

}  // namespace executors
