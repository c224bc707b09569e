// SPDX-License-Identifier: Apache-2.0
//
// Snapshot: the store at one moment. Cheap to take and to copy, immutable, safe on any thread, and valid as long as it
// is held, even if the store drops data meanwhile.
#pragma once

#include <memory>

namespace flamed::store {

class SnapshotData;

class Snapshot {
 public:
  explicit Snapshot(std::shared_ptr<const SnapshotData> data) : data_(std::move(data)) {}
  [[nodiscard]] const SnapshotData& data() const { return *data_; }

 private:
  std::shared_ptr<const SnapshotData> data_;
};

}  // namespace flamed::store
