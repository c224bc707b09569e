// SPDX-License-Identifier: Apache-2.0
//
// FunctionPlaces: where in one function the selected samples are: by address and by source line. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/identity.h"
#include "store/model/answer_facts.h"
#include "store/model/profile.h"
#include "store/model/profile_options.h"
#include "store/model/query_budget.h"
#include "store/ring/snapshot.h"

namespace flamed::store {

/// As answers show it.
struct FunctionName {
  std::string name;
  std::optional<std::string> module{};  ///< empty: of any module
  bool with_files = false;              ///< also FunctionPlaces::files
};

/// How many samples are at a place, and how many have it in their stack: at most once for each sample.
struct PlaceCounts {
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
};

struct AddressPlace : PlaceCounts {
  /// Of callers it is within the call. Kernel addresses are 0 where the snapshot is of one user.
  Frame address;
  std::string module;
  std::string build_id;
  std::string around;      ///< the function that the code is compiled into, if that is another one
  std::string file;        ///< of the function's own line there; empty if not known
  std::uint32_t line = 0;  ///< 0 if not known
};

struct LinePlace : PlaceCounts {
  std::string module;
  std::string file;        ///< empty if not known
  std::uint32_t line = 0;  ///< 0 if not known
};

/// A source file of the function, as LinePlace has it, and who ran what was compiled from it.
struct FilePlace {
  struct Use {
    ProcessId process;
    std::optional<WallTime> started{};  ///< when the process did
    ModuleId code;
  };
  std::string module;
  std::string file;
  std::vector<Use> uses{};  ///< the one with the most samples first
};

struct FunctionPlaces : AnswerFacts {
  std::uint64_t samples = 0;            ///< of the selection
  PlaceCounts function;                 ///< the sums of `self_samples` below are its own
  std::optional<NamedFrame> frame{};    ///< the function as it was found first; empty: it is in no stack
  std::vector<AddressPlace> addresses;  ///< by module and offset
  std::vector<LinePlace> lines;         ///< by module, file and line
  std::vector<FilePlace> files{};       ///< only on request; the one with the most samples first
};

/// Of the options those apply that apply to build_stacks().
Result<FunctionPlaces> function_places(const Snapshot& snapshot, const Selection& selection,
                                       const ProfileOptions& options, const FunctionName& function, FrameNamer& namer,
                                       QueryBudget& budget);

}  // namespace flamed::store
