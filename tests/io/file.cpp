// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/json_document.hpp>

#include "io/reading.hpp"

namespace test_file {

using namespace hetplan;
using test::message_of;
namespace fs = std::filesystem;

namespace {

/// A folder of its own that goes away with the test.
struct folder {
  fs::path path = fs::temp_directory_path() / ("hetplan_io_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
  folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  [[nodiscard]] std::string operator/(const char* name) const { return (path / name).string(); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

}  // namespace

TEST_CASE("what was written is read, and nothing else is left in the folder") {
  const folder f;
  std::string text = "first\n";
  io::write_atomically(f / "a.json", text);
  CHECK(io::read_text(f / "a.json") == text);
  text.assign(300'000, 'x');
  io::write_atomically(f / "a.json", text);
  CHECK(io::read_text(f / "a.json") == text);
  CHECK(f.files() == 1);
  io::write_atomically(f / "empty", "");
  CHECK(io::read_text(f / "empty").empty());
}

TEST_CASE("a file that cannot be read says why") {
  const folder f;
  CHECK(message_of([&] { return io::read_text(f / "none"); }) == (f / "none") + ": cannot read: No such file or directory");
  CHECK(message_of([&] { return io::read_text(f.path.string()); }) == f.path.string() + ": expected a file, got a folder");
  CHECK(message_of([&] { return io::read_text("a\nb"); }) == "a\\nb: cannot read: No such file or directory");
}

TEST_CASE("a file beyond 64 MB is refused, by size and without a size") {
  const folder f;
  std::ofstream(f / "big").put('x');
  fs::resize_file(f / "big", io::max_file_bytes + 1);
  CHECK(message_of([&] { return io::read_text(f / "big"); }) == (f / "big") + ": expected at most 64 MB, got more");
  if (fs::exists("/dev/zero")) {
    CHECK(message_of([&] { return io::read_text("/dev/zero"); }) == "/dev/zero: expected at most 64 MB, got more");
  }
}

TEST_CASE("a file that cannot be written says why and leaves nothing behind") {
  const folder f;
  const auto write = [](const std::string& path) { return message_of([&] { io::write_atomically(path, "x"); }); };
  CHECK(write(f / "no/where.json") == (f / "no/where.json") + ": cannot write: No such file or directory");
  CHECK(write(f.path.string()) == f.path.string() + ": expected a file to write, got a folder");
  if (fs::exists("/dev/full")) CHECK(write("/dev/full") == "/dev/full: cannot write: No space left on device");
  CHECK(f.files() == 0);
}

TEST_CASE("a link stays a link, permissions stay, devices are written to directly") {
  const folder f;
  io::write_atomically(f / "target", "old");
  fs::permissions(f / "target", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", f / "link");
  io::write_atomically(f / "link", "new");
  CHECK(fs::is_symlink(f / "link"));
  CHECK(io::read_text(f / "target") == "new");
  CHECK(fs::status(f / "target").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(f.files() == 2);
  if (fs::is_character_file("/dev/null")) {
    io::write_atomically("/dev/null", "gone");
    CHECK(fs::is_character_file("/dev/null"));
  }
}

TEST_CASE("a staged file is not in its place before it is committed, and gone where it never is") {
  const folder f;
  io::write_atomically(f / "a", "old");
  {
    const io::staged_file staged(f / "a", "new");
    CHECK(io::read_text(f / "a") == "old");
    CHECK(io::read_text(staged.temporary()) == "new");
    CHECK(f.files() == 2);
  }
  CHECK(f.files() == 1);
  io::staged_file first(f / "a", "new");
  io::staged_file moved(std::move(first));
  moved.commit();
  CHECK(moved.temporary().empty());
  CHECK(io::read_text(f / "a") == "new");
  CHECK(f.files() == 1);
}

TEST_CASE("a temporary name that a killed program has left is taken by nobody else, and the next one is free") {
  const folder f;
  const auto make = [&](std::uint64_t number) {
    const auto [file, name] = io::detail::make_new(f / "x.tmp", number);
    REQUIRE(file);
    REQUIRE(std::fputs("hers", file.get()) >= 0);
    return fs::path(name).filename().string();
  };
  CHECK(make(35) == "x.tmpz00000");
  CHECK(make(35) == "x.tmp010000");
  fs::create_directory(f / "x.tmp110000");  // whatever has the name
  CHECK(make(35) == "x.tmp210000");
  CHECK(f.files() == 4);
  CHECK(io::read_text(f / "x.tmpz00000") == "hers");
  CHECK_FALSE(io::detail::make_new(f / "no/where", 0).first);
}

TEST_CASE("a long name has a temporary name too") {
  const folder f;
  const std::string longest(255, 'y');
  io::write_atomically(f / longest.c_str(), "written");
  CHECK(io::read_text(f / longest.c_str()) == "written");
  CHECK(f.files() == 1);
}

}  // namespace test_file
