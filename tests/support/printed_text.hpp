// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a library prints behind one's back.

#include <cstdio>
#include <string>

#include <unistd.h>

/// Keeps what this process writes to standard output and standard error (POSIX) from here to text() or its own end.
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

  /// All so far; from here on output goes where it went.
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
