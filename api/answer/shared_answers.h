// SPDX-License-Identifier: Apache-2.0
//
// SharedAnswers: clients that send the same request at the same time, or within a second, share one answer. So a page
// that many look at costs as much as for one.
//
// An answer has all samples up to a second before it was begun, so an answer about a window that ends now is good for
// another second. All requests within a second of the moment that it is about get it, unless samples have been stored
// since. While a newer answer is being made, other clients get the one before, if the newer one was begun within a
// second after the older one was complete, and if the older one is at most five seconds old: so clients don't wait a
// second each time for an answer that takes a second to make. The client that starts the newer one waits for it, unless
// others asked while the one before was being made: for a request that many send all the time, nobody waits for the
// next answer. A lone client thus always gets all stored samples. A client that comes before there is any answer waits
// for the one that is being made, without blocking a thread.
//
// Users never share answers, even if they see the same: the memory of an answer counts for one user, and another one
// who does not read it must not use up his share. Refusals and errors are never kept.
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

/// A response whose body all its receivers share.
struct SharedAnswer {
  Response head;  ///< without the body
  SharedBytes body;
};

class SharedAnswers {
 public:
  using Answer = std::shared_ptr<const SharedAnswer>;

  /// All that an answer depends on, except the stored samples and the time.
  struct Question {
    UserKey user = 0;
    Viewer viewer{};
    std::string target{};  ///< as sent; other spellings of it share nothing
    std::string accept{};
    bool compressed = false;
    bool remote = false;  ///< other hosts get other formats compressed

    friend auto operator<=>(const Question&, const Question&) = default;
  };

  /// A client that sent the request.
  struct Asker {
    std::vector<std::uint64_t> clients;
    bool is_head = false;
    bool keep = false;  ///< their connections may carry another request
  };

  /// One answer in the making.
  struct Flight;

  struct Verdict {
    Answer answer;                   ///< the answer, if there is one; with `flight`, an older one that is good enough
                                     ///< for this asker
    std::shared_ptr<Flight> flight;  ///< it is to be made, and given to land()
    bool others_wait = false;        ///< with `flight`: others who ask meanwhile do not get an older one
  };                                 ///< neither: land() gives the asker to the thread that makes the answer

  /// Keeps `limit_bytes` of answers at most, the newest.
  SharedAnswers(const Clock& clock, std::size_t limit_bytes) : clock_(clock), limit_bytes_(limit_bytes) {}

  /// `revision` identifies the stored samples (Sources::await_revision()). Takes the asker if the verdict is empty.
  [[nodiscard]] Verdict ask(const Question& question, Asker& asker, std::uint64_t revision);

  /// Called once for every flight. Null: the answer failed. Returns the clients that wait for it.
  [[nodiscard]] std::vector<Asker> land(const std::shared_ptr<Flight>& flight, const Answer& answer);

  /// Frees all answers. Those who wait go on waiting.
  void clear();

  /// Memory of the kept answers.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Entry {
    Answer kept{};               ///< null: none
    std::int64_t moment_ns = 0;  ///< when it was begun
    std::int64_t landed_ns = 0;
    std::uint64_t revision = 0;
    bool is_popular = false;           ///< others sent the request while it was being made
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
