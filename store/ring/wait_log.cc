// SPDX-License-Identifier: Apache-2.0
#include "store/ring/wait_log.h"

#include <bit>

namespace flamed::store {

WaitLog::WaitLog(const std::vector<LoggedWait>& waits) : count_(waits.size()) {
  if (waits.empty()) return;
  first_ = waits.front().from;
  last_ = waits.front().from;
  for (const LoggedWait& wait : waits) {
    first_ = std::min(first_, wait.from);
    last_ = std::max(last_, MonotonicTime{wait.to.ns - 1});
  }
  const auto number = [&](std::size_t column, const LoggedWait& wait) {
    switch (column) {
      case kFrom:
        return static_cast<std::uint64_t>((wait.from.ns - first_.ns) / kWaitUnitNs);
      case kLength:
        return static_cast<std::uint64_t>((wait.to.ns - wait.from.ns + kWaitUnitNs - 1) / kWaitUnitNs);
      case kUnits:
        return std::uint64_t{wait.units};
      default:
        return std::uint64_t{wait.entry};
    }
  };
  std::vector<std::uint8_t> bytes;
  for (std::size_t column = 0; column < kColumns; ++column) {
    std::uint64_t all = 0;
    for (const LoggedWait& wait : waits) all |= number(column, wait);
    const auto bits = static_cast<std::uint32_t>(std::bit_width(all));
    columns_[column] = {static_cast<std::uint32_t>(bytes.size()), bits};
    append_bit_fields(bytes, waits.size(), bits, [&](std::size_t i) { return number(column, waits[i]); });
  }
  bytes.resize(bytes.size() + kBitFieldsTail);
  bytes_.assign(bytes.begin(), bytes.end());  // exactly the needed size: it is kept for hours
}

void OpenWaitLog::append(const LoggedWait& wait) {
  if (!waits_) return;
  const std::optional<std::uint32_t> place = waits_->allocate();
  if (!place) {
    waits_.reset();
    return;
  }
  waits_->writable(*place) = wait;
  const MonotonicTime last{wait.to.ns - 1};
  first_ = count() == 1 ? wait.from : std::min(first_, wait.from);
  last_ = count() == 1 ? last : std::max(last_, last);
}

std::optional<OpenWaitLog::View> OpenWaitLog::view() {
  if (!waits_) return std::nullopt;
  View view;
  view.waits_ = waits_->view();
  view.count_ = count();
  view.first_ = first_;
  view.last_ = last_;
  return view;
}

std::shared_ptr<const WaitLog> OpenWaitLog::seal(std::span<const std::uint32_t> new_number) const {
  if (!waits_) return nullptr;
  std::vector<LoggedWait> waits;
  waits.reserve(count());
  for (std::uint32_t id = 0; id < count(); ++id) {
    waits.push_back((*waits_)[id]);
    waits.back().entry = new_number[waits.back().entry];
  }
  return std::make_shared<const WaitLog>(waits);
}

}  // namespace flamed::store
