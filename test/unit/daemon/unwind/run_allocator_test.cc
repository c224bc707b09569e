// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/run_allocator.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// The same allocator, by a linear search.
class Bitmap {
 public:
  Bitmap(std::uint32_t segments, std::uint32_t segment_size)
      : segment_size_(segment_size), taken_(std::size_t{segments} * segment_size) {}

  std::optional<std::uint32_t> allocate(std::uint32_t count) {
    if (count == 0 || count > segment_size_) return std::nullopt;
    for (std::uint32_t first = 0; first + count <= taken_.size(); ++first) {
      if (first / segment_size_ != (first + count - 1) / segment_size_) continue;
      const auto run = taken_.begin() + first;
      if (std::find(run, run + count, true) != run + count) continue;
      std::fill(run, run + count, true);
      return first;
    }
    return std::nullopt;
  }
  void free(std::uint32_t first, std::uint32_t count) { std::fill_n(taken_.begin() + first, count, false); }
  [[nodiscard]] std::uint32_t used() const {
    return static_cast<std::uint32_t>(std::count(taken_.begin(), taken_.end(), true));
  }
  [[nodiscard]] bool is_segment_free(std::uint32_t segment) const {
    const auto first = taken_.begin() + segment * segment_size_;
    return std::find(first, first + segment_size_, true) == first + segment_size_;
  }

 private:
  std::uint32_t segment_size_;
  std::vector<bool> taken_;
};

TEST_CASE("runs are allocated and freed as by a linear search") {
  std::mt19937 random(1);
  const std::pair<std::uint32_t, std::uint32_t> shapes[] = {{1, 1}, {1, 64}, {4, 16}, {7, 33}, {40, 1}};
  for (const auto& [segments, size] : shapes) {
    CAPTURE(segments, size);
    RunAllocator allocator(segments, size);
    Bitmap bitmap(segments, size);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
    bool all_equal = true;
    for (int step = 0; step < 20'000 && all_equal; ++step) {
      // Fills and empties alternately.
      const bool allocate = runs.empty() || random() % 8 < (step / 500 % 2 == 0 ? 5U : 2U);
      if (allocate) {
        const auto count = static_cast<std::uint32_t>(1 + random() % (random() % 4 == 0 ? size : std::min(size, 5U)));
        const std::optional<std::uint32_t> first = allocator.allocate(count);
        all_equal = first == bitmap.allocate(count);
        if (first) runs.emplace_back(*first, count);
      } else {
        const std::size_t at = random() % runs.size();
        allocator.free(runs[at].first, runs[at].second);
        bitmap.free(runs[at].first, runs[at].second);
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const auto segment = static_cast<std::uint32_t>(random() % segments);
      all_equal = all_equal && allocator.used() == bitmap.used() &&
                  allocator.is_segment_free(segment) == bitmap.is_segment_free(segment);
    }
    CHECK(all_equal);
    for (const auto& [first, count] : runs) allocator.free(first, count);
    CHECK(allocator.used() == 0);
    for (std::uint32_t segment = 0; segment < segments; ++segment) {
      CHECK(allocator.is_segment_free(segment));
      CHECK(allocator.allocate(size) == segment * size);
    }
  }
}

TEST_CASE("no run crosses a segment's border") {
  RunAllocator allocator(3, 10);
  CHECK(allocator.allocate(7) == 0U);
  CHECK(allocator.allocate(7) == 10U);
  CHECK(allocator.allocate(3) == 7U);
  CHECK(allocator.allocate(7) == 20U);
  CHECK(allocator.allocate(4) == std::nullopt);
  // Adjacent free runs on both sides of a border stay separate.
  allocator.free(7, 3);
  allocator.free(10, 7);
  CHECK(allocator.allocate(10) == 10U);
}

TEST_CASE("empty runs and runs longer than a segment are refused") {
  RunAllocator allocator(2, 10);
  CHECK(allocator.allocate(0) == std::nullopt);
  CHECK(allocator.allocate(11) == std::nullopt);
  CHECK(allocator.used() == 0);
}

}  // namespace
}  // namespace flamed::daemon
