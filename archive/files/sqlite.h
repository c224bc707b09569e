// SPDX-License-Identifier: Apache-2.0
//
// SQLite's handles as owners, and its errors as ours. One thread at a time for each connection.
#pragma once

#include <sqlite3.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::archive {

using Connection = Handle<sqlite3*, ::sqlite3_close_v2>;

/// What the last call on the connection said. Code EBADMSG: the file is damaged; EBUSY: another program holds its lock;
/// ENOSPC, EROFS, EIO or whatever the system said.
[[nodiscard]] Error last_error(sqlite3* connection, std::string_view what);

/// Runs statements without results.
Status run(sqlite3* connection, const char* sql);

/// A prepared statement. Its connection must outlive it.
class Statement {
 public:
  static Result<Statement> prepare(sqlite3* connection, std::string_view sql);

  /// Parameters are numbered from 1. A blob must live until the next step().
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, std::span<const std::byte> blob);
  Statement& bind_null(int parameter);

  /// True: there is a row. False: it is finished, and ready to run again.
  Result<bool> step();
  /// Without results.
  Status run();

  [[nodiscard]] std::int64_t number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  [[nodiscard]] bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  [[nodiscard]] std::string_view text(int column) const;
  /// Until the next step().
  [[nodiscard]] std::span<const std::byte> blob(int column) const;

 private:
  using Raw = Handle<sqlite3_stmt*, ::sqlite3_finalize>;
  explicit Statement(Raw statement) : statement_(std::move(statement)) {}

  Raw statement_;
};

}  // namespace flamed::archive
