// SPDX-License-Identifier: BSL-1.0
#include "profile_link.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>

#include "commands.hpp"

namespace cli {

using hetplan::invalid_input;

namespace {

constexpr std::size_t nonce_bytes = 32, proof_bytes = 32;
constexpr std::uint64_t most_text = 1'000'000, most_transfer = 1ULL << 31;
constexpr double greeting_s = 5;  ///< for all of it, however slowly a stranger speaks

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string nonce() {
  std::array<unsigned char, nonce_bytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) throw std::runtime_error("no random numbers from OpenSSL");
  return {bytes.begin(), bytes.end()};
}

/// The role is in it: what one end says proves nothing for the other.
std::string proof(const std::string& key, std::string_view role, const std::string& accepting, const std::string& connecting) {
  const std::string text = std::string("hetplan profile 1 ") + std::string(role) + accepting + connecting;
  std::array<unsigned char, proof_bytes> hash{};
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           hash.data(), nullptr) == nullptr)
    throw std::runtime_error("no HMAC-SHA-256 from OpenSSL");
  return {hash.begin(), hash.end()};
}

/// Compares in a time that does not tell where two texts differ.
bool same(const std::string& a, const std::string& b) { return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

/// A socket that closes itself.
class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// Waits until a socket can be read or written; false when the time is over.
bool wait_for(int fd, short what, double end_s) {
  while (true) {
    const double left = end_s - now_s();
    if (left <= 0) return false;
    pollfd p{fd, what, 0};
    const int ready = poll(&p, 1, static_cast<int>(std::min(left * 1000 + 1, 1e6)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call on it says what is wrong
  }
}

/// A connection to a named peer; everything ends in time.
class connection {
 public:
  connection(descriptor fd, std::string peer, double end_s) : fd_(std::move(fd)), peer_(std::move(peer)), end_s_(end_s) {
    const int one = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  }

  [[noreturn]] void fail(const std::string& what) const { throw invalid_input(peer_ + ": " + what); }
  [[nodiscard]] const std::string& peer() const { return peer_; }
  void end_at(double end_s) { end_s_ = end_s; }

  void send(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t n = ::send(fd_.get(), data, size, MSG_NOSIGNAL);
      if (n > 0) {
        data += n;
        size -= static_cast<std::size_t>(n);
      } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (!wait_for(fd_.get(), POLLOUT, end_s_)) fail("took nothing in time");
      } else if (n < 0 && errno != EINTR) {
        fail(std::strerror(errno));
      }
    }
  }
  void send(const std::string& text) { send(text.data(), text.size()); }

  void receive(char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t n = recv(fd_.get(), data, size, 0);
      if (n > 0) {
        data += n;
        size -= static_cast<std::size_t>(n);
      } else if (n == 0) {
        fail("hung up");
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        if (!wait_for(fd_.get(), POLLIN, end_s_)) fail("said nothing in time");
      } else if (errno != EINTR) {
        fail(std::strerror(errno));
      }
    }
  }
  [[nodiscard]] std::string receive(std::size_t size) {
    std::string text(size, '\0');
    receive(text.data(), size);
    return text;
  }

  void send_count(std::uint64_t n) {
    std::string text;
    for (int b = 7; b >= 0; --b) text.push_back(static_cast<char>(n >> (8 * b) & 255));
    send(text);
  }
  [[nodiscard]] std::uint64_t receive_count(std::uint64_t most) {
    std::uint64_t n = 0;
    for (const char c : receive(8)) n = n << 8 | static_cast<unsigned char>(c);
    if (n > most) fail("expected a size of at most " + std::to_string(most) + ", got " + std::to_string(n));
    return n;
  }
  void send_text(const std::string& text) {
    send_count(text.size());
    send(text);
  }
  [[nodiscard]] std::string receive_text() { return receive(static_cast<std::size_t>(receive_count(most_text))); }

  void send_filler(std::uint64_t size) {
    const std::vector<char> piece(1 << 18, 'h');
    for (; size > 0; size -= std::min<std::uint64_t>(size, piece.size()))
      send(piece.data(), static_cast<std::size_t>(std::min<std::uint64_t>(size, piece.size())));
  }
  void receive_filler(std::uint64_t size) {
    std::vector<char> piece(1 << 18);
    for (; size > 0; size -= std::min<std::uint64_t>(size, piece.size()))
      receive(piece.data(), static_cast<std::size_t>(std::min<std::uint64_t>(size, piece.size())));
  }

 private:
  descriptor fd_;
  std::string peer_;
  double end_s_;
};

struct addresses {
  addrinfo* first = nullptr;
  ~addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
  addresses() = default;
  addresses(const addresses&) = delete;
  addresses& operator=(const addresses&) = delete;
};

/// Finds the addresses of HOST:PORT, [HOST]:PORT or, to listen, PORT.
void resolve(const char* option, const std::string& given, bool listens, addresses& to) {
  const std::size_t colon = given.rfind(':');
  std::string host = colon == std::string::npos ? "" : given.substr(0, colon);
  const std::string port = colon == std::string::npos ? given : given.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  int number = 0;
  const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (code != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535 || (!listens && host.empty())) {
    throw invalid_input(std::string(option) + ": expected " + (listens ? "PORT or HOST:PORT" : "HOST:PORT") +
                        " with a port of 1 to 65535, got " + hetplan::io::in_quotes(given));
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listens ? AI_PASSIVE : 0;
  if (const int fault = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &to.first); fault != 0)
    throw invalid_input(std::string(option) + " " + given + ": " + gai_strerror(fault));
}

std::string name_of(const sockaddr_storage& a, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&a), size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown address";
  return std::string(host.data()) + ":" + port.data();
}

descriptor listener(const std::string& address) {
  addresses found;
  resolve("--listen", address, true, found);
  // Where IPv6 is there, its sockets take IPv4, too.
  std::vector<const addrinfo*> order;
  for (const addrinfo* a = found.first; a != nullptr; a = a->ai_next) order.push_back(a);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->ai_family == AF_INET6 && b->ai_family != AF_INET6; });
  int error = 0;
  for (const addrinfo* a : order) {
    descriptor fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) {
      error = errno;
      continue;
    }
    const int one = 1, zero = 0;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->ai_family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(fd.get(), 4) == 0) {
      fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
      return fd;
    }
    error = errno;
    if (error == EADDRINUSE) break;
  }
  throw invalid_input("--listen " + address + ": " + std::strerror(error));
}

/// True if the other end has the key.
bool admit(connection& c, const std::string& key) {
  const std::string ours = nonce();
  c.send(ours);
  const std::string theirs = c.receive(nonce_bytes), said = c.receive(proof_bytes);
  if (!same(said, proof(key, "connects", ours, theirs))) return false;
  c.send(proof(key, "accepts", ours, theirs));
  return true;
}

void greet(connection& c, const std::string& key) {
  const std::string theirs = c.receive(nonce_bytes), ours = nonce();
  c.send(ours + proof(key, "connects", theirs, ours));
  std::string said;
  try {
    said = c.receive(proof_bytes);
  } catch (const invalid_input&) {
    c.fail("the other end hung up: it has another --key");
  }
  if (!same(said, proof(key, "accepts", theirs, ours))) c.fail("the other end has another --key");
}

/// Does what the measuring end asks; returns what it found.
measured_link answer(connection& c, const std::string& own) {
  measured_link found;
  found.other = c.receive_text();
  c.send_text(own);
  while (true) {
    const char what = c.receive(1)[0];
    if (what == 'p') {
      c.send("p");
    } else if (what == 'u') {
      const std::uint64_t size = c.receive_count(most_transfer);
      c.receive_filler(size);
      c.send_count(size);
    } else if (what == 'd') {
      c.send_filler(c.receive_count(most_transfer));
    } else if (what == 'r') {
      for (double* v : {&found.latency_s, &found.in_bytes_per_s, &found.out_bytes_per_s}) {
        *v = std::bit_cast<double>(c.receive_count(~0ULL));
        if (!std::isfinite(*v) || *v < 0 || (v != &found.latency_s && *v == 0)) c.fail("expected what was measured, got something else");
      }
      c.send("r");
      return found;
    } else {
      c.fail("expected a measurement, got something else");
    }
  }
}

double round_trip(connection& c) {
  constexpr int trips = 51;
  std::vector<double> all;
  for (int i = 0; i < trips; ++i) {
    const double begin = now_s();
    c.send("p");
    if (c.receive(1) != "p") c.fail("expected an echo, got something else");
    if (i > 0) all.push_back(now_s() - begin);
  }
  std::sort(all.begin(), all.end());
  return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
}

/// Returns bytes per second of transfers that grow until one lasts long enough.
template <class F>
double bandwidth(double trip_s, const F& transfer_s) {
  constexpr double long_enough_s = 0.5, aim_s = 0.8;
  constexpr std::uint64_t most = 1ULL << 30;
  std::uint64_t size = 1 << 16;
  while (true) {
    const double s = std::max(transfer_s(size) - trip_s, 1e-9);
    if (s >= long_enough_s || size == most) return static_cast<double>(size) / s;
    size = std::min(most, static_cast<std::uint64_t>(static_cast<double>(size) * std::clamp(aim_s / s, 2.0, 16.0)));
  }
}

measured_link measure(connection& c, const std::string& own) {
  measured_link found;
  c.send_text(own);
  found.other = c.receive_text();
  const double trip = round_trip(c);
  found.latency_s = trip / 2;
  found.out_bytes_per_s = bandwidth(trip, [&](std::uint64_t size) {
    const double begin = now_s();
    c.send("u");
    c.send_count(size);
    c.send_filler(size);
    if (c.receive_count(~0ULL) != size) c.fail("expected the size of what was sent, got another");
    return now_s() - begin;
  });
  found.in_bytes_per_s = bandwidth(trip, [&](std::uint64_t size) {
    const double begin = now_s();
    c.send("d");
    c.send_count(size);
    c.receive_filler(size);
    return now_s() - begin;
  });
  c.send("r");
  for (const double v : {found.latency_s, found.out_bytes_per_s, found.in_bytes_per_s}) c.send_count(std::bit_cast<std::uint64_t>(v));
  if (c.receive(1) != "r") c.fail("expected an end, got something else");
  return found;
}

}  // namespace

measured_link listen_for_link(const std::string& address, const link_options& o, const std::string& own) {
  const descriptor at = listener(address);
  const double end = now_s() + o.timeout_s;
  while (true) {
    if (!wait_for(at.get(), POLLIN, end))
      throw invalid_input("--listen " + address + ": nobody with the key came in " + hetplan::to_text(o.timeout_s) + " s");
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    descriptor fd(accept(at.get(), reinterpret_cast<sockaddr*>(&from), &size));
    if (fd.get() < 0) continue;
    connection c(std::move(fd), name_of(from, size), std::min(end, now_s() + greeting_s));
    try {
      if (!admit(c, o.key)) {
        warn(c.peer() + ": refused, it has another key");
        continue;
      }
    } catch (const invalid_input& e) {
      warn(std::string(e.what()) + "; refused");
      continue;
    }
    c.end_at(now_s() + o.timeout_s);
    return answer(c, own);
  }
}

measured_link connect_link(const std::string& address, const link_options& o, const std::string& own) {
  addresses found;
  resolve("--connect", address, false, found);
  const double end = now_s() + o.timeout_s;
  int error = 0;
  for (const addrinfo* a = found.first; a != nullptr; a = a->ai_next) {
    descriptor fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) {
      error = errno;
      continue;
    }
    fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    if (connect(fd.get(), a->ai_addr, a->ai_addrlen) != 0) {
      error = errno;
      if (error != EINPROGRESS) continue;
      if (!wait_for(fd.get(), POLLOUT, end)) {
        error = ETIMEDOUT;
        continue;
      }
      socklen_t size = sizeof error;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) continue;
    }
    connection c(std::move(fd), address, end);
    greet(c, o.key);
    return measure(c, own);
  }
  throw invalid_input("--connect " + address + ": " + std::strerror(error));
}

}  // namespace cli
