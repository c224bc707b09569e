// SPDX-License-Identifier: Apache-2.0
#include "store/ring/sealed_slots.h"

#include <utility>

namespace flamed::store {

void SealedSlots::push(SealedSlot sealed) {
  take(sealed);
  slots_.push_back(std::move(sealed));
  view_ = nullptr;
}

void SealedSlots::drop_oldest() {
  if (without_log_ > 0) --without_log_;
  give_back(slots_.front());
  slots_.pop_front();
  view_ = nullptr;
}

bool SealedSlots::drop_oldest_log() {
  if (without_log_ == slots_.size()) return false;
  SealedSlot& sealed = slots_[without_log_++];
  if (!sealed.log && !sealed.wait_log) return true;
  give_back_logs(sealed);
  sealed.log = nullptr;
  sealed.wait_log = nullptr;
  view_ = nullptr;
  return true;
}

std::shared_ptr<const std::vector<SealedSlot>> SealedSlots::view() {
  if (view_ == nullptr) view_ = std::make_shared<const std::vector<SealedSlot>>(slots_.begin(), slots_.end());
  return view_;
}

void SealedSlots::take(const SealedSlot& sealed) {
  budget_.take(sealed.slot->bytes());
  bytes_ += sealed.slot->bytes();
  entries_ += sealed.slot->histogram.entry_count();
  if (sealed.log) {
    log_budget_.take(sealed.log->bytes());
    logged_samples_ += sealed.log->count();
  }
  if (sealed.wait_log) {
    log_budget_.take(sealed.wait_log->bytes());
    logged_waits_ += sealed.wait_log->count();
  }
}

void SealedSlots::give_back(const SealedSlot& sealed) {
  budget_.give_back(sealed.slot->bytes());
  bytes_ -= sealed.slot->bytes();
  entries_ -= sealed.slot->histogram.entry_count();
  give_back_logs(sealed);
}

void SealedSlots::give_back_logs(const SealedSlot& sealed) {
  if (sealed.log) {
    log_budget_.give_back(sealed.log->bytes());
    logged_samples_ -= sealed.log->count();
  }
  if (sealed.wait_log) {
    log_budget_.give_back(sealed.wait_log->bytes());
    logged_waits_ -= sealed.wait_log->count();
  }
}

}  // namespace flamed::store
