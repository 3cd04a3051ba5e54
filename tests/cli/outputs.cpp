// SPDX-License-Identifier: BSL-1.0
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "../../examples/hetplan/outputs.cpp"

namespace test_outputs {

namespace fs = std::filesystem;

TEST_CASE("a signal that another thread takes while a file is written leaves no temporary file either") {
  const fs::path folder = fs::temp_directory_path() / ("hetplan_outputs_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  const std::string text(std::size_t{1} << 27, 'x');  // large enough to be interrupted half written
  const pid_t child = fork();
  REQUIRE(child != -1);
  if (child == 0) {
    std::signal(SIGTERM, SIG_DFL);  // replaces Catch2's handler
    std::thread other([&] {
      while (files() < 2) std::this_thread::yield();
      std::raise(SIGTERM);
    });
    cli::outputs written({}, {});
    written.put((folder / "first").string(), "whole");
    written.put((folder / "second").string(), text);
    other.join();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(files() == 0);
  fs::remove_all(folder);
}

}  // namespace test_outputs
