// SPDX-License-Identifier: Apache-2.0
//
// The types of profiles and the labels of series. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/querier/label_selector.h"
#include "store/model/measure.h"
#include "store/model/process_info.h"

namespace flamed::api {

/// Its parts stand for themselves in the id, with colons between them.
struct ProfileType {
  std::string_view id;
  std::string_view name;
  std::string_view sample_type;
  std::string_view sample_unit;
  std::string_view period_type;
  std::string_view period_unit;
  store::Measure measure;
};

std::span<const ProfileType> profile_types();
/// Null if there is no such type.
const ProfileType* find_profile_type(std::string_view id);
/// Whether it has the form of an id, of a type that exists or not.
bool is_profile_type_id(std::string_view id);

/// All of them, sorted.
std::vector<std::string_view> label_names();

/// The labels of the samples that a process has of a type. A local; must not outlive what it is made of.
class ProcessLabels {
 public:
  struct Facts {
    const store::ProcessInfo& process;
    const ProfileType& type;
    std::string_view host;  ///< name of this host
  };
  explicit ProcessLabels(const Facts& facts) : facts_(facts) {}

  /// UTF-8; empty if there is no such label or the process has none.
  [[nodiscard]] std::string value_of(std::string_view name) const;

  [[nodiscard]] bool match(const LabelSelector& selector) const;

 private:
  const Facts facts_;
};

}  // namespace flamed::api
