// SPDX-License-Identifier: BSL-1.0
#include "outputs.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>

namespace cli {

using namespace hetplan;
namespace fs = std::filesystem;

namespace {

constexpr std::array ending_signals{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU};

/// Temporary names that exist. Read and changed by one thread, and changed only while it does not take those signals, so that the
/// handler never meets it half changed.
std::vector<std::string> unfinished;
pthread_t writer;

/// The system may deliver a signal to any thread: it is passed on to the one that writes.
extern "C" void remove_unfinished(int signal) {
  if (pthread_equal(pthread_self(), writer) == 0) {
    pthread_kill(writer, signal);
    return;
  }
  for (const std::string& path : unfinished) unlink(path.c_str());
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // as soon as this returns
}

/// The thread takes no ending signal until this is destroyed.
class no_signals {
 public:
  no_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : ending_signals) sigaddset(&set, s);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~no_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  no_signals(const no_signals&) = delete;
  no_signals& operator=(const no_signals&) = delete;

 private:
  sigset_t before_{};
};

void watch_signals() {
  writer = pthread_self();
  for (const int s : ending_signals) {
    struct sigaction now {};
    if (sigaction(s, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;  // nohup, or another's handler
    struct sigaction ours {};
    ours.sa_handler = remove_unfinished;
    sigaction(s, &ours, nullptr);
  }
}

/// Two names of one regular file, there or yet to be made.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code code;
  if (fs::exists(a, code) || fs::exists(b, code)) return fs::is_regular_file(a, code) && fs::equivalent(a, b, code);
  const auto place = [&](const fs::path& p) {
    return fs::weakly_canonical(p.has_parent_path() ? p.parent_path() : fs::path("."), code) / p.filename();
  };
  return place(a) == place(b);
}

bool is_standard_output(const std::string& path) {
  struct stat to {
  }, file{};
  return fstat(STDOUT_FILENO, &to) == 0 && S_ISREG(to.st_mode) && stat(path.c_str(), &file) == 0 && to.st_dev == file.st_dev &&
         to.st_ino == file.st_ino;
}

}  // namespace

void flush_standard_output() {
  errno = 0;
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  const int code = errno;
  if (flushed && std::cout.good() && std::ferror(stdout) == 0) return;
  // The write that failed may have been an earlier one, whose reason nobody kept.
  if (code == 0) io::detail::fail_file("standard output", "cannot write all of it");
  io::detail::fail_file("standard output", "cannot write", code);
}

outputs::outputs(const std::vector<file>& written, const std::vector<std::string>& read) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const file& f = written[i];
    std::error_code ignored;
    if (f.path.empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw invalid_input(std::string(f.option) + ": expected a file of its own, got " + io::in_quotes(f.path, 200) + what);
    };
    for (std::size_t j = 0; j < i; ++j) {
      if (!written[j].path.empty() && same_file(f.path, written[j].path)) fail(std::string(", which is that of ") + written[j].option);
    }
    for (const std::string& r : read) {
      if (fs::exists(r, ignored) && same_file(f.path, r)) fail(", which is read");
    }
    if (is_standard_output(f.path)) fail(", where standard output goes");
    // Better now than after an hour of work.
    const fs::path folder = fs::path(f.path).parent_path();
    if (!fs::exists(fs::symlink_status(f.path, ignored)) && access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
      io::detail::fail_file(f.path, "cannot write", errno);
  }
}

outputs::~outputs() {
  const no_signals wait;
  costs_.clear();
  unfinished.clear();
}

void outputs::put(const std::string& path, std::string_view text) {
  static const bool watched = (watch_signals(), true);
  static_cast<void>(watched);
  const no_signals wait;
  costs_.emplace_back(path, text);
  if (!costs_.back().temporary().empty()) unfinished.push_back(costs_.back().temporary());
}

void outputs::commit() {
  flush_standard_output();
  // What is written directly may fail or wait for a reader; a name is given in an instant.
  for (io::staged_file& f : costs_) {
    if (f.temporary().empty()) f.commit();
  }
  const no_signals wait;
  for (io::staged_file& f : costs_) {
    if (!f.temporary().empty()) f.commit();
  }
  costs_.clear();
  unfinished.clear();
}

}  // namespace cli
