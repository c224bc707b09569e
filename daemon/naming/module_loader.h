// SPDX-License-Identifier: Apache-2.0
//
// ModuleLoader: opens sampled files, has their unwind rows built, enters these into the kernel program's tables, and
// finds perf maps and jitdumps. The work of the `modules` thread: file systems and large files take time.
#pragma once

#include <stop_token>

#include "base/handle.h"
#include "base/identity.h"
#include "base/result.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/naming/row_cache.h"
#include "daemon/runtimes/runtime_modules.h"
#include "daemon/sampler/kernel_program.h"
#include "daemon/unwind/unwind_publisher.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/sourced_rows.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/process/module_table.h"

namespace flamed::daemon {

class ModuleLoader {
 public:
  /// All of them must outlive the loader.
  struct Parts {
    symbolizer::ModuleTable& modules;  ///< requests files
    symbolizer::GuardedOpener& opener;
    symbolizer::ModuleReader& reader;
    const WalkPrograms& walks;
    UnwindPublisher* unwind;   ///< null: no tables
    RowCache* row_cache;       ///< null: rows are not kept for the next start
    RuntimeModules* runtimes;  ///< null: functions of managed runtimes are not shown
    BudgetKeeper& budget;
  };
  explicit ModuleLoader(const Parts& parts) : parts_(parts) {}

  /// Serves requests until `stop` is requested.
  void run(const std::stop_token& stop);

 private:
  [[nodiscard]] UnwindPublisher* unwind() const;
  void load(const symbolizer::OpenRequest& request, const std::stop_token& stop);
  void find_functions(const symbolizer::Module& module);
  Result<symbolizer::SourcedRows> rows_of(const Fd& file);
  bool publish_rows(const symbolizer::Module& module, const std::stop_token& stop);
  void look_for_runtime(const symbolizer::Module& module, const symbolizer::FileKey& file);
  void look_for_jit_files(const ProcessId& owner);

  const Parts parts_;
};

}  // namespace flamed::daemon
