// SPDX-License-Identifier: Apache-2.0
#include "archive/files/period_reader.h"

#include <cerrno>
#include <utility>

#include "archive/codec/block.h"
#include "archive/files/period_file.h"

namespace flamed::archive {
namespace {

/// With what for_each() needs. A condition follows.
std::string blocks_of(const std::string& table) {
  return "SELECT minute.id, block, run, wall_start_ns FROM minute JOIN session ON session.id = minute.session JOIN " +
         table + " ON " + table + ".minute = minute.id WHERE ";
}

}  // namespace

Result<PeriodReader> PeriodReader::open(const std::string& path) {
  Result<Connection> connection = connect_to_read(path);
  if (!connection) return std::move(connection).error();
  // A minute so far, once seen, must not be replaced before its blocks were read.
  if (Status begun = run(connection->get(), "BEGIN"); !begun) return begun.error();
  return PeriodReader(std::move(*connection));
}

Result<PeriodReader> PeriodReader::begin(Connection connection) {
  if (Status begun = begin_to_read(connection.get()); !begun) return begun.error();
  if (Status whole = check_pages(connection.get()); !whole) return whole.error();
  return PeriodReader(std::move(connection));
}

Result<std::uint64_t> PeriodReader::bytes() {
  Result<Statement> row =
      Statement::prepare(connection_.get(), "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
  if (!row) return std::move(row).error();
  const Result<bool> stepped = row->step();
  if (!stepped) return stepped.error();
  return static_cast<std::uint64_t>(*stepped ? row->number(0) : 0);
}

Result<std::vector<PeriodReader::SessionRow>> PeriodReader::sessions() {
  const Result<bool> has_host = has_hosts(connection_.get());
  if (!has_host) return has_host.error();
  Result<Statement> rows =
      Statement::prepare(connection_.get(), *has_host ? "SELECT id, boot_id, run, program, host FROM session"
                                                      : "SELECT id, boot_id, run, program, '' FROM session");
  if (!rows) return std::move(rows).error();
  std::vector<SessionRow> sessions;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return sessions;
    sessions.push_back({rows->number(0), std::string(rows->text(1)), rows->number(2), std::string(rows->text(3)),
                        std::string(rows->text(4))});
  }
}

Result<std::vector<PeriodReader::MinuteRow>> PeriodReader::minutes(std::int64_t after) {
  const Result<bool> may_be_stretches = has_stretches(connection_.get());
  if (!may_be_stretches) return may_be_stretches.error();
  const Result<bool> has_names = has_names_from(connection_.get());
  if (!has_names) return has_names.error();
  Result<Statement> rows = Statement::prepare(
      connection_.get(), std::string("SELECT id, session, sequence, wall_start_ns, wall_end_ns, ") +
                             (*may_be_stretches ? "first" : "NULL") + ", " + (*has_names ? "names_from" : "NULL") +
                             " FROM minute WHERE id > ? ORDER BY id");
  if (!rows) return std::move(rows).error();
  rows->bind(1, after);
  std::vector<MinuteRow> minutes;
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return minutes;
    minutes.push_back({rows->number(0),
                       rows->number(1),
                       static_cast<std::uint32_t>(rows->number(2)),
                       {rows->number(3)},
                       {rows->number(4)}});
    if (!rows->is_null(5)) minutes.back().first = static_cast<std::uint32_t>(rows->number(5));
    if (!rows->is_null(6)) minutes.back().names_from = static_cast<std::uint32_t>(rows->number(6));
  }
}

Result<std::vector<PeriodReader::SumRow>> PeriodReader::sums(std::int64_t after) {
  const Result<bool> has_any = has_sums(connection_.get());
  if (!has_any) return has_any.error();
  std::vector<SumRow> sums;
  if (!*has_any) return sums;
  Result<Statement> rows = Statement::prepare(
      connection_.get(),
      "SELECT id, session, first, last, wall_start_ns, wall_end_ns FROM sum WHERE id > ? ORDER BY id");
  if (!rows) return std::move(rows).error();
  rows->bind(1, after);
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return sums;
    sums.push_back({rows->number(0),
                    rows->number(1),
                    static_cast<std::uint32_t>(rows->number(2)),
                    static_cast<std::uint32_t>(rows->number(3)),
                    {rows->number(4)},
                    {rows->number(5)}});
  }
}

Status PeriodReader::for_each_additions(std::int64_t session, std::int64_t after, std::int64_t until,
                                        const Visit& visit) {
  Result<Statement> rows =
      Statement::prepare(connection_.get(), blocks_of("additions") +
                                                "minute.id > ? AND minute.id <= ? AND session = ? ORDER BY minute.id");
  if (!rows) return std::move(rows).error();
  rows->bind(1, after).bind(2, until).bind(3, session);
  return for_each("additions", *rows, visit);
}

Status PeriodReader::for_each_names(std::int64_t session, std::int64_t after, std::int64_t until, const Visit& visit) {
  Result<Statement> rows = Statement::prepare(
      connection_.get(), blocks_of("names") + "minute.id > ? AND minute.id <= ? AND session = ? ORDER BY minute.id");
  if (!rows) return std::move(rows).error();
  rows->bind(1, after).bind(2, until).bind(3, session);
  return for_each("names", *rows, visit);
}

Status PeriodReader::for_each_states(std::int64_t session, const Visit& visit) {
  const Result<bool> has_any = has_states(connection_.get());
  if (!has_any) return has_any.error();
  if (!*has_any) return {};
  Result<Statement> rows =
      Statement::prepare(connection_.get(), blocks_of("states") + "session = ? ORDER BY minute.id");
  if (!rows) return std::move(rows).error();
  rows->bind(1, session);
  return for_each("states", *rows, visit);
}

Status PeriodReader::pairs_of(std::int64_t minute, const Visit& visit) { return block_of("pairs", minute, visit); }

Status PeriodReader::names_of(std::int64_t minute, const Visit& visit) { return block_of("names", minute, visit); }

Status PeriodReader::samples_of(std::int64_t minute, const Visit& visit) {
  const Result<bool> has_any = has_samples(connection_.get());
  if (!has_any) return has_any.error();
  if (!*has_any) return {};
  return block_of("samples", minute, visit);
}

Status PeriodReader::for_each_sum(std::int64_t session, std::int64_t after, std::int64_t until, bool with_short,
                                  const VisitSum& visit) {
  Result<Statement> rows = Statement::prepare(
      connection_.get(), std::string("SELECT sum.id, run, wall_start_ns, first, last, additions, pairs") +
                             (with_short ? ", short_additions, short_pairs" : "") +
                             " FROM sum JOIN session ON session.id = sum.session "
                             "WHERE sum.id > ? AND sum.id <= ? AND session = ? ORDER BY sum.id");
  if (!rows) return std::move(rows).error();
  rows->bind(1, after).bind(2, until).bind(3, session);
  for (;;) {
    const Result<bool> row = rows->step();
    if (!row) return row.error();
    if (!*row) return {};
    bool is_its_own = true;
    const auto block_in = [&](int column, std::string_view name) {
      const Stamped bytes = take_stamp(rows->blob(column));
      const std::uint32_t stamp =
          stamp_of_sum(name, rows->number(1), {rows->number(2)}, rows->number(3), rows->number(4));
      is_its_own = is_its_own && (bytes.block.empty() || bytes.stamp == stamp);
      return bytes.block;
    };
    SumBlocks blocks{block_in(5, "additions"), block_in(6, "pairs")};
    if (with_short) {
      blocks.short_additions = block_in(7, "short_additions");
      blocks.short_pairs = block_in(8, "short_pairs");
    }
    if (!is_its_own) return Error("damaged: blocks of another sum", EBADMSG);
    if (Status visited = visit(rows->number(0), blocks); !visited) return visited;
  }
}

Status PeriodReader::check() { return check_pages(connection_.get()); }

Status PeriodReader::block_of(const std::string& table, std::int64_t minute, const Visit& visit) {
  Result<Statement> rows = Statement::prepare(connection_.get(), blocks_of(table) + "minute.id = ?");
  if (!rows) return std::move(rows).error();
  rows->bind(1, minute);
  return for_each(table, *rows, visit);
}

Status PeriodReader::for_each(std::string_view table, Statement& statement, const Visit& visit) {
  for (;;) {
    const Result<bool> row = statement.step();
    if (!row) return row.error();
    if (!*row) return {};
    const Stamped bytes = take_stamp(statement.blob(1));
    if (bytes.stamp && *bytes.stamp != stamp_of(table, statement.number(2), {statement.number(3)})) {
      return Error("damaged: " + std::string(table) + " of another minute", EBADMSG);
    }
    if (Status visited = visit(statement.number(0), bytes.block); !visited) return visited;
  }
}

}  // namespace flamed::archive
