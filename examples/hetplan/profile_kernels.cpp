// SPDX-License-Identifier: BSL-1.0
#include "profile_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include <unistd.h>

namespace cli {

namespace {

constexpr long tile_rows = 6, tile_columns = 16, inner_block = 256;

using lanes = float __attribute__((vector_size(4 * tile_columns)));

#define HETPLAN_INLINE_ALWAYS inline __attribute__((always_inline))

/// c (Rows x 16) = a (Rows x k) b (k x 16, packed), or += with `add`.
template <long Rows>
HETPLAN_INLINE_ALWAYS void tile(const float* a, long a_stride, const float* b, long k, float* c, long c_stride, bool add) {
  lanes sum[Rows];
  for (long i = 0; i < Rows; ++i) {
    if (add) std::memcpy(&sum[i], c + i * c_stride, sizeof(lanes));
    else sum[i] = lanes{};
  }
  for (long p = 0; p < k; ++p) {
    lanes row;
    std::memcpy(&row, b + p * tile_columns, sizeof row);
    for (long i = 0; i < Rows; ++i) sum[i] += row * a[i * a_stride + p];
  }
  for (long i = 0; i < Rows; ++i) std::memcpy(c + i * c_stride, &sum[i], sizeof(lanes));
}

/// A thread's part of a product: rows [row, row_end), panels of 16 columns [panel, panel_end).
struct part {
  const float* a;
  const float* b;
  float* c;
  long inner, c_stride, row, row_end, panel, panel_end;
};

HETPLAN_INLINE_ALWAYS void multiply_part(const part& p) {
  for (long k = 0; k < p.inner; k += inner_block) {
    const long depth = std::min(inner_block, p.inner - k);
    for (long panel = p.panel; panel < p.panel_end; ++panel) {
      const float* b = p.b + (panel * p.inner + k) * tile_columns;
      long i = p.row;
      for (; i + tile_rows <= p.row_end; i += tile_rows)
        tile<tile_rows>(p.a + i * p.inner + k, p.inner, b, depth, p.c + i * p.c_stride + panel * tile_columns, p.c_stride, k > 0);
      for (; i < p.row_end; ++i)
        tile<1>(p.a + i * p.inner + k, p.inner, b, depth, p.c + i * p.c_stride + panel * tile_columns, p.c_stride, k > 0);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vl,avx2,fma"))) void multiply_avx512(const part& p) { multiply_part(p); }
__attribute__((target("avx2,fma"))) void multiply_avx2(const part& p) { multiply_part(p); }
void multiply_plain(const part& p) { multiply_part(p); }

void multiply(const part& p) {
  static void (*const best)(const part&) = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? multiply_avx512
                                           : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")       ? multiply_avx2
                                                                                                                   : multiply_plain;
  best(p);
}
#else
void multiply(const part& p) { multiply_part(p); }
#endif

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::unique_ptr<float[]> numbers(long count) {
  auto all = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(count));
  std::fill_n(all.get(), count, 0.5F);  // also maps the pages
  return all;
}

long rounded(double v) { return std::max(1L, std::lround(std::min(v, 1e12))); }

}  // namespace

layer_kernels kernels_of(const hetplan::planning_graph& g, const hetplan::layer& l, int batch) {
  layer_kernels k;
  const double tokens = l.tokens_per_sample, b = batch;
  const double pairs = l.sequence.pairs(tokens, 0), of_attention = l.sequence.attention_flops.value() * pairs;
  const double forward = std::max(0.0, l.forward_flops.value() - of_attention);
  double rows = std::max(1.0, l.rows);
  double read = 0;
  for (const std::uint32_t e : g.in_edges(l.id)) read += g.edges()[e].forward.value();
  if (forward > 0) {
    double weights = std::max(1.0, forward / rows / 2);  // inner * columns
    constexpr double usual = 1 << 20;                    // of a layer that tells none
    const double most = std::max(1.0, l.weight.value() > 0 ? l.weight.value() / l.bytes_per_parameter : usual);
    if (weights > most) {  // its FLOP say that it has more rows
      rows *= weights / most;
      weights = most;
    }
    double inner = std::sqrt(weights);
    if (read > 0) inner = std::clamp(read / l.bytes_per_parameter / rows, 1.0, weights);
    k.forward = {rounded(b * rows), rounded(inner), rounded(weights / inner)};
  }
  if (of_attention > 0 && tokens > 1) k.attention = {rounded(b * tokens), rounded(of_attention / (2 * tokens * tokens)), rounded(tokens)};
  const double all = l.forward_flops.value();
  if (all > 0) {
    k.input_share = k.attention_share = l.backward_input_flops.value() / all;
    k.weight_share = l.backward_weight_flops.value() / all;
  }
  // Tensors have the model's width there and 4 bytes here: as many numbers move.
  const double wider = 4 / l.bytes_per_parameter;
  const double product = static_cast<double>(k.forward.inner) * static_cast<double>(k.forward.columns) * 4;
  const double inside = k.forward.rows > 0 ? k.forward.bytes() - product : 0;
  k.moved = std::max(0.0, b * l.traffic.value() * wider - inside) + std::max(0.0, l.weight_traffic.value() * wider - product);
  return k;
}

/// Workers that wait for the next piece of work.
class kernel_team::threads {
 public:
  explicit threads(int count) : count_(count) {
    for (int i = 1; i < count; ++i) all_.emplace_back([this, i] { loop(i); });
  }
  ~threads() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    begin_.notify_all();
    for (std::thread& t : all_) t.join();
  }
  threads(const threads&) = delete;
  threads& operator=(const threads&) = delete;

  [[nodiscard]] int size() const { return count_; }

  /// Runs f(thread) on all of them; returns when all are done.
  void run(const std::function<void(int)>& f) {
    {
      const std::lock_guard lock(mutex_);
      work_ = &f;
      left_ = count_ - 1;
      ++round_;
    }
    begin_.notify_all();
    f(0);
    std::unique_lock lock(mutex_);
    end_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  void loop(int i) {
    long seen = 0;
    while (true) {
      const std::function<void(int)>* f = nullptr;
      {
        std::unique_lock lock(mutex_);
        begin_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
        f = work_;
      }
      (*f)(i);
      const std::lock_guard lock(mutex_);
      if (--left_ == 0) end_.notify_one();
    }
  }

  int count_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(int)>* work_ = nullptr;
  int left_ = 0;
  long round_ = 0;
  bool stop_ = false;
  std::vector<std::thread> all_;
};

kernel_team::kernel_team(int threads_count) : team_(std::make_unique<threads>(threads_count)) {
  long cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  constexpr long least = 32 << 20, most = 256 << 20;
  others_count_ = static_cast<std::size_t>(std::clamp(2 * cache, least, most)) / sizeof(float);
  others_ = numbers(static_cast<long>(others_count_));
}

kernel_team::~kernel_team() = default;

void kernel_team::evict() {
  const std::size_t share = others_count_ / static_cast<std::size_t>(team_->size());
  std::atomic<float> sink{0};
  team_->run([&](int i) {
    const float* from = others_.get() + static_cast<std::size_t>(i) * share;
    float sum = 0;
    for (std::size_t at = 0; at < share; at += 16) sum += from[at];
    sink.store(sum, std::memory_order_relaxed);
  });
}

double kernel_team::median_s(const std::function<void()>& work) {
  constexpr double enough_s = 0.1;
  constexpr std::size_t most = 15, least = 3;
  work();
  std::vector<double> all;
  double sum = 0;
  while (all.size() < least || (sum < enough_s && all.size() < most)) {
    evict();
    const double begin = now_s();
    work();
    all.push_back(now_s() - begin);
    sum += all.back();
    if (sum > 20 * enough_s) break;  // one run of seconds tells enough
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

double kernel_team::product_s(const product_size& p) {
  if (p.rows == 0) return 0;
  if (const auto known = products_.find(p); known != products_.end()) return known->second;
  const long panels = (p.columns + tile_columns - 1) / tile_columns, stride = panels * tile_columns;
  const auto a = numbers(p.rows * p.inner), b = numbers(stride * p.inner), c = numbers(p.rows * stride);
  const long team = team_->size();
  const bool by_rows = p.rows >= team * tile_rows;
  const long pieces = by_rows ? (p.rows + tile_rows - 1) / tile_rows : panels;
  const double s = median_s([&] {
    team_->run([&](int i) {
      const long first = pieces * i / team, last = pieces * (i + 1) / team;
      part mine{a.get(), b.get(), c.get(), p.inner, stride, 0, p.rows, 0, panels};
      if (by_rows) {
        mine.row = first * tile_rows;
        mine.row_end = std::min(p.rows, last * tile_rows);
      } else {
        mine.panel = first;
        mine.panel_end = last;
      }
      multiply(mine);
    });
  });
  return products_[p] = s;
}

double kernel_team::move_s(double bytes) {
  const long count = std::lround(bytes / (2 * sizeof(float)));  // read as many as are written
  if (count < 1) return 0;
  if (const auto known = moves_.find(count); known != moves_.end()) return known->second;
  const auto from = numbers(count), to = numbers(count);
  const long team = team_->size();
  const double s = median_s([&] {
    team_->run([&](int i) {
      const long first = count * i / team, last = count * (i + 1) / team;
      for (long at = first; at < last; ++at) to[static_cast<std::size_t>(at)] = from[static_cast<std::size_t>(at)] + 1;
    });
  });
  return moves_[count] = s;
}

double kernel_team::flops_per_second() {
  static_cast<void>(product_s({960L * team_->size(), 1024, 1024}));
  constexpr double told_by_clock_s = 1e-5;
  double fastest = 0;
  for (const auto& [size, s] : products_) fastest = std::max(fastest, size.flops() / std::max(s, told_by_clock_s));
  return fastest;
}

double kernel_team::bytes_per_second() {
  constexpr double bytes = 512e6;
  return bytes / move_s(bytes);
}

}  // namespace cli
