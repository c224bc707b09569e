// SPDX-License-Identifier: Apache-2.0
#include "store/containers/id_index.h"

#include <cstdint>
#include <vector>

#include "test/catch.h"

namespace flamed::store {
namespace {

constexpr std::size_t kPlenty = 64U << 20;

/// A value that is its id's hash, as in a table.
std::uint64_t hash_of(std::uint32_t id) { return mix(std::uint64_t{id} * 3 + 1); }

std::uint32_t find(const IdIndex& index, std::uint32_t id) {
  return index.find(hash_of(id), [&](std::uint32_t other) { return other == id; });
}

void add(IdIndex& index, std::uint32_t id) {
  REQUIRE(index.make_room(hash_of));
  index.insert(hash_of(id), id);
}

}  // namespace

TEST_CASE("an index finds exactly the ids that it was given") {
  Budget budget(kPlenty);
  IdIndex index(budget);
  for (std::uint32_t id = 0; id < 200'000; id += 2) add(index, id);
  std::size_t wrong = 0;
  for (std::uint32_t id = 0; id < 200'000; ++id) {
    const std::uint32_t expected = id % 2 == 0 ? id : IdIndex::kNone;
    if (find(index, id) != expected) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("an index finds small ids beside the largest ones") {
  Budget budget(kPlenty);
  IdIndex index(budget);
  const std::vector<std::uint32_t> ids{0,       1,       0xfffe,   0xffff,     0x10000,
                                       0x1fffe, 0x1ffff, 0xffffff, 0x7ffffffe, 0x7fffffff};
  for (const std::uint32_t id : ids) add(index, id);
  for (const std::uint32_t id : ids) CHECK(find(index, id) == id);
  CHECK(find(index, 2) == IdIndex::kNone);
}

TEST_CASE("an index compares hardly any values besides the right one") {
  Budget budget(kPlenty);
  IdIndex index(budget);
  constexpr std::uint32_t kIds = 60'000;
  for (std::uint32_t id = 0; id < kIds; ++id) add(index, id);
  std::size_t asked = 0;
  for (std::uint32_t id = 0; id < kIds; ++id) {
    const std::uint32_t found = index.find(hash_of(id), [&](std::uint32_t other) {
      ++asked;
      return other == id;
    });
    REQUIRE(found == id);
  }
  CHECK(asked < kIds + kIds / 1000);
}

TEST_CASE("an index takes no more than six bytes an id, however many there are") {
  Budget budget(kPlenty);
  IdIndex index(budget);
  for (std::uint32_t id = 0; id < 300'000; ++id) {
    add(index, id);
    if (id > 1000) REQUIRE(budget.used_bytes() <= 6 * (id + 1));
  }
}

TEST_CASE("an index without room to grow takes ids until it is nearly full") {
  Budget budget(10'000);
  IdIndex index(budget);
  std::uint32_t ids = 0;
  while (index.make_room(hash_of)) {
    index.insert(hash_of(ids), ids);
    ++ids;
  }
  CHECK(budget.used_bytes() <= budget.limit_bytes());
  CHECK(ids * sizeof(std::uint32_t) * 100 >= budget.used_bytes() * 85);
  for (std::uint32_t id = 0; id < ids; ++id) REQUIRE(find(index, id) == id);
  CHECK(find(index, ids) == IdIndex::kNone);
}

TEST_CASE("an index that was reset for fewer ids frees memory") {
  Budget budget(kPlenty);
  IdIndex index(budget);
  for (std::uint32_t id = 0; id < 100'000; ++id) add(index, id);
  index.reset(1000);
  CHECK(budget.used_bytes() <= 6 * 1000);
  for (std::uint32_t id = 0; id < 1000; ++id) index.insert(hash_of(id), id);
  for (std::uint32_t id = 0; id < 1000; ++id) REQUIRE(find(index, id) == id);
  CHECK(find(index, 1000) == IdIndex::kNone);
}

}  // namespace flamed::store
