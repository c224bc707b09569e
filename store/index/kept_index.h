// SPDX-License-Identifier: Apache-2.0
//
// KeptIndex: the FunctionIndex that answers with the usual options share, one at a time. A query with other options, or
// while it is in use, gets an index of its own. Belongs to the FrameNamer whose names it has. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "store/index/function_index.h"
#include "store/model/profile_options.h"

namespace flamed::store {

class KeptIndex {
 public:
  /// An index for the duration of one query.
  class Loan {
   public:
    /// `keeper`: null if nothing is kept.
    Loan(KeptIndex* keeper, const ProfileOptions& options, std::size_t most_nodes, MonotonicTime now);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    [[nodiscard]] FunctionIndex& operator*() const { return *index_; }
    [[nodiscard]] FunctionIndex* operator->() const { return index_.get(); }

   private:
    KeptIndex* const keeper_;
    std::unique_lock<std::timed_mutex> lock_;  ///< held if the index is the kept one
    std::unique_ptr<FunctionIndex> index_;
    const int exceptions_ = std::uncaught_exceptions();  ///< at the start of the query
  };

  /// An index larger than the limit is not kept, nor one that an exception left incomplete.
  explicit KeptIndex(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  KeptIndex(const KeptIndex&) = delete;
  KeptIndex& operator=(const KeptIndex&) = delete;

  /// Frees the index if there was no query for a minute. True if there was an index.
  bool drop_unused(MonotonicTime now);
  /// Frees it, unless it is in use. True if there was one.
  bool drop();

  /// Memory of the kept index.
  [[nodiscard]] std::size_t used_bytes() const;

 private:
  const std::size_t limit_bytes_;
  mutable std::timed_mutex mutex_;  ///< guards the members below
  std::unique_ptr<FunctionIndex> index_;
  MonotonicTime used_at_{};
  std::size_t used_bytes_ = 0;
};

}  // namespace flamed::store
