// SPDX-License-Identifier: Apache-2.0
#include "archive/files/period_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "archive/codec/block.h"

namespace flamed::archive {
namespace {

/// "flam", for file(1) and for us.
constexpr std::int64_t kApplicationId = 0x666c616d;
/// Whatever the umask.
constexpr mode_t kRights = 0640;

/// Larger pages waste more behind a busy host's blobs, smaller ones more between an idle host's rows.
constexpr const char* kNewFile = "PRAGMA page_size = 2048; PRAGMA journal_mode = WAL;";
/// The log is emptied by us, see append().
constexpr const char* kConnection =
    "PRAGMA synchronous = FULL; PRAGMA cache_size = -256; PRAGMA wal_autocheckpoint = 0;"
    "PRAGMA journal_size_limit = 4194304; PRAGMA trusted_schema = OFF;";
/// Of a file that is thrown away if it does not become whole.
constexpr const char* kNewWhole = "PRAGMA page_size = 2048; PRAGMA journal_mode = MEMORY;";
constexpr const char* kWholeConnection =
    "PRAGMA synchronous = OFF; PRAGMA cache_size = -1024; PRAGMA trusted_schema = OFF;";

constexpr const char* kSchema = R"(
BEGIN IMMEDIATE;
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  boot_id TEXT NOT NULL,
  run INTEGER NOT NULL,
  program TEXT NOT NULL,
  host TEXT NOT NULL DEFAULT '');
CREATE TABLE minute (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  wall_start_ns INTEGER NOT NULL,
  wall_end_ns INTEGER NOT NULL,
  period_ns INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  first INTEGER,
  names_from INTEGER);
CREATE TABLE additions (minute INTEGER PRIMARY KEY, block BLOB NOT NULL);
CREATE TABLE pairs (minute INTEGER PRIMARY KEY, block BLOB NOT NULL);
CREATE TABLE names (minute INTEGER PRIMARY KEY, block BLOB NOT NULL);
CREATE TABLE samples (minute INTEGER PRIMARY KEY, block BLOB NOT NULL);
CREATE TABLE states (minute INTEGER PRIMARY KEY, block BLOB NOT NULL);
PRAGMA application_id = 1718378861;
PRAGMA user_version = 1;
COMMIT;
)";
static_assert(kApplicationId == 1718378861 && kSchemaVersion == 1);
/// Older ones read a file with these as before.
constexpr const char* kAddHost = "ALTER TABLE session ADD COLUMN host TEXT NOT NULL DEFAULT ''";
/// Of a stretch: the sequence of its first minute; else null.
constexpr const char* kAddFirst = "ALTER TABLE minute ADD COLUMN first INTEGER";
/// The lowest frame of an earlier minute that has a name with this one; else null.
constexpr const char* kAddNamesFrom = "ALTER TABLE minute ADD COLUMN names_from INTEGER";
constexpr const char* kAddSamples =
    "CREATE TABLE IF NOT EXISTS samples (minute INTEGER PRIMARY KEY, block BLOB NOT NULL)";
constexpr const char* kAddStates =
    "CREATE TABLE IF NOT EXISTS states (minute INTEGER PRIMARY KEY, block BLOB NOT NULL)";

/// `first` and `last`: sequences of minutes. What is read most comes first.
constexpr const char* kAddSums = R"(CREATE TABLE IF NOT EXISTS sum (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  wall_start_ns INTEGER NOT NULL,
  wall_end_ns INTEGER NOT NULL,
  additions BLOB NOT NULL,
  pairs BLOB NOT NULL,
  short_additions BLOB,
  short_pairs BLOB))";

/// Differences of such times don't overflow.
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t kYearNs = 365 * 24 * 60 * kNsPerMinute;

/// A busy host fills it in an hour.
constexpr int kCheckpointPages = 1024;
constexpr int kHeldPages = 4 * kCheckpointPages;

Result<Connection> connect(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection connection(raw);
  if (opened != SQLITE_OK) return last_error(raw, path);
  sqlite3_busy_timeout(raw, 1000);
  return connection;
}

/// https://www.sqlite.org/uri.html, 3.1
std::string uri_of(std::string_view path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr std::string_view kDigits = "0123456789abcdef";
      uri += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[static_cast<unsigned char>(c) & 15]};
    } else {
      uri += c;
    }
  }
  return uri;
}

Result<std::int64_t> read_number(sqlite3* connection, std::string_view sql) {
  Result<Statement> statement = Statement::prepare(connection, sql);
  if (!statement) return std::move(statement).error();
  const Result<bool> row = statement->step();
  if (!row) return row.error();
  if (!*row) return Error("a damaged database", EBADMSG);
  return statement->number(0);
}

Result<bool> has_table(sqlite3* connection, const std::string& name) {
  const Result<std::int64_t> tables =
      read_number(connection, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '" + name + "'");
  if (!tables) return tables.error();
  return *tables != 0;
}

Result<bool> has_column(sqlite3* connection, const std::string& table, const std::string& name) {
  const Result<std::int64_t> columns =
      read_number(connection, "SELECT count(*) FROM pragma_table_info('" + table + "') WHERE name = '" + name + "'");
  if (!columns) return columns.error();
  return *columns != 0;
}

Result<std::optional<Recorded>> recorded_in(sqlite3* connection) {
  Result<Statement> statement =
      Statement::prepare(connection,
                         "SELECT (SELECT wall_start_ns FROM minute ORDER BY id LIMIT 1), max(wall_end_ns), "
                         "sum(wall_end_ns - wall_start_ns) FROM minute");
  if (!statement) return std::move(statement).error();
  const Result<bool> row = statement->step();
  if (!row) return row.error();
  if (statement->is_null(0)) return std::optional<Recorded>();
  const Recorded recorded{{statement->number(0)}, {statement->number(1)}, statement->number(2)};
  for (const std::int64_t ns : {recorded.first.ns, recorded.last.ns, recorded.total_ns}) {
    if (ns < -kMostNs || ns > kMostNs)
      return Error("damaged: a minute of the year " + std::to_string(1970 + ns / kYearNs), EBADMSG);
  }
  return std::optional<Recorded>(recorded);
}

/// FNV-1a
std::uint32_t hash_of(std::string_view text, std::initializer_list<std::int64_t> numbers) {
  std::uint32_t hash = 0x811c9dc5U;
  const auto add = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x01000193U; };
  for (const char c : text) add(static_cast<std::uint8_t>(c));
  for (const std::int64_t number : numbers) {
    for (unsigned shift = 0; shift < 64; shift += 8) add(static_cast<std::uint8_t>(number >> shift));
  }
  return hash;
}

Status check_version(std::int64_t application, std::int64_t version) {
  if (application != kApplicationId) return Error("not a history of flamed", ENOTSUP);
  if (version == kSchemaVersion) return {};
  return Error("version " + std::to_string(version) + "; this flamed has version " + std::to_string(kSchemaVersion),
               ENOTSUP);
}

/// Looks at the database's header (https://www.sqlite.org/fileformat.html, 1.3) without SQLite, which creates files
/// beside it. A file without a header has all that it has in its log.
Status check_header(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return Error::from_errno("cannot open it");
  std::array<unsigned char, 100> header{};
  const ssize_t size = ::pread(file.get(), header.data(), header.size(), 0);
  if (size < 0) return Error::from_errno("cannot read it");
  if (size == 0) return {};
  // The power went while the database was made: its journal says what is to be taken back. Later ones have none.
  if (::access((path + "-journal").c_str(), F_OK) == 0) return {};
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (static_cast<std::size_t>(size) < header.size() ||
      !std::equal(kMagic.begin(), kMagic.end(), header.begin(),
                  [](char a, unsigned char b) { return a == static_cast<char>(b); })) {
    return Error("damaged: it does not begin as a database", EBADMSG);
  }
  const auto number_at = [&](std::size_t at) {
    return std::int64_t{header[at]} << 24 | header[at + 1] << 16 | header[at + 2] << 8 | header[at + 3];
  };
  // A database that has just been created.
  if (number_at(68) == 0 && number_at(60) == 0) return {};
  return check_version(number_at(68), number_at(60));
}

/// Whether there are tables, which then are ours.
Result<bool> has_tables(sqlite3* connection) {
  const Result<std::int64_t> tables = read_number(connection, "SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables.error();
  if (*tables == 0) return false;
  const Result<std::int64_t> application = read_number(connection, "PRAGMA application_id");
  if (!application) return application.error();
  const Result<std::int64_t> version = read_number(connection, "PRAGMA user_version");
  if (!version) return version.error();
  if (Status known = check_version(*application, *version); !known) return known.error();
  return true;
}

}  // namespace

Status check_pages(sqlite3* connection) {
  Result<Statement> statement = Statement::prepare(connection, "PRAGMA quick_check(1)");
  if (!statement) return std::move(statement).error();
  const Result<bool> row = statement->step();
  if (!row) return row.error();
  if (!*row || statement->text(0) != "ok") return Error("damaged: " + std::string(statement->text(0)), EBADMSG);
  return {};
}

Result<std::unique_ptr<PeriodFile>> PeriodFile::open(const std::string& path) {
  // SQLite gives its log the rights of the database. Closing a descriptor would drop SQLite's locks on the file, so
  // this comes first.
  if (const Fd created(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kRights));
      !created || ::fchmod(created.get(), kRights) != 0) {
    return Error::from_errno(path);
  }
  if (const Status known = check_header(path); !known) return Error(known.error()).with_context(path);
  Result<Connection> connection = connect(path, SQLITE_OPEN_READWRITE);
  if (!connection) return std::move(connection).error();
  std::unique_ptr<PeriodFile> file(new PeriodFile(std::move(*connection)));
  if (const Status prepared = file->prepare(kNewFile, kConnection); !prepared) {
    return Error(prepared.error()).with_context(path);
  }
  return file;
}

Result<std::unique_ptr<PeriodFile>> PeriodFile::create(const std::string& path) {
  Result<Connection> connection = connect(path, SQLITE_OPEN_READWRITE);
  if (!connection) return std::move(connection).error();
  std::unique_ptr<PeriodFile> file(new PeriodFile(std::move(*connection)));
  if (const Status prepared = file->prepare(kNewWhole, kWholeConnection); !prepared) {
    return Error(prepared.error()).with_context(path);
  }
  return file;
}

Status PeriodFile::prepare(const char* new_file, const char* settings) {
  sqlite3* const connection = connection_.get();
  const Result<bool> is_begun = has_tables(connection);
  if (!is_begun) return is_begun.error();
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (!*is_begun) {
    if (Status begun = run(connection, new_file); !begun) return begun;
  } else if (Status whole = check_pages(connection); !whole) {
    return whole;
  }
  if (Status set = run(connection, settings); !set) return set;
  if (!*is_begun) {
    if (Status begun = run(connection, kSchema); !begun) return begun;
  }
  using Has = Result<bool> (*)(sqlite3*);
  for (const auto& [has, column] : {std::pair<Has, const char*>(has_hosts, kAddHost),
                                    {has_stretches, kAddFirst},
                                    {has_names_from, kAddNamesFrom}}) {
    const Result<bool> is_there = has(connection);
    if (!is_there) return is_there.error();
    if (*is_there) continue;
    if (Status added = run(connection, column); !added) return added;
  }
  for (const char* table : {kAddSamples, kAddStates, kAddSums}) {
    if (Status added = run(connection, table); !added) return added;
  }
  Result<std::optional<Recorded>> recorded = recorded_in(connection);
  if (!recorded) return std::move(recorded).error();
  recorded_ = *recorded;
  if (Status measured = measure(); !measured) return measured;
  const auto prepare_as = [&](std::optional<Statement>& as, std::string_view sql) -> Status {
    Result<Statement> statement = Statement::prepare(connection, sql);
    if (!statement) return std::move(statement).error();
    as.emplace(std::move(*statement));
    return {};
  };
  for (const auto& [statement, sql] :
       {std::pair<std::optional<Statement>&, const char*>(
            add_session_, "INSERT INTO session (boot_id, run, program, host) VALUES (?, ?, ?, ?)"),
        {add_minute_,
         "INSERT INTO minute (session, sequence, wall_start_ns, wall_end_ns, period_ns, samples, lost, first, "
         "names_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"},
        {add_additions_, "INSERT INTO additions (minute, block) VALUES (?, ?)"},
        {add_pairs_, "INSERT INTO pairs (minute, block) VALUES (?, ?)"},
        {add_names_, "INSERT INTO names (minute, block) VALUES (?, ?)"},
        {add_samples_, "INSERT INTO samples (minute, block) VALUES (?, ?)"},
        {add_samples_later_,
         "INSERT INTO samples (minute, block) SELECT id, ? FROM minute WHERE session = ? AND sequence = ?"},
        {add_states_later_,
         "INSERT OR REPLACE INTO states (minute, block) SELECT id, ? FROM minute WHERE session = ? AND sequence = ?"},
        {add_sum_,
         "INSERT INTO sum (session, first, last, wall_start_ns, wall_end_ns, additions, pairs, short_additions, "
         "short_pairs) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"}}) {
    if (Status prepared = prepare_as(statement, sql); !prepared) return prepared;
  }
  sqlite3_wal_hook(
      connection,
      [](void* pages, sqlite3*, const char*, int now) {
        *static_cast<int*>(pages) = now;
        return SQLITE_OK;
      },
      &log_pages_);
  return {};
}

void PeriodFile::begin_session(Session session) {
  boot_id_ = session.boot_id;
  run_ = session.run;
  program_ = session.program;
  host_ = session.host;
  session_.reset();
  so_far_.reset();
}

Status PeriodFile::in_transaction(const std::function<Status()>& write) {
  sqlite3* const connection = connection_.get();
  if (Status begun = run(connection, "BEGIN IMMEDIATE"); !begun) return begun;
  Status written = write();
  if (written) written = measure();
  if (written) written = run(connection, "COMMIT");
  if (!written && sqlite3_get_autocommit(connection) == 0) static_cast<void>(run(connection, "ROLLBACK"));
  return written;
}

Status PeriodFile::measure() {
  const Result<std::int64_t> pages = read_number(connection_.get(), "PRAGMA page_count");
  if (!pages) return pages.error();
  const Result<std::int64_t> page_bytes = read_number(connection_.get(), "PRAGMA page_size");
  if (!page_bytes) return page_bytes.error();
  bytes_ = static_cast<std::uint64_t>(*pages) * static_cast<std::uint64_t>(*page_bytes);
  return {};
}

Status PeriodFile::add_later(Statement& add, std::string_view table, const LaterBlock& block) {
  const std::vector<std::byte> bytes = stamped(block.block, stamp_of(table, run_, block.start));
  return add.bind(1, bytes).bind(2, *session_).bind(3, std::int64_t{block.sequence}).run();
}

Status PeriodFile::add_samples(std::span<const LaterBlock> blocks) {
  if (!session_) return {};
  return in_transaction([&]() -> Status {
    for (const LaterBlock& samples : blocks) {
      if (Status added = add_later(*add_samples_later_, "samples", samples); !added) return added;
    }
    return {};
  });
}

Status PeriodFile::add_states(const LaterBlock& block) {
  if (!session_) return {};
  return in_transaction([&] { return add_later(*add_states_later_, "states", block); });
}

Status PeriodFile::add_sum(const SumBlocks& sum) {
  if (!session_) return {};
  return in_transaction([&]() -> Status {
    const auto bytes_of = [&](std::string_view column, const std::vector<std::byte>& block) {
      return block.empty() ? block : stamped(block, stamp_of_sum(column, run_, sum.start, sum.first, sum.last));
    };
    const std::vector<std::byte> additions = bytes_of("additions", sum.additions);
    const std::vector<std::byte> pairs = bytes_of("pairs", sum.pairs);
    const std::vector<std::byte> short_additions = bytes_of("short_additions", sum.short_additions);
    const std::vector<std::byte> short_pairs = bytes_of("short_pairs", sum.short_pairs);
    add_sum_->bind(1, *session_).bind(2, std::int64_t{sum.first}).bind(3, std::int64_t{sum.last});
    add_sum_->bind(4, sum.start.ns).bind(5, sum.end.ns);
    return add_sum_->bind(6, additions).bind(7, pairs).bind(8, short_additions).bind(9, short_pairs).run();
  });
}

Status PeriodFile::append(const Minute& minute, const Blocks& blocks, Ending ending) {
  sqlite3* const connection = connection_.get();
  const std::optional<std::int64_t> session = session_;
  const bool replaces = so_far_ && so_far_->sequence == minute.sequence;
  std::int64_t id = 0;
  const auto write_all = [&]() -> Status {
    const Result<std::int64_t> row = write(minute, blocks);
    if (!row) return row.error();
    id = *row;
    if (!replaces) return {};
    // After the new row, which thus has a higher id than all before: a reader sees that it is new.
    const std::string old = std::to_string(so_far_->id);
    for (const char* rows :
         {"minute WHERE id = ", "additions WHERE minute = ", "pairs WHERE minute = ", "names WHERE minute = "}) {
      if (Status removed = run(connection, ("DELETE FROM " + (rows + old)).c_str()); !removed) return removed;
    }
    return {};
  };
  if (Status written = in_transaction(write_all); !written) {
    session_ = session;
    return written;
  }
  const WallTime start = minute.wall_start();
  const WallTime end = minute.wall_end();
  if (!recorded_) recorded_ = Recorded{start, end, 0};
  recorded_->last = std::max(recorded_->last, end);
  recorded_->total_ns += end.ns - start.ns - (replaces ? so_far_->length_ns : 0);
  so_far_.reset();
  if (ending == Ending::kSoFar) so_far_ = {minute.sequence, id, end.ns - start.ns};
  if (log_pages_ >= kCheckpointPages) {
    // That it can't be emptied now is not this minute's problem: see is_held().
    static_cast<void>(sqlite3_wal_checkpoint_v2(connection, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr));
  }
  return {};
}

Result<std::int64_t> PeriodFile::write(const Minute& minute, const Blocks& blocks) {
  if (!session_) {
    add_session_->bind(1, boot_id_).bind(2, run_).bind(3, program_).bind(4, host_);
    if (const Status added = add_session_->run(); !added) return added.error();
    session_ = sqlite3_last_insert_rowid(connection_.get());
  }
  add_minute_->bind(1, *session_).bind(2, std::int64_t{minute.sequence});
  add_minute_->bind(3, minute.wall_start().ns).bind(4, minute.wall_end().ns).bind(5, minute.period_ns);
  add_minute_->bind(6, static_cast<std::int64_t>(minute.quality.stored()));
  add_minute_->bind(7, static_cast<std::int64_t>(minute.quality.lost_total()));
  const auto bind_if_set = [&](int place, const std::optional<std::uint32_t>& number) {
    if (number) {
      add_minute_->bind(place, std::int64_t{*number});
    } else {
      add_minute_->bind_null(place);
    }
  };
  bind_if_set(8, minute.first);
  bind_if_set(9, blocks.names_from);
  if (const Status added = add_minute_->run(); !added) return added.error();
  const std::int64_t id = sqlite3_last_insert_rowid(connection_.get());
  const auto add = [&](std::optional<Statement>& statement, std::string_view table, std::span<const std::byte> block) {
    const std::vector<std::byte> bytes = stamped(block, stamp_of(table, run_, minute.wall_start()));
    return statement->bind(1, id).bind(2, bytes).run();
  };
  if (const Status added = add(add_additions_, "additions", blocks.additions); !added) return added.error();
  if (const Status added = add(add_pairs_, "pairs", blocks.pairs); !added) return added.error();
  if (!blocks.names.empty()) {
    if (const Status added = add(add_names_, "names", blocks.names); !added) return added.error();
  }
  if (!blocks.samples.empty()) {
    if (const Status added = add(add_samples_, "samples", blocks.samples); !added) return added.error();
  }
  return id;
}

bool PeriodFile::is_held() const { return log_pages_ >= kHeldPages; }

std::uint32_t stamp_of(std::string_view table, std::int64_t run, WallTime start) {
  return hash_of(table, {run, start.ns});
}

std::uint32_t stamp_of_sum(std::string_view column, std::int64_t run, WallTime start, std::int64_t first,
                           std::int64_t last) {
  return hash_of("sum " + std::string(column), {run, start.ns, first, last});
}

Result<Connection> connect_to_read(const std::string& path) {
  const auto of_file = [&](const Error& error) { return Error(error).with_context(path); };
  Result<Connection> connection = connect(path, SQLITE_OPEN_READONLY);
  if (!connection) return connection;
  Result<bool> is_begun = has_tables(connection->get());
  if (!is_begun && is_begun.error().code() != EBADMSG && is_begun.error().code() != ENOTSUP) {
    // Reading creates files beside a database with a log, unless nothing is there that could be changed.
    connection = connect(uri_of(path) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    if (!connection) return connection;
    is_begun = has_tables(connection->get());
  }
  if (!is_begun) return of_file(is_begun.error());
  if (const Status begun = begin_to_read(connection->get()); !begun) return of_file(begun.error());
  return connection;
}

Result<Connection> connect_unread(const std::string& path) {
  return connect(uri_of(path) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

Status begin_to_read(sqlite3* connection) {
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (Status set =
          run(connection, "PRAGMA cache_size = -256; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;");
      !set) {
    return set;
  }
  const Result<bool> is_begun = has_tables(connection);
  if (!is_begun) return is_begun.error();
  return *is_begun ? Status() : Error("an empty database", ENOTSUP);
}

Result<bool> has_hosts(sqlite3* connection) { return has_column(connection, "session", "host"); }

Result<bool> has_stretches(sqlite3* connection) { return has_column(connection, "minute", "first"); }

Result<bool> has_names_from(sqlite3* connection) { return has_column(connection, "minute", "names_from"); }

Result<bool> has_samples(sqlite3* connection) { return has_table(connection, "samples"); }

Result<bool> has_states(sqlite3* connection) { return has_table(connection, "states"); }

Result<bool> has_sums(sqlite3* connection) { return has_table(connection, "sum"); }

Result<std::optional<Recorded>> read_recorded(const std::string& path) {
  const auto of_file = [&](const Error& error) { return Error(error).with_context(path); };
  if (const Status known = check_header(path); !known) return of_file(known.error());
  // For writing, so that the files beside it are removed at the end.
  const Result<Connection> connection = connect(path, SQLITE_OPEN_READWRITE);
  if (!connection) return connection.error();
  const Result<bool> is_begun = has_tables(connection->get());
  if (!is_begun) return of_file(is_begun.error());
  if (!*is_begun) return std::optional<Recorded>();
  Result<std::optional<Recorded>> recorded = recorded_in(connection->get());
  if (!recorded) return of_file(recorded.error());
  return recorded;
}

}  // namespace flamed::archive
