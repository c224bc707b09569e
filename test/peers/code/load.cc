// SPDX-License-Identifier: Apache-2.0
//
// load SECONDS: sorts, hashes and sums, with calls that are inlined, virtual or in the C library.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual double area() const = 0;
};
struct Circle final : Shape {
  explicit Circle(double radius) : radius(radius) {}
  [[nodiscard]] double area() const override { return 3.14159 * std::sqrt(radius) * radius; }
  double radius;
};
struct Square final : Shape {
  explicit Square(double side) : side(side) {}
  [[nodiscard]] double area() const override { return std::sin(side) * side; }
  double side;
};

std::uint32_t next(std::uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

__attribute__((noinline)) std::uint64_t sort(std::vector<std::uint32_t>& numbers, std::uint32_t& state) {
  for (std::uint32_t& number : numbers) number = next(state);
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

__attribute__((noinline)) std::uint64_t count(const std::vector<std::uint32_t>& numbers) {
  std::unordered_map<std::string, std::uint64_t> counts;
  for (const std::uint32_t number : numbers) ++counts[std::to_string(number % 512)];
  std::uint64_t sum = 0;
  for (const auto& [key, value] : counts) sum += value * key.size();
  return sum;
}

__attribute__((noinline)) double measure(const std::vector<std::unique_ptr<Shape>>& shapes) {
  double sum = 0;
  for (int round = 0; round < 20; ++round) {
    for (const auto& shape : shapes) sum += shape->area();
  }
  return sum;
}

__attribute__((noinline)) int copy(const std::vector<std::uint32_t>& from, std::vector<std::uint32_t>& to) {
  int sum = 0;
  for (int round = 0; round < 40; ++round) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(from[0]));
    if (std::memcmp(to.data(), from.data(), from.size() * sizeof(from[0])) != 0) ++sum;
  }
  return sum;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  std::vector<std::uint32_t> numbers(20'000);
  std::vector<std::uint32_t> copies(numbers.size());
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 1000; ++i) {
    if (i % 3 == 0) {
      shapes.push_back(std::make_unique<Circle>(i));
    } else {
      shapes.push_back(std::make_unique<Square>(i));
    }
  }
  std::uint32_t state = 1;
  double sum = 0;
  const std::time_t end = std::time(nullptr) + std::atoi(argv[1]);
  while (std::time(nullptr) < end) {
    sum +=
        static_cast<double>(sort(numbers, state) + count(numbers) + static_cast<std::uint64_t>(copy(numbers, copies)));
    sum += measure(shapes);
  }
  std::printf("%f\n", sum);
}
