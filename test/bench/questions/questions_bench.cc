// SPDX-License-Identifier: Apache-2.0
//
// The cost of queries, as one JSON object on stdout: CPU time of the querying thread from the snapshot to the built
// answer, and to its bytes, while another thread adds samples at the pace of the host. The host is synthetic: 64 busy
// CPUs at 99 Hz, six services of 64 threads that use most, and 34 smaller ones.
//
//   questions_bench [minutes [cpus [waits]]]     (default: 1440, a day, of 64 CPUs; takes minutes, and 3 GiB)
//
// With `waits` so many threads a second are found waiting, too. The questions are about CPU time all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/render/render_columns.h"
#include "base/clock.h"
#include "base/heap.h"
#include "store/index/kept_index.h"
#include "store/query/heatmap.h"
#include "store/query/query.h"
#include "store/query/timeline.h"
#include "store/ring/store.h"
#include "test/support/manual_clock.h"

namespace flamed::store {
namespace {

constexpr std::int64_t kPeriodNs = kNsPerSecond / 99;
constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};
constexpr std::uint32_t kPool = 1500;
/// These minutes have their samples in the order of time. Earlier ones have them by thread and stack, which gives the
/// same histograms and is faster to add.
constexpr int kMinutesInOrder = 130;
// Virtual machines run faster and slower for seconds, so the median must cover more than one such time.
constexpr std::size_t kFewestRepetitions = 9;
constexpr double kLeastMs = 5000;
constexpr std::size_t kMostNodes = 200'000;  // the default of answers

/// CPU time of this thread, so that the figures hold on a busy machine too.
double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Names as the daemon's warm cache does: each address once, then shared.
class CachedNamer final : public FrameNamer {
 public:
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    const double start = now_ms();
    std::vector<std::shared_ptr<const InlineChain>> chains;
    chains.reserve(frames.size());
    for (const Frame& frame : frames) {
      std::shared_ptr<const InlineChain>& chain = known_[frame];
      if (chain == nullptr) {
        std::string name = "function_" + std::to_string(frame.module.value) + "_" + std::to_string(frame.offset >> 8);
        chain = share({NamedFrame{std::move(name), "lib.so", FrameKind::kNative, ""}});
      }
      chains.push_back(chain);
    }
    took_ms += now_ms() - start;
    return chains;
  }
  std::uint64_t edition(std::span<const ModuleId> /*modules*/) override { return 1; }
  [[nodiscard]] KeptIndex* kept_index() override { return &index_; }
  double took_ms = 0;

 private:
  KeptIndex index_{std::size_t{32} << 20};
  std::unordered_map<Frame, std::shared_ptr<const InlineChain>> known_;
};

/// A service has a pool of stacks, some of them frequent: walks down a fixed call graph in which a function's first
/// callee is by far the most frequent, so that stacks differ mostly in their innermost frames.
struct Service {
  std::uint32_t module = 0;
  std::int32_t pid = 0;
  unsigned threads = 1;
  std::vector<std::vector<Frame>> pool{};

  void make_pool(std::mt19937_64& random) {
    std::uniform_real_distribution<double> unit(0, 1);
    for (std::uint32_t s = 0; s < kPool; ++s) {
      std::minstd_rand walk(static_cast<std::uint32_t>(std::pow(unit(random), 3) * kPool) * 64 + module + 1);
      std::vector<Frame>& frames = pool.emplace_back();
      std::uint64_t function = 1;
      const std::size_t depth = 10 + walk() % 40;
      for (std::size_t i = 0; i < depth; ++i) {
        const double skew = unit(walk);
        const double first = i + 6 < depth ? 0.97 : 0.6;
        const auto callee = static_cast<std::uint64_t>(skew < first ? 0 : skew < 0.99 ? 1 : 2);
        function = (function * 2654435761U + callee * 40503U + 17) % 4000;
        frames.push_back({ModuleId{module}, (function << 8) | (callee * 8)});
      }
      if (random() % 50 == 0) frames.back().offset = random() & 0xfffff;
    }
  }
};

/// The host: draws samples and adds them.
class Host {
 public:
  Host(Store& store, ManualClock& clock, unsigned cpus, unsigned waits)
      : store_(store), clock_(clock), cpus_(cpus), waits_(waits) {
    std::uint32_t pairs = 0;
    for (std::uint32_t i = 0; i < 40; ++i) {
      Service& service =
          services_.emplace_back(Service{16 + i, static_cast<std::int32_t>(500 + i * 100), i < 6 ? 64U : 4U});
      service.make_pool(random_);
      first_pair_.push_back(pairs);
      pairs += service.threads * kPool;
    }
    counts_.resize(pairs);
  }

  /// A past minute.
  void add_minute_grouped() {
    std::vector<Drawn> novel;
    std::fill(counts_.begin(), counts_.end(), std::uint8_t{0});
    for (unsigned i = 0; i < per_second() * 60; ++i) {
      const Drawn drawn = draw(random_);
      // Counts of a pair above two do not change the cost of a query.
      std::uint8_t& count = counts_[first_pair_[drawn.service] + drawn.thread * kPool + drawn.stack];
      if (count < 2) ++count;
      if (drawn.novel) novel.push_back(drawn);
    }
    std::int64_t at = clock_.monotonic().ns;
    for (std::uint32_t service = 0; service < services_.size(); ++service) {
      for (std::uint32_t pair = 0; pair < services_[service].threads * kPool; ++pair) {
        const Drawn drawn{service, static_cast<std::uint32_t>(pair / kPool), static_cast<std::uint32_t>(pair % kPool)};
        for (unsigned i = 0; i < counts_[first_pair_[service] + pair]; ++i) add(drawn, {at += 100'000});
      }
    }
    for (const Drawn& drawn : novel) add(drawn, {at += 100'000});
    for (int second = 0; second < 60; ++second) add_waits({clock_.monotonic().ns + second * kNsPerSecond});
    clock_.advance_ns(kNsPerMinute);
    store_.advance(clock_.monotonic());
  }

  void add_second() {
    for (unsigned i = 0; i < per_second(); ++i) {
      add(draw(random_), {clock_.monotonic().ns + i * (kNsPerSecond / per_second())},
          static_cast<std::uint16_t>(i % cpus_));
    }
    add_waits(clock_.monotonic());
    clock_.advance_ns(kNsPerSecond);
    store_.advance(clock_.monotonic());
  }

 private:
  struct Drawn {
    std::uint32_t service = 0;
    std::uint32_t thread = 0;
    std::uint32_t stack = 0;
    std::uint32_t novel = 0;  ///< a rare address, otherwise 0
  };

  [[nodiscard]] unsigned per_second() const { return cpus_ * 99; }

  Drawn draw(std::mt19937_64& random) {
    const std::uint64_t dice = random();
    Drawn drawn;
    drawn.service = static_cast<std::uint32_t>(dice % 10 < 7 ? (dice >> 8) % 6 : (dice >> 8) % services_.size());
    const double unit = static_cast<double>((dice >> 16) & 0xffff) / 65536;
    drawn.stack = static_cast<std::uint32_t>(unit * unit * unit * kPool);
    drawn.thread = static_cast<std::uint32_t>((dice >> 32) % services_[drawn.service].threads);
    if ((dice >> 48) % 500 == 0) drawn.novel = 1 + static_cast<std::uint32_t>(dice & 0xfffff);
    return drawn;
  }
  void add(const Drawn& drawn, MonotonicTime time, std::uint16_t cpu = 0) {
    const Service& service = services_[drawn.service];
    std::span<const Frame> stack = service.pool[drawn.stack];
    if (drawn.novel != 0) {
      novel_.assign(stack.begin(), stack.end());
      novel_.back().offset = drawn.novel;
      stack = novel_;
    }
    const std::int32_t tid = service.pid + static_cast<std::int32_t>(drawn.thread);
    store_.add({time, {service.pid, 1}, tid, "program", stack, {}, cpu});
  }

  /// Waits of half a second each, in the functions that also run.
  void add_waits(MonotonicTime second) {
    static constexpr WaitReason kReasons[] = {WaitReason::kLock, WaitReason::kDisk, WaitReason::kPoll};
    for (unsigned i = 0; i < waits_; ++i) {
      const Drawn drawn = draw(waits_random_);
      const Service& service = services_[drawn.service];
      const std::vector<Frame>& stack = service.pool[drawn.stack];
      novel_.assign(stack.begin(), stack.end());
      novel_.push_back(wait_frame(kReasons[i % std::size(kReasons)]));
      WaitSample wait;
      wait.sample = {{second.ns + i * (kNsPerSecond / waits_)},
                     {service.pid, 1},
                     service.pid + static_cast<std::int32_t>(drawn.thread),
                     "program",
                     novel_,
                     {}};
      wait.last_seen = MonotonicTime{wait.sample.time.ns - kNsPerSecond / 2};
      wait.waited_ns = kNsPerSecond / 2;
      store_.add_wait(wait);
    }
    if (waits_ != 0) store_.set_waits_seen(second);
  }

  Store& store_;
  ManualClock& clock_;
  const unsigned cpus_;
  const unsigned waits_;
  std::mt19937_64 random_{1};
  std::mt19937_64 waits_random_{2};  ///< so that the samples are the same with and without waits
  std::vector<Service> services_;
  std::vector<std::uint32_t> first_pair_;  ///< by service: into counts_
  std::vector<std::uint8_t> counts_;       ///< of one minute, by service, thread and stack
  std::vector<Frame> novel_;
};

struct Figures {
  void add(const std::string& name, double value) {
    std::printf("%s  \"%s\": %.*f", first ? "{\n" : ",\n", name.c_str(),
                value < 100 && value != std::floor(value) ? 2 : 0, value);
    std::fflush(stdout);
    first = false;
  }
  ~Figures() { std::printf("\n}\n"); }
  bool first = true;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Asker {
 public:
  Asker(const Store& store, WallTime now, Figures& figures) : store_(store), now_(now), figures_(figures) {}

  void ask_all(bool a_day) {
    // The first queries about everything make the sums of minutes that later ones use.
    const auto first = [&](const char* name, const auto& ask) {
      namer_.took_ms = 0;
      const double start = now_ms();
      ask();
      figures_.add(std::string(name) + "_first_ms", now_ms() - start - namer_.took_ms);
    };
    first("process_1h", [&] { return profile(60, true); });
    first("machine_1h", [&] { return profile(60, false); });
    tree("process_1h", [&] { return profile(60, true); });
    tree("machine_1h", [&] { return profile(60, false); });
    if (a_day) {
      first("machine_24h", [&] { return profile(24 * 60, false); });
      tree("machine_24h", [&] { return profile(24 * 60, false); });
    }
    figures_.add("diff_process_1h_ms", cost([&] { return compare(true); }));
    figures_.add("diff_machine_1h_ms", cost([&] { return compare(false); }));
    const Selection minutes{window(0, 10)};
    figures_.add("heatmap_10min_ms", cost([&] { return heatmap(store_.snapshot(), minutes, 50, unlimited_).value(); }));
    figures_.add("timeline_10min_ms",
                 cost([&] { return timeline(store_.snapshot(), minutes, kNsPerSecond, 10, unlimited_).value(); }));
    const Selection hour{window(0, 60)};
    figures_.add("processes_1h_ms", cost([&] { return process_usage(store_.snapshot(), hour, unlimited_).value(); }));
    const Selection of_one{window(0, 60), processes(true)};
    figures_.add("threads_1h_ms", cost([&] { return thread_usage(store_.snapshot(), of_one, unlimited_).value(); }));
  }

 private:
  /// Without naming. Includes freeing the answer.
  template <typename Ask>
  double cost(const Ask& ask, double* naming_ms = nullptr) {
    std::vector<double> took;
    std::vector<double> naming;
    const double began = now_ms();
    while (took.size() < kFewestRepetitions || now_ms() - began < kLeastMs) {
      namer_.took_ms = 0;
      const double start = now_ms();
      static_cast<void>(ask());
      took.push_back(now_ms() - start - namer_.took_ms);
      naming.push_back(namer_.took_ms);
    }
    if (naming_ms != nullptr) *naming_ms = median(std::move(naming));
    return median(std::move(took));
  }
  template <typename Ask>
  void tree(const std::string& name, const Ask& ask) {
    double naming_ms = 0;
    figures_.add(name + "_ms", cost(ask, &naming_ms));
    figures_.add(name + "_naming_ms", naming_ms);
    const Profile answer = ask();
    figures_.add(name + "_nodes", static_cast<double>(answer.nodes.size()));
    figures_.add(name + "_functions", static_cast<double>(answer.frames.size()));
    std::size_t bytes = 0;
    figures_.add(name + "_columns_ms",
                 cost([&] { return bytes = api::render_columns(answer, 99, api::ColumnForm::kJson).size(); }));
    figures_.add(name + "_columns_bytes", static_cast<double>(bytes));
  }

  [[nodiscard]] WallWindow window(int to_minutes_ago, int minutes_long) const {
    // Not at a minute's edge, so that both ends are parts of minutes.
    const std::int64_t to = now_.ns - to_minutes_ago * kNsPerMinute - 7 * kNsPerSecond;
    return {{to - minutes_long * kNsPerMinute}, {to}};
  }
  [[nodiscard]] static std::vector<ProcessSelector> processes(bool one) {
    return one ? std::vector<ProcessSelector>{{500, {}}} : std::vector<ProcessSelector>{};
  }
  Profile profile(int minutes, bool one_process) {
    const Selection selection{window(0, minutes), processes(one_process)};
    ProfileOptions options;
    options.max_nodes = kMostNodes;
    return build_profile(store_.snapshot(), selection, options, namer_, unlimited_).value();
  }
  ProfileDiff compare(bool one_process) {
    const Selection before{window(60, 60), processes(one_process)};
    const Selection after{window(0, 60), processes(one_process)};
    ProfileOptions options;
    options.group = Group::kNone;
    DiffOptions pruning;
    pruning.max_nodes = kMostNodes;
    return build_diff(store_.snapshot(), before, after, options, pruning, namer_, unlimited_).value();
  }

  const Store& store_;
  const WallTime now_;
  Figures& figures_;
  CachedNamer namer_;
  QueryBudget unlimited_;
};

void measure(int minutes, unsigned cpus, unsigned waits) {
  Figures figures;
  ManualClock clock({1000 * kNsPerSecond}, kNoon);
  Store store({24 * 60 * kNsPerMinute, 1U << 30}, clock, kPeriodNs);
  Host host(store, clock, cpus, waits);
  const int in_order = std::min(minutes, kMinutesInOrder);
  for (int minute = 0; minute < minutes - in_order; ++minute) host.add_minute_grouped();
  for (int second = 0; second < in_order * 60; ++second) host.add_second();
  const StoreStats stats = store.stats();
  figures.add("minutes", minutes);
  figures.add("cpus", cpus);
  figures.add("store_bytes", static_cast<double>(stats.used_bytes));
  figures.add("slots_dropped_for_budget", static_cast<double>(stats.slots_dropped_for_budget));
  figures.add("call_tree_nodes", static_cast<double>(stats.nodes));
  figures.add("pairs_per_minute", static_cast<double>(stats.histogram_entries) / static_cast<double>(stats.slots));

  double slowest_second_ms = 0;
  int seconds_added = 0;
  const WallTime now = clock.wall();
  std::jthread writer([&](const std::stop_token& stop) {
    auto next = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      const double start = now_ms();
      host.add_second();
      slowest_second_ms = std::max(slowest_second_ms, now_ms() - start);
      ++seconds_added;
      std::this_thread::sleep_until(next += std::chrono::seconds(1));
    }
  });
  std::thread asker([&] { Asker(store, now, figures).ask_all(minutes >= 24 * 60); });
  asker.join();
  writer.request_stop();
  writer.join();
  figures.add("seconds_added_meanwhile", seconds_added);
  figures.add("slowest_second_to_add_ms", slowest_second_ms);
  figures.add("lost", static_cast<double>(store.stats().quality.lost_total()));
}

}  // namespace
}  // namespace flamed::store

int main(int argc, char** argv) {
  flamed::keep_freed_memory();  // as the daemon does
  flamed::store::measure(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 24 * 60,
                         argc > 2 ? static_cast<unsigned>(std::clamp(std::atoi(argv[2]), 1, 1024)) : 64U,
                         argc > 3 ? static_cast<unsigned>(std::clamp(std::atoi(argv[3]), 0, 10'000)) : 0U);
  return 0;
}
