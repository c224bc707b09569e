// SPDX-License-Identifier: Apache-2.0
//
// KeptIndex: the FunctionIndex that answers of the usual form share, one after the other. A question of another form,
// or one that finds it in use, gets an index of its own. Belongs to a FrameNamer, by whose names it is made. Any
// thread.
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
  /// An index for the length of one question.
  class Loan {
   public:
    /// `keeper`: null where nothing is kept.
    Loan(KeptIndex* keeper, const ProfileOptions& options, std::size_t most_nodes, MonotonicTime now);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    [[nodiscard]] FunctionIndex& operator*() const { return *index_; }
    [[nodiscard]] FunctionIndex* operator->() const { return index_.get(); }

   private:
    KeptIndex* const keeper_;
    std::unique_lock<std::timed_mutex> lock_;  ///< held where the index is to be kept
    std::unique_ptr<FunctionIndex> index_;
    const int exceptions_ = std::uncaught_exceptions();  ///< when the question began
  };

  /// An index that takes more than the limit is not kept, nor one that an exception has left half done.
  explicit KeptIndex(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  KeptIndex(const KeptIndex&) = delete;
  KeptIndex& operator=(const KeptIndex&) = delete;

  /// Frees the index if no question came for a minute. True when there was one.
  bool drop_unused(MonotonicTime now);
  /// Frees it, unless it is in use. True when there was one.
  bool drop();

  /// Of the index that is kept.
  [[nodiscard]] std::size_t used_bytes() const;

 private:
  const std::size_t limit_bytes_;
  mutable std::timed_mutex mutex_;  ///< guards what follows
  std::unique_ptr<FunctionIndex> index_;
  MonotonicTime used_at_{};
  std::size_t used_bytes_ = 0;
};

}  // namespace flamed::store
