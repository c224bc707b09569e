// SPDX-License-Identifier: Apache-2.0
//
// SharedAnswers: who asks what somebody else asks, too, or asked a moment ago, gets that answer. So an answer that many
// look at costs what one costs, however many they are.
//
// An answer has all samples of up to a second before it was begun, so one about a window that ends now will do for
// another second. An answer is given to all who ask within a second of the moment that it is about, as long as nothing
// has been stored since. While a newer one is being made, others get the one before, if the newer one was begun within
// a second after that was there, and if it is not older than five seconds: whose answer takes a second to make is not
// to wait for it again and again. Who begins the newer one waits for it, unless others asked while the one before was
// being made: of a question that many ask all the time, nobody waits for the next answer. A lone asker thus never
// gets less than the store has. Who comes when there is none yet waits for the one that is being made, without holding
// a thread.
//
// Nothing is shared between users, even where they see the same: what an answer takes is counted to one of them, and
// another one who does not read it must not use up his share. Refusals and errors are never kept.
//
// Any thread. The clock must outlive it. Its answers may outlive it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/http/exchange.h"
#include "api/http/peer.h"
#include "api/http/shared_bytes.h"
#include "api/http/viewer.h"
#include "base/clock.h"

namespace flamed::api {

/// A response whose body all share who get it.
struct SharedAnswer {
  Response head;  ///< without the body
  SharedBytes body;
};

class SharedAnswers {
 public:
  using Answer = std::shared_ptr<const SharedAnswer>;

  /// All that an answer depends on, beside what is stored and what the time is.
  struct Question {
    UserKey user = 0;
    Viewer viewer{};
    std::string target{};  ///< as sent: nobody asks the same in two ways
    std::string accept{};
    bool compressed = false;
    bool remote = false;  ///< what is compressed differs for other hosts

    friend auto operator<=>(const Question&, const Question&) = default;
  };

  /// Clients who sent the same request.
  struct Asker {
    std::vector<std::uint64_t> clients;
    bool is_head = false;
    bool keep = false;  ///< their connections may carry another request
  };

  /// One answer in the making.
  struct Flight;

  struct Verdict {
    Answer answer;                   ///< it is there already; beside `flight`, an older one that will do for the asker
    std::shared_ptr<Flight> flight;  ///< it is to be made, and given to land()
    bool others_wait = false;        ///< likewise: others who ask for it meanwhile are not given an older one
  };                                 ///< neither: land() gives the asker to the thread that makes the answer

  /// Keeps `limit_bytes` of answers at most, the newest.
  SharedAnswers(const Clock& clock, std::size_t limit_bytes) : clock_(clock), limit_bytes_(limit_bytes) {}

  /// `revision` tells what is stored now (Sources::await_revision()). The asker is taken where the verdict is empty.
  [[nodiscard]] Verdict ask(const Question& question, Asker& asker, std::uint64_t revision);

  /// Of every flight, once. Null: nothing could be made. Gives those who wait for this answer.
  [[nodiscard]] std::vector<Asker> land(const std::shared_ptr<Flight>& flight, const Answer& answer);

  /// Frees all answers. Those who wait go on waiting.
  void clear();

  /// What the answers that it keeps take.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Entry {
    Answer kept{};               ///< null: none
    std::int64_t moment_ns = 0;  ///< when it was begun
    std::int64_t landed_ns = 0;
    std::uint64_t revision = 0;
    bool is_popular = false;           ///< others asked while it was being made
    std::shared_ptr<Flight> flight{};  ///< the one that was begun last; null: none is under way
  };
  using Entries = std::map<Question, Entry>;

  /// Free what it returns without the lock: it may be megabytes.
  [[nodiscard]] Answer drop_kept(Entries::iterator at);
  [[nodiscard]] Answer drop_oldest();
  [[nodiscard]] std::vector<Answer> drop_old(std::int64_t now_ns);

  const Clock& clock_;
  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;
  Entries entries_;                                              ///< each has an answer, a flight, or both
  std::set<std::pair<std::int64_t, const Question*>> by_age_{};  ///< the kept ones, by their moments
  std::size_t bytes_ = 0;
};

}  // namespace flamed::api
