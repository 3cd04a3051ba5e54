// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Capture of what a library prints.

#include <cstdio>
#include <string>

#include <unistd.h>

/// Captures the standard output and standard error of the process (POSIX) until text() or destruction.
class printed_text {
 public:
  printed_text() {
    flush();
    for (const int of : {1, 2}) dup2(fileno(file_), of);
  }
  printed_text(const printed_text&) = delete;
  printed_text& operator=(const printed_text&) = delete;
  ~printed_text() {
    restore();
    std::fclose(file_);
    for (const int copy : {out_, err_}) close(copy);
  }

  /// Returns the captured text and restores the outputs.
  [[nodiscard]] std::string text() const {
    restore();
    std::rewind(file_);
    std::string all;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) all.push_back(static_cast<char>(c));
    return all;
  }

 private:
  static void flush() {
    std::fflush(stdout);
    std::fflush(stderr);
  }
  void restore() const {
    flush();
    dup2(out_, 1);
    dup2(err_, 2);
  }

  int out_ = dup(1), err_ = dup(2);
  std::FILE* file_ = std::tmpfile();
};
