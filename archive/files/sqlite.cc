// SPDX-License-Identifier: Apache-2.0
#include "archive/files/sqlite.h"

namespace flamed::archive {
namespace {

int code_of(sqlite3* connection) {
  switch (sqlite3_errcode(connection) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return EBADMSG;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return EBUSY;
    case SQLITE_FULL:
      return ENOSPC;
    case SQLITE_READONLY:
      return EROFS;
    default:
      break;
  }
  const int system = sqlite3_system_errno(connection);
  return system != 0 ? system : EIO;
}

}  // namespace

Error last_error(sqlite3* connection, std::string_view what) {
  if (connection == nullptr) return Error(std::string(what) + ": no memory", ENOMEM);
  std::string message = std::string(what) + ": " + sqlite3_errmsg(connection);
  const int primary = sqlite3_errcode(connection) & 0xff;
  const int system = sqlite3_system_errno(connection);
  if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && system != 0) {
    message = Error::from_errno(message, system).message();
  }
  return Error(std::move(message), code_of(connection));
}

Status run(sqlite3* connection, const char* sql) {
  if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return last_error(connection, "SQLite");
  return {};
}

Result<Statement> Statement::prepare(sqlite3* connection, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &raw, nullptr) != SQLITE_OK) {
    return last_error(connection, "SQLite");
  }
  return Statement(Raw(raw));
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int parameter, std::span<const std::byte> blob) {
  sqlite3_bind_blob64(statement_.get(), parameter, blob.data(), blob.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_null(int parameter) {
  sqlite3_bind_null(statement_.get(), parameter);
  return *this;
}

Result<bool> Statement::step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  Result<bool> ended = false;
  if (result != SQLITE_DONE) ended = last_error(sqlite3_db_handle(statement_.get()), "SQLite");
  sqlite3_reset(statement_.get());
  return ended;
}

Status Statement::run() {
  if (Result<bool> stepped = step(); !stepped) return std::move(stepped).error();
  return {};
}

std::string_view Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return text == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(text), size);
}

std::span<const std::byte> Statement::blob(int column) const {
  const void* blob = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {static_cast<const std::byte*>(blob), blob == nullptr ? 0 : size};
}

}  // namespace flamed::archive
