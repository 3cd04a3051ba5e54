// SPDX-License-Identifier: BSL-1.0
#include <clocale>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/json_node.hpp>

using namespace hetplan;
using io::dimension_of;
using io::parse_quantity;

TEST_CASE("amounts with units have exactly the value of their SI number") {
  const auto value = [](const char* text, io::dimension d) {
    INFO(text);
    const auto p = parse_quantity(text, d);
    REQUIRE(p.value.has_value());
    return *p.value;
  };
  constexpr auto time = dimension_of<seconds>, data = dimension_of<bytes>, rate = dimension_of<bytes_per_second>;
  CHECK(value("200 ms", time) == 0.2);
  CHECK(value("0.1 ms", time) == 1e-4);
  CHECK(value("35us", time) == 35e-6);
  CHECK(value("35 \xC2\xB5s", time) == 35e-6);
  CHECK(value("35 \xCE\xBCs", time) == 35e-6);
  CHECK(value("7 ns", time) == 7e-9);
  CHECK(value("1.5 min", time) == 90);
  CHECK(value("2 h", time) == 7200);
  CHECK(value("0 s", time) == 0);
  CHECK(value("1e3 s", time) == 1000);
  CHECK(value("1E-3 ks", time) == 1);
  CHECK(value("2e+3 ms", time) == 2);
  CHECK(value("-3 s", time) == -3);
  CHECK(value("6 GB", data) == 6e9);
  CHECK(value("0.3 GB", data) == 3e8);
  CHECK(value("1 KiB", data) == 1024);
  CHECK(value("2 MiB", data) == 2097152);
  CHECK(value("3 GiB", data) == 3221225472.0);
  CHECK(value("8 bit", data) == 1);
  CHECK(value("4 TB", data) == 4e12);
  CHECK(value("600 Mbit/s", rate) == 600e6 / 8);
  CHECK(value("600 Mbps", rate) == 600e6 / 8);
  CHECK(value("1Gbps", rate) == 1e9 / 8);
  CHECK(value("56 kbps", rate) == 56e3 / 8);
  CHECK(value("300 bit/s", rate) == 300.0 / 8);
  CHECK(value("50 GB/s", rate) == 50e9);
  CHECK(value("1 GiB/s", rate) == 1073741824.0);
  CHECK(value("9.1 TFLOP/s", dimension_of<flops_per_second>) == 9.1e12);
  CHECK(value("2 GFLOP", dimension_of<flops>) == 2e9);
  CHECK(value("35 W", dimension_of<watts>) == 35);
  CHECK(value("1000 J/s", dimension_of<watts>) == 1000);
  CHECK(value("1 kW", dimension_of<watts>) == 1000);
  CHECK(value("3 Wh", dimension_of<joules>) == 10800);
  CHECK(value("2 kWh", dimension_of<joules>) == 7.2e6);
  CHECK(value("5 mJ", dimension_of<joules>) == 5e-3);
  CHECK(value("40 nJ/B", dimension_of<joules_per_byte>) == 40e-9);
  CHECK(value("1e-400 s", time) == 0);
}

TEST_CASE("anything else is no amount") {
  for (const char* text : {"",        " ",      "six",    "6",        "6 ",    " 6 GB",    "6  GB",
                           "6 GB ",   "6GB/",   "GB",     "6 GB/s/s", "6 XB",  "6 Kbit",   "6 KB",
                           "6 Mibit", "6 gB",   "6 Gb",   "6 mibit",  "+6 GB", ".5 GB",    "6. GB",
                           "1,5 GB",  "0x6 GB", "inf GB", "nan GB",   "1e GB", "1e999 GB", "1e99999999999 GB",
                           "6 GB\n",  "6\tGB",  "6 s",    "6 W",      "6 J",   "6 FLOP",   "6 B/B",
                           "6 GB/s"}) {
    INFO(text);
    CHECK_FALSE(parse_quantity(text, dimension_of<bytes>).value.has_value());
  }
  CHECK_FALSE(parse_quantity("6 GB", {}).value.has_value());
  CHECK_FALSE(parse_quantity("6 m", dimension_of<seconds>).value.has_value());
  CHECK_FALSE(parse_quantity(std::string("6 G\0B", 5), dimension_of<bytes>).value.has_value());
}

TEST_CASE("a slip of the unit is met with the unit that was meant") {
  const auto meant = [](const char* text, io::dimension d) { return parse_quantity(text, d).meant; };
  constexpr auto data = dimension_of<bytes>, rate = dimension_of<bytes_per_second>;
  CHECK(meant("600 Mb/s", rate) == "600 Mbit/s");
  CHECK(meant("50 GBps", rate) == "50 GB/s");
  CHECK(meant("8 Mb", data) == "8 Mbit");
  CHECK(meant("8 kb", data) == "8 kbit");
  CHECK(meant("8 KB", data) == "8 kB");
  CHECK(meant("8 gB", data) == "8 GB");
  CHECK(meant("8 kib", data).empty());
  CHECK(meant("8 GBytes", data) == "8 GB");
  CHECK(meant("9 TFLOPS", dimension_of<flops_per_second>) == "9 TFLOP/s");
  CHECK(meant("9 tflop/s", dimension_of<flops_per_second>) == "9 TFLOP/s");
  CHECK(meant("9 GFLOPs", dimension_of<flops>) == "9 GFLOP");
  CHECK(meant("9 sec", dimension_of<seconds>) == "9 s");
  CHECK(meant("9 MS", dimension_of<seconds>) == "9 ms");
  CHECK(meant("9 watts", dimension_of<watts>) == "9 W");
  CHECK(meant("400 Mbit", rate) == "400 Mbit/s");
  CHECK(meant("400 mbits", rate) == "400 Mbit/s");
  CHECK(meant("50 GB", rate) == "50 GB/s");
  CHECK(meant("9 TFLOP", dimension_of<flops_per_second>) == "9 TFLOP/s");
  CHECK(meant("9 apples", data).empty());
  CHECK(meant("9 apples", rate).empty());
  CHECK(meant("six", data).empty());
}

TEST_CASE("a prefix that makes no sense before its unit is an error that names what was meant") {
  constexpr auto time = dimension_of<seconds>, data = dimension_of<bytes>, work = dimension_of<flops>;
  constexpr auto rate = dimension_of<bytes_per_second>, speed = dimension_of<flops_per_second>;
  const auto refused = [](const char* text, io::dimension d, const char* meant) {
    const auto p = parse_quantity(text, d);
    INFO(text << " = " << p.value.value_or(-1) << ", meant " << p.meant);
    CHECK_FALSE(p.value.has_value());
    CHECK(p.meant == meant);
  };
  refused("600 mbit/s", rate, "600 Mbit/s");
  refused("600 mbps", rate, "600 Mbit/s");
  refused("600 mb/s", rate, "600 Mbit/s");
  refused("50 mB/s", rate, "50 MB/s");
  refused("8 mB", data, "8 MB");
  refused("8 mbit", data, "8 Mbit");
  refused("9 mFLOP", work, "9 MFLOP");
  refused("9 mFLOP/s", speed, "9 MFLOP/s");
  refused("200 Ms", time, "200 ms");
  for (const char* text : {"8 uB", "8 nbit",
                           "8 \xC2\xB5"
                           "B"})
    refused(text, data, "");
  for (const char* text : {"3 kmin", "3 mmin", "3 kh", "3 mh", "3 Gs", "3 Ts"}) refused(text, time, "");
  refused("3 ubit/s", rate, "");
  refused("3 nFLOP", work, "");
}

TEST_CASE("amounts do not depend on the locale") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  const auto p = parse_quantity("1.5 GB", dimension_of<bytes>);
  std::setlocale(LC_ALL, before.c_str());
  CHECK(p.value == 1.5e9);
}

TEST_CASE("every dimension that files use has a name") {
  CHECK(io::to_string(dimension_of<bytes>) == "bytes");
  CHECK(io::to_string(dimension_of<flops_per_second>) == "FLOP/s");
  CHECK(io::to_string(io::dimension{}) == "a number");
}
