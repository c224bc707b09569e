// SPDX-License-Identifier: Apache-2.0
#include "store/index/kept_index.h"

#include <chrono>
#include <exception>
#include <utility>

namespace flamed::store {
namespace {

/// A person takes seconds between one answer and the next query.
constexpr std::int64_t kKeepUnusedNs = 60 * kNsPerSecond;
/// About the time of a query about a busy hour with the index. Building another index takes several times that.
constexpr std::chrono::milliseconds kPatience{100};

bool is_usual(const ProfileOptions& options) {
  return options.inlines && !options.full_names && !options.lines && !options.annotate && !options.interpreter;
}

}  // namespace

KeptIndex::Loan::Loan(KeptIndex* keeper, const ProfileOptions& options, std::size_t most_nodes, MonotonicTime now)
    : keeper_(keeper) {
  if (keeper_ != nullptr && is_usual(options)) lock_ = std::unique_lock(keeper_->mutex_, kPatience);
  if (lock_.owns_lock()) {
    index_ = std::move(keeper_->index_);
    keeper_->used_at_ = now;
  }
  if (index_ == nullptr) index_ = std::make_unique<FunctionIndex>(options, most_nodes);
}

KeptIndex::Loan::~Loan() {
  if (!lock_.owns_lock()) return;
  const std::size_t bytes = index_->bytes();
  const bool is_half_done = std::uncaught_exceptions() > exceptions_;
  if (bytes > keeper_->limit_bytes_ || index_->was_cut() || is_half_done) index_ = nullptr;
  keeper_->index_ = std::move(index_);
  keeper_->used_bytes_ = keeper_->index_ != nullptr ? bytes : 0;
}

bool KeptIndex::drop_unused(MonotonicTime now) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || index_ == nullptr || now.ns - used_at_.ns < kKeepUnusedNs) return false;
  used_bytes_ = 0;
  return std::exchange(index_, nullptr) != nullptr;
}

bool KeptIndex::drop() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  used_bytes_ = 0;
  return std::exchange(index_, nullptr) != nullptr;
}

std::size_t KeptIndex::used_bytes() const {
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() ? used_bytes_ : 0;
}

}  // namespace flamed::store
