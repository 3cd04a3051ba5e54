// SPDX-License-Identifier: BSL-1.0
#pragma once
// Outputs of a command: standard output and files.

#include <string>
#include <string_view>
#include <vector>

#include <hetplan/io/json_document.hpp>

namespace cli {

/// Throws if standard output did not take all that was printed, as on a full disk or a closed descriptor.
void flush_standard_output();

/// The output files of a command, written by one thread. They are staged and renamed one after another, after standard output: a command
/// that fails before leaves none of them. If a rename fails after others, these stay: their predecessors are gone. A command that is
/// interrupted (SIGINT, SIGTERM, a closed pipe) leaves no temporary file, whichever thread takes the signal.
class outputs {
 public:
  struct file {
    const char* option;
    std::string path;  ///< "": not requested
  };

  /// @param read  the inputs of the command, files and built-in names alike.
  /// Throws       invalid_input if a file is written twice, was read, or receives standard output.
  outputs(const std::vector<file>& written, const std::vector<std::string>& read);
  ~outputs();
  outputs(const outputs&) = delete;
  outputs& operator=(const outputs&) = delete;

  /// Throws invalid_input if the file cannot be written.
  void put(const std::string& path, std::string_view text);

  /// Publishes all outputs.
  ///
  /// Throws  as flush_standard_output and staged_file::commit; files already renamed stay.
  void commit();

 private:
  std::vector<hetplan::io::staged_file> costs_;
};

}  // namespace cli
