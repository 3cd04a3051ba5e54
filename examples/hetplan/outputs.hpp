// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a command leaves behind: standard output and files.

#include <string>
#include <string_view>
#include <vector>

#include <hetplan/io/json_document.hpp>

namespace cli {

/// Throws where standard output did not take all that was printed: a full disk, a closed descriptor.
void flush_standard_output();

/// The files that one command writes, from one thread. They are put aside as they come and get their names one after the other,
/// behind standard output: a command that fails until then leaves none of them. Where the system refuses a name after it has
/// given another, the files before it stay: what they replaced is gone. A command that is interrupted (by SIGINT, SIGTERM, a
/// closed pipe), whichever thread takes the signal, leaves no temporary file.
class outputs {
 public:
  struct file {
    const char* option;
    std::string path;  ///< "": not asked for
  };

  /// @param read  what the command reads, files and built-in names alike.
  /// Throws       invalid_input where a file is to be written twice, was read, or is where standard output goes.
  outputs(const std::vector<file>& written, const std::vector<std::string>& read);
  ~outputs();
  outputs(const outputs&) = delete;
  outputs& operator=(const outputs&) = delete;

  /// Throws invalid_input where the file cannot be written.
  void put(const std::string& path, std::string_view text);

  /// Everything is printed and put: now it counts.
  ///
  /// Throws  as flush_standard_output and staged_file::commit; the files that have their names by then keep them.
  void commit();

 private:
  std::vector<hetplan::io::staged_file> costs_;
};

}  // namespace cli
